"""`/benchmark retry [targets]`: run again what failed or was not measured."""

from dataclasses import replace
from fnmatch import fnmatchcase

from bot.commands.desk import Desk, Outcome
from bot.core.calls import plan_of
from bot.core.grammar import Spec
from bot.core.nouns import Call, Refusal
from bot.store.codec import load
from bot.store.facts import requests_of
from bot.store.requests import new_request
from bot.store.tables import Request

SPEC = Spec(
    verb="retry",
    summary="run again what failed or was not measured",
    usage="retry [targets] [sha=COMMIT]",
    examples=("retry", "retry resnet50"),
    right="run",
    options=("sha",),
)


AGAIN = ("failed", "not measured", "cancelled", "inconclusive", "regression")


async def handle(call: Call, desk: Desk) -> Outcome:
    """The newest request of the pull request that failed, or that ran the named benchmarks, once more as it was."""
    async with desk.database.read() as tx:
        done = [r for r in await requests_of(tx, call.pull.repository_id, call.pull.number) if r.state == "done"]
    words = call.command.targets
    chosen = next((r for r in done if (_names(r, words) if words else r.verdict in AGAIN)), None)
    if chosen is None:
        return Outcome(
            refusal=Refusal(
                code="nothing_to_retry",
                sentence="Nothing here has failed." if done or not words else "Nothing like that has been run here.",
                hint=f"`{desk.prefix} status` shows what was run; the same command may also be typed again.",
            )
        )
    before = load(Call, chosen.call)
    # the same commits and configuration as then, but asked for by this person, under today's rights, prices and limits
    again = replace(before, sender=call.sender, pull=call.pull, allowed_shas=call.allowed_shas)
    again = replace(again, hardware=call.hardware, limits=call.limits)
    planned = plan_of(again, desk.prefix)
    no = planned if isinstance(planned, Refusal) else await desk.too_much(again, planned)
    if no is not None:
        return Outcome(refusal=no)
    request_id = desk.new_id()
    return Outcome(
        request_id=request_id,
        writes=(new_request(desk.database, request_id, desk.trigger, "command", again, desk.now),),
    )


def _names(request: Request, words: tuple[str, ...]) -> bool:
    resolved = load(Call, request.call).resolved
    return any(fnmatchcase(name, word) for name in resolved for word in words)
