"""`/benchmark allow <sha>`: let one commit of an author without write right be run."""

from bot.commands.desk import Desk, Outcome
from bot.core.grammar import Spec
from bot.core.nouns import Call, Refusal
from bot.core.wording import code
from bot.store.facts import allow

SPEC = Spec(
    verb="allow",
    summary="let one commit of an author without write right be run",
    usage="allow <sha>",
    examples=("allow 3f2a9c1d7e",),
    right="write",
    takes="commit",
)


async def handle(call: Call, desk: Desk) -> Outcome:
    """Remember that this very commit may run; the next push needs a new word."""
    (sha,) = call.command.targets
    if not call.pull.head_sha.startswith(sha):
        return Outcome(
            refusal=Refusal(
                code="not_the_head",
                sentence=f"{code(sha)} is not the head of this pull request.",
                hint=f"Look at the head first; then type `{desk.prefix} allow {call.pull.head_sha[:10]}`.",
            )
        )
    about = {"repository_id": call.pull.repository_id, "number": call.pull.number, "sha": call.pull.head_sha}
    made = allow(desk.database, {**about, "by_login": call.sender.login, "allowed_at": desk.now})
    return Outcome(text=f"{code(call.pull.head_sha[:10])} may run now; a later push may not.", writes=(made,))
