"""`/benchmark allow <sha>`: let one commit of an author without write right be run."""

from bot.core.grammar import Spec

SPEC = Spec(
    verb="allow",
    summary="let one commit of an author without write right be run",
    usage="allow <sha>",
    examples=("allow 3f2a9c1d7e",),
    right="write",
    takes="commit",
)
