"""`/benchmark status`: what runs and waits on this pull request."""

from bot.core.grammar import Spec

SPEC = Spec(
    verb="status",
    summary="show what is running, waiting and done on this pull request",
    usage="status",
    examples=("status",),
    right="anyone",
    takes="nothing",
)
