"""git on bare repositories: what the API tells of commits, trees and differences. One process a question."""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bot.sandbox.state import not_found

_ENV = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "LC_ALL": "C",
}
_STATUS = {"A": "added", "D": "removed", "M": "modified", "R": "renamed", "C": "copied", "T": "changed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """Author or committer of a commit; `date` is ISO 8601."""

    name: str
    email: str
    date: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One commit as git stores it."""

    sha: str
    tree: str
    parents: tuple[str, ...]
    author: Signature
    committer: Signature
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """One file between two commits; `previous` is its name before a rename."""

    path: str
    status: str
    additions: int
    deletions: int
    blob: str
    previous: str = ""


class GitFailedError(RuntimeError):
    """git ended with an error; the text is what it said."""


async def git(folder: Path, *words: str, stdin: bytes = b"", extra: Mapping[str, str] | None = None) -> bytes:
    """What git prints; `extra` is added to its environment. Raises GitFailedError."""
    process = await asyncio.create_subprocess_exec(
        "git",
        f"--git-dir={folder}",
        *words,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=_ENV | dict(extra or {}),
    )
    out, err = await process.communicate(stdin)
    if process.returncode != 0:
        raise GitFailedError(f"git {words[0]}: {err.decode(errors='replace').strip()}")
    return out


async def resolve(folder: Path, ref: str) -> str:
    """The commit of a branch, tag or (shortened) sha, as the API reads refs. Raises Problem 404."""
    for name in (f"refs/heads/{ref}", f"refs/{ref}", f"refs/tags/{ref}", ref):
        try:
            found = await git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        except GitFailedError:
            continue
        return found.decode().strip()
    raise not_found()


async def commit(folder: Path, sha: str) -> Commit:
    """One commit. Raises Problem 404."""
    layout = "%H%x00%T%x00%P%x00%an%x00%ae%x00%aI%x00%cn%x00%ce%x00%cI%x00%B"
    try:
        shown = await git(folder, "show", "--no-patch", f"--format={layout}", "--end-of-options", sha)
    except GitFailedError:
        raise not_found() from None
    found, tree, parents, an, ae, ad, cn, ce, cd, message = shown.decode(errors="replace").split("\0", 9)
    return Commit(
        sha=found,
        tree=tree,
        parents=tuple(parents.split()),
        author=Signature(name=an, email=ae, date=ad),
        committer=Signature(name=cn, email=ce, date=cd),
        message=message.strip(),
    )


async def commits_between(folder: Path, base: str, head: str) -> list[str]:
    """Commits of head that base does not have, oldest first."""
    return (await git(folder, "rev-list", "--reverse", f"{base}..{head}")).decode().split()


async def merge_base(folder: Path, one: str, other: str) -> str | None:
    """Where two commits parted; None when they have no common ancestor."""
    try:
        return (await git(folder, "merge-base", one, other)).decode().strip()
    except GitFailedError:
        return None


async def changed(folder: Path, base: str, head: str) -> list[Changed]:
    """Files that differ between two commits, renames found."""
    counts = (await git(folder, "diff", "-M", "--numstat", "-z", base, head)).decode(errors="replace").split("\0")
    raw = (await git(folder, "diff", "-M", "--raw", "--no-abbrev", "-z", base, head)).decode(errors="replace")
    lines: dict[str, tuple[int, int]] = {}
    at = 0
    while at < len(counts) and counts[at]:
        more, fewer, path = counts[at].split("\t", 2)
        at += 1
        if not path:  # a rename: old and new name follow as words of their own
            path, at = counts[at + 1], at + 2
        lines[path] = (int(more) if more != "-" else 0, int(fewer) if fewer != "-" else 0)
    found = []
    words = iter(raw.split("\0"))
    for head_word in words:
        if not head_word:
            break
        *_, blob, letter = head_word.split(" ")
        path = next(words)
        previous = ""
        if letter[0] in "RC":
            previous, path = path, next(words)
        more_lines, fewer_lines = lines.get(path, (0, 0))
        status = _STATUS.get(letter[0], "changed")
        found.append(
            Changed(
                path=path,
                status=status,
                additions=more_lines,
                deletions=fewer_lines,
                blob=blob if blob.strip("0") else head,
                previous=previous,
            )
        )
    return found


async def patch(folder: Path, base: str, head: str) -> str:
    """The difference of two commits as text."""
    return (await git(folder, "diff", "-M", base, head)).decode(errors="replace")


async def blob(folder: Path, commit_sha: str, path: str) -> tuple[str, bytes]:
    """Sha and bytes of a file at a commit. Raises Problem 404, also for folders."""
    try:
        sha = (await git(folder, "rev-parse", "--verify", "--end-of-options", f"{commit_sha}:{path}")).decode().strip()
        return sha, await git(folder, "cat-file", "blob", sha)
    except GitFailedError:
        raise not_found() from None
