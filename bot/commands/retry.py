"""`/benchmark retry [targets]`: run again what failed or was not measured."""

from bot.core.grammar import Spec

SPEC = Spec(
    verb="retry",
    summary="run again what failed or was not measured",
    usage="retry [targets] [sha=COMMIT]",
    examples=("retry", "retry resnet50"),
    right="run",
    options=("sha",),
)
