"""`/benchmark plan <targets>`: what a command would run and cost; nothing is started."""

from bot.commands.desk import Desk, Outcome
from bot.core.calls import plan_of
from bot.core.grammar import Spec
from bot.core.nouns import Call, Plan, Refusal
from bot.core.options import OPTIONS

SPEC = Spec(
    verb="plan",
    summary="show what a command would run and cost, without starting anything",
    usage="plan <targets> [options]",
    examples=("plan all", "plan resnet50 scenario=all seeds=3"),
    right="anyone",
    options=tuple(OPTIONS),
    needs_targets=True,
)


async def handle(call: Call, desk: Desk) -> Outcome:
    """The plan as Markdown; nothing is started."""
    planned = plan_of(call)
    if isinstance(planned, Refusal):
        return Outcome(refusal=planned)
    return Outcome(text=plan_text(planned, call))


def plan_text(plan: Plan, call: Call) -> str:
    """TEMPORARY"""
    return "\n".join(f"- {lease.benchmark}" for lease in plan.leases)
