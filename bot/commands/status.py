"""`/benchmark status`: what runs and waits on this pull request."""

from bot.commands.desk import Desk, Outcome
from bot.core.budget import usd
from bot.core.grammar import Spec
from bot.core.nouns import Call
from bot.core.wording import code
from bot.store.facts import requests_of
from bot.store.requests import leases_of_pull

SPEC = Spec(
    verb="status",
    summary="show what is running, waiting and done on this pull request",
    usage="status",
    examples=("status",),
    right="anyone",
    takes="nothing",
)


MOST = 10


async def handle(call: Call, desk: Desk) -> Outcome:
    """The requests of the pull request, newest first, with the phase of what is open."""
    pull = call.pull
    async with desk.database.read() as tx:
        requests = await requests_of(tx, pull.repository_id, pull.number)
        leases = await leases_of_pull(tx, pull.repository_id, pull.number)
    if not requests:
        return Outcome(text="Nothing has been run on this pull request yet.")
    rows = ["| command | commit | state | |", "|---|---|---|---|"]
    for request in requests[:MOST]:
        phases = [lease.phase or lease.state for owner, lease in leases if owner.id == request.id]
        state = request.verdict or ("waiting" if request.state == "accepted" else "running")
        detail = "" if request.verdict else "; ".join(dict.fromkeys(phases))
        if request.state == "waiting":
            state, detail = "waiting", f"for `{desk.prefix} confirm`: up to {usd(request.estimate_usd)}"
        page = f"[results]({desk.base_url}/requests/{request.id})"
        rows.append(f"| {code(request.command)} | {code(request.head_sha[:7])} | {state} | {detail or page} |")
    left = len(requests) - MOST
    return Outcome(text="\n".join(rows) + (f"\n\n{left} older ones are not shown." if left > 0 else ""))
