"""How an App comes to be: a key pair, a secret, an account of its own."""

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from bot.sandbox.state import Account, App, State


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """What an App asks for when it is registered. `events` are the webhooks that it hears.

    Without a `private_key` (PEM) a new one is made.
    """

    name: str
    permissions: Mapping[str, str]
    events: tuple[str, ...]
    webhook_url: str = ""
    private_key: str = ""


def account_of(state: State, login: str, kind: str = "User") -> Account:
    """The account of a login; a new one of that kind when there is none."""
    known = state.accounts.get(login.lower())
    if known is None:
        known = state.accounts[login.lower()] = Account(id=state.new_id(), login=login, kind=kind)
    return known


def slug_of(name: str) -> str:
    """The name of an App as it stands in addresses and in its bot's login; empty for a name without letters."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def register(state: State, owner: str, registration: Registration) -> App:
    """A new App."""
    key = _key(registration.private_key)
    slug = slug_of(registration.name)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    app = App(
        id=state.new_id(),
        slug=slug,
        name=registration.name,
        owner=account_of(state, owner),
        bot=account_of(state, f"{slug}[bot]", "Bot"),
        private_key=private.decode(),
        public_key=public.decode(),
        webhook_secret=secrets.token_hex(20),
        webhook_url=registration.webhook_url,
        permissions={"metadata": "read", **registration.permissions},
        events=registration.events,
        created_at=state.clock(),
    )
    state.apps[app.id] = app
    return app


def _key(pem: str) -> rsa.RSAPrivateKey:
    if not pem:
        return rsa.generate_private_key(public_exponent=65537, key_size=2048)
    key = serialization.load_pem_private_key(pem.encode(), password=None)
    if not isinstance(key, rsa.RSAPrivateKey):
        raise ValueError("an App signs with an RSA key")
    return key
