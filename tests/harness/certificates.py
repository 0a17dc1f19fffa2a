"""A certificate for 127.0.0.1 from an authority of its own, for clients that speak TLS only or are slow without."""

import ipaddress
import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@cache
def loopback() -> tuple[ssl.SSLContext, Path]:
    """What a server needs, and the file of the authority that its clients trust."""
    folder = Path(tempfile.mkdtemp(prefix="benchbot-tests-"))
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority = _certificate("authority", authority_key, None, authority_key)
    certificate = _certificate("127.0.0.1", key, authority, authority_key)
    chain = folder / "server.pem"
    pem, form, plain = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    chain.write_bytes(certificate.public_bytes(pem) + key.private_bytes(pem, form, plain))
    (folder / "authority.pem").write_bytes(authority.public_bytes(pem))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(chain)
    return context, folder / "authority.pem"


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Certificate | None,
    issuer_key: ec.EllipticCurvePrivateKey,
) -> x509.Certificate:
    now, subject = datetime.now(UTC), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    is_authority = issuer is None
    usage = dict.fromkeys(
        ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "encipher_only"), False
    )
    built = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.KeyUsage(
                digital_signature=True,
                key_cert_sign=is_authority,
                crl_sign=is_authority,
                decipher_only=False,
                **usage,
            ),
            critical=True,
        )
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()),
            critical=False,
        )
    )
    if not is_authority:
        address = x509.IPAddress(ipaddress.ip_address(name))
        built = built.add_extension(x509.SubjectAlternativeName([address]), critical=False)
    return built.sign(issuer_key, hashes.SHA256())
