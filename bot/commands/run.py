"""`/benchmark <targets>`: train head and base, compare, and answer."""

from bot.core.grammar import Spec
from bot.core.options import OPTIONS

SPEC = Spec(
    verb="run",
    summary="run benchmarks on the pull request and on its base, and compare",
    usage="<targets> [options]",
    examples=("resnet50", "@classification -vgg* on=a100x1", "resnet50 pairs=4 set.batch=128"),
    right="run",
    options=tuple(OPTIONS),
    needs_targets=True,
)
