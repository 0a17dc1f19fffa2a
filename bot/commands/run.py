"""`/benchmark <targets>`: train head and base, compare, and answer."""

from bot.commands.desk import Desk, Outcome
from bot.core.grammar import Spec
from bot.core.nouns import Call, Refusal
from bot.core.options import OPTIONS
from bot.store.requests import new_request

SPEC = Spec(
    verb="run",
    summary="run benchmarks on the pull request and on its base, and compare",
    usage="<targets> [options]",
    examples=("resnet50", "@classification -vgg* on=a100x1", "resnet50 pairs=4 set.batch=128"),
    right="run",
    options=tuple(OPTIONS),
    needs_targets=True,
)


async def handle(call: Call, desk: Desk) -> Outcome:
    """Check the plan now, so that a no comes at once; the request's worker makes the same plan again."""
    planned = await desk.plan(call)
    no = planned if isinstance(planned, Refusal) else await desk.too_much(call, planned)
    if no is not None:
        return Outcome(refusal=no)
    request_id = desk.new_id()
    made = new_request(desk.database, request_id, desk.trigger, "command", call, desk.now)
    return Outcome(request_id=request_id, writes=(made,))
