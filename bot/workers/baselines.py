"""What `vs=` means now: a commit, and its name for people."""

from dataclasses import dataclass

from bot.core.nouns import Refusal
from bot.github.client import GitHub, Gone, Where


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """Where a head stands: the tip of the branch that it goes to, and where it left that branch."""

    head_sha: str
    base_ref: str
    base_sha: str
    merge_base_sha: str


async def baseline_of(github: GitHub, where: Where, word: str, ends: Ends) -> tuple[str, str] | Refusal:
    """The commit of one word of `vs=`, and what it is called; a refusal where there is none."""
    kind, _, ref = word.partition(":")
    try:
        if kind == "base":
            return ends.base_sha, ends.base_ref
        if kind == "self":
            return ends.head_sha, "itself"
        if kind == "release":
            ref = await github.latest_release(where)
            return await github.commit(where, f"tags/{ref}"), f"release {ref}"
        if kind in ("tag", "branch", "sha"):
            full = {"tag": f"tags/{ref}", "branch": f"heads/{ref}", "sha": ref}[kind]
            return await github.commit(where, full), f"{kind} {ref}"
    except Gone:
        sentence = "There is no release yet." if kind == "release" else f"There is no {kind} {ref}."
        return Refusal(code="unknown_baseline", sentence=sentence, hint="Leave `vs=` out for the merge-base.")
    return ends.merge_base_sha, f"merge-base with {ends.base_ref}"
