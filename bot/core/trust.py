"""Who may do what, and which commits may be run: decisions with a sentence, made from facts that were asked for.

Nothing here reads a payload: the sender's right is what the permission API says, the head is our own log's.
"""

from dataclasses import replace

from bot.core.grammar import Right, Spec, render
from bot.core.markdown import PREFIX
from bot.core.nouns import Call, Command, Person, PullRequest, Refusal

# verbs that start the pull request's code
_STARTS = frozenset({"run", "retry"})


def ignores(sender: Person, author: Person) -> bool:
    """Comments that are not answered at all: by bots, ourselves among them, or edited by somebody else's hand."""
    return "Bot" in (sender.kind, author.kind) or sender.id != author.id


def is_trusted(pull: PullRequest) -> bool:
    """Whether the head's commits need nobody's word: a branch of the repository itself, by someone with write right.

    A fork is never trusted as such, nor is a head repository that is gone: who pushes there is not known.
    """
    return pull.author.may_write and not pull.from_fork


def may(spec: Spec, call: Call, *, head_moved: bool = False, prefix: str = PREFIX) -> Refusal | None:
    """Why this sender may not give this command here and now; None when they may.

    `head_moved`: the head that GitHub shows is not the one that the comment was written under.
    """
    refusal = _right(spec, call)
    if refusal is None and spec.verb in _STARTS:
        refusal = _state(call) or _head(call, head_moved, prefix) or _config(call) or _commit(call, prefix)
    elif refusal is None and spec.takes == "commit":
        refusal = _allowed_commit(call, prefix)
    return refusal and replace(refusal, line=call.command.line)


def may_cancel(sender: Person, requester_id: int) -> Refusal | None:
    """Cancel is for who asked for the request, and for those with write right."""
    if sender.may_write or (sender.id == requester_id and sender.kind == "User"):
        return None
    return Refusal(
        code="not_allowed",
        sentence="Somebody else asked for this; cancelling it needs write right on this repository.",
        hint="Ask who started it, or a maintainer.",
    )


def may_approve(reviewer: Person, commit_sha: str, head_sha: str) -> Refusal | None:
    """Whether an approving review starts the approval run and allows its commit. Never told to anybody but the log."""
    if reviewer.kind != "User" or not reviewer.may_write:
        return Refusal(code="not_allowed", sentence="An approval counts from people with write right.")
    if not commit_sha or commit_sha != head_sha:
        return Refusal(code="head_moved", sentence="The approval is of a commit that is no longer the head.")
    return None


def _right(spec: Spec, call: Call) -> Refusal | None:
    sender = call.sender
    # a requester's right depends on the request, which the handler knows: see `may_cancel`
    holds: dict[Right, bool] = {
        "anyone": True,
        "requester": True,
        "run": sender.may_run,
        "write": sender.may_write,
    }
    if sender.kind == "User" and holds[spec.right]:
        return None
    needed = "write" if spec.right == "write" else "triage"
    return Refusal(
        code="not_allowed",
        sentence=f"`{spec.verb}` needs {needed} right or more on this repository, and you have "
        f"{'none' if sender.permission == 'none' else sender.permission}.",
        hint="Ask a maintainer to type it.",
    )


def _state(call: Call) -> Refusal | None:
    if call.pull.open:
        return None
    return Refusal(code="closed", sentence="This pull request is closed.", hint="Reopen it, and type this again.")


def _head(call: Call, head_moved: bool, prefix: str) -> Refusal | None:
    """The commit that was meant must be the one that is pinned, and still the head."""
    meant = call.command.options.get("sha")
    if meant is not None and not call.head_sha.startswith(str(meant)):
        return Refusal(
            code="other_head",
            sentence=f"`sha={meant}` is not the head of this pull request, which was `{call.head_sha[:10]}` when this "
            "was written.",
            hint=f"To run that head, type {_ready(call.command, call.pull.head_sha, prefix)}.",
        )
    if head_moved:
        return Refusal(
            code="head_moved",
            sentence=f"The head moved from `{call.head_sha[:10]}` to `{call.pull.head_sha[:10]}` while this was read; "
            "nothing was started.",
            hint=f"To run the new head, look at it and type {_ready(call.command, call.pull.head_sha, prefix)}.",
        )
    return None


def _config(call: Call) -> Refusal | None:
    if call.command.options.get("config") != "head" or call.sender.may_write:
        return None
    return Refusal(
        code="not_allowed",
        sentence="`config=head` lets the pull request say what is run; it needs write right on this repository.",
        hint="Leave it out, or ask a maintainer to type it.",
    )


def _commit(call: Call, prefix: str) -> Refusal | None:
    """Commits of somebody without write right run only on the word of somebody with it, commit by commit."""
    if is_trusted(call.pull) or call.head_sha in call.allowed_shas:
        return None
    if call.sender.may_write and "sha" in call.command.options:
        return None
    whose = "a fork" if call.pull.from_fork else "an author without write right"
    ready = _ready(call.command, call.head_sha, prefix)
    if call.sender.may_write:
        hint = f"After reading the change, type {ready}, or allow the commit with `{prefix} allow {call.head_sha}`."
    else:
        hint = f"Ask somebody with write right to approve the commit or to type `{prefix} allow {call.head_sha}`."
    return Refusal(
        code="untrusted_commit",
        sentence=f"This pull request comes from {whose}; its commit `{call.head_sha[:10]}` has not been allowed yet.",
        hint=hint,
    )


def _allowed_commit(call: Call, prefix: str) -> Refusal | None:
    """`allow` names the head that the comment was written under; other commits would be allowed unseen."""
    (sha,) = call.command.targets
    if call.head_sha.startswith(sha):
        return None
    return Refusal(
        code="other_head",
        sentence=f"`{sha}` is not the head of this pull request, which was `{call.head_sha[:10]}` when this was "
        "written.",
        hint=f"To allow that head, look at it and type `{prefix} allow {call.head_sha}`.",
    )


def _ready(command: Command, sha: str, prefix: str) -> str:
    """The command to type instead, as inline code, with the whole commit: a short one can be forged."""
    line = render(replace(command, options={**command.options, "sha": sha}), prefix)
    return f"`{line.replace('`', '')}`"
