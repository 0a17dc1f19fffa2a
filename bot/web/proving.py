"""What an agent claims its lease with: the token of its machine's order, or the identity that its cloud gave it."""

from typing import Any

from bot.services import Services
from bot.store.leases import fingerprint, machine_of
from bot.store.tables import Lease
from runners.backends.base import BackendError


class NotProvenError(Exception):
    """An identity that opens no lease (401), or that cannot be looked at now (503: the agent tries again)."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


async def proven(services: Services, body: dict[str, Any]) -> str:
    """The fingerprint of the token that a claim proves: what it carries, or that of the machine which it shows to be.

    An identity is as good as the token of its machine's order, and ends with it when the lease gets another machine.
    Raises NotProvenError.
    """
    identity = str(body.get("identity", ""))
    if not identity:
        return fingerprint(str(body.get("token", "")))
    async with services.database.read() as tx:
        lease = await tx.get(Lease, str(body.get("lease", "")))
        machine = await machine_of(tx, lease.id) if lease else None
    backend = services.backends.get(machine.backend) if machine and machine.state != "gone" else None
    if lease is None or not lease.token_hash or machine is None or backend is None:
        raise NotProvenError(401, "this identity opens no lease")
    try:
        doubt = await backend.doubts(identity, machine.id, services.settings.agent_url)
    except BackendError as error:
        doubt = error.sentence
    except OSError:
        raise NotProvenError(503, "the identity cannot be checked now") from None
    if doubt:
        raise NotProvenError(401, f"this identity opens no lease: {doubt}")
    return lease.token_hash
