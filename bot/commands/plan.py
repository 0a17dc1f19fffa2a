"""`/benchmark plan <targets>`: what a command would run and cost; nothing is started."""

from bot.core.grammar import Spec
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
