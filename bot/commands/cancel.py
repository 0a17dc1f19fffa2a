"""`/benchmark cancel [targets]`: stop what is running or waiting on this pull request."""

from fnmatch import fnmatchcase

from bot.commands.desk import Desk, Outcome
from bot.core.grammar import Spec
from bot.core.nouns import Call, Refusal
from bot.core.reasons import reason
from bot.core.wording import code
from bot.store.codec import dump, load
from bot.store.facts import OPEN_REQUESTS, cancel_requests, requests_of
from bot.store.tables import Request

SPEC = Spec(
    verb="cancel",
    summary="stop what is running or waiting on this pull request",
    usage="cancel [targets]",
    examples=("cancel", "cancel resnet50"),
    right="requester",
)


async def handle(call: Call, desk: Desk) -> Outcome:
    """Ask every open request of the pull request to end, or those that run one of the named benchmarks."""
    pull, words = call.pull, call.command.targets
    async with desk.database.read() as tx:
        open_ones = [r for r in await requests_of(tx, pull.repository_id, pull.number) if r.state in OPEN_REQUESTS]
    mine = [r for r in open_ones if call.sender.may_write or r.requester_id == call.sender.id]
    chosen = [r for r in mine if not words or _names(r, words)]
    if not chosen:
        others = bool(open_ones) and not mine
        return Outcome(
            refusal=Refusal(
                code="not_yours" if others else "nothing_to_cancel",
                sentence="What runs here was asked for by somebody else." if others else "Nothing here is open.",
                hint="Cancelling it needs write right." if others else f"`{desk.prefix} status` shows what there is.",
            )
        )
    ids = [request.id for request in chosen]
    stop = cancel_requests(dump(reason("cancelled", f"Cancelled by {call.sender.login}.")), Request.id.in_(ids))
    named = ", ".join(code(request.command) for request in chosen)
    return Outcome(text=f"Cancelling {named}. The machines are deleted.", writes=(stop,))


def _names(request: Request, words: tuple[str, ...]) -> bool:
    resolved = load(Call, request.call).resolved
    return any(fnmatchcase(name, word) for name in resolved for word in words)
