"""git on bare repositories: what the API tells of commits, trees and differences. One process a question."""

import asyncio
import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from bot.sandbox.state import not_found

_ENV = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "LC_ALL": "C",
}
_LAYOUT = "%H%x00%T%x00%P%x00%an%x00%ae%x00%aI%x00%cn%x00%ce%x00%cI%x00%B"
_FIELDS = 1 + _LAYOUT.count("%x00")
_SHA = 40
_STATUS = {"A": "added", "D": "removed", "M": "modified", "R": "renamed", "C": "copied", "T": "changed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """Author or committer of a commit; `date` is ISO 8601."""

    name: str
    email: str
    date: str

    @property
    def at(self) -> float:
        """Seconds since the epoch."""
        return datetime.fromisoformat(self.date).timestamp()


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


def refs(folder: Path) -> dict[str, str]:
    """Every branch and tag, by its full name, with what it names. Raises GitFailedError."""
    command = [
        "git",
        f"--git-dir={folder}",
        "for-each-ref",
        "--format=%(objectname) %(refname)",
        "refs/heads",
        "refs/tags",
    ]
    ended = subprocess.run(command, capture_output=True, env=_ENV, check=False)
    if ended.returncode != 0:
        raise GitFailedError(f"git for-each-ref: {ended.stderr.decode(errors='replace').strip()}")
    pairs = (line.partition(" ") for line in ended.stdout.decode(errors="replace").splitlines())
    return {name: sha for sha, _, name in pairs}


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
    try:
        (found,) = await log(folder, sha, at_most=1)
    except GitFailedError:
        raise not_found() from None
    return found


async def log(
    folder: Path, sha: str, *words: str, without: Iterable[str] = (), at_most: int | None = None
) -> list[Commit]:
    """A commit and all that it leads to, newest first; nothing that those of `without` lead to.

    `words` are options of `git log`, such as `--since`. Raises GitFailedError.
    """
    options = ["log", "-z", f"--format={_LAYOUT}", "--stdin", *([] if at_most is None else [f"--max-count={at_most}"])]
    wanted = "".join(f"{line}\n" for line in (sha, *(f"^{other}" for other in without)))
    shown = (await git(folder, *options, *words, stdin=wanted.encode())).decode(errors="replace")
    fields = shown.split("\0")
    return [_commit(fields[at : at + _FIELDS]) for at in range(0, len(fields) - _FIELDS + 1, _FIELDS)]


def _commit(fields: list[str]) -> Commit:
    found, tree, parents, an, ae, ad, cn, ce, cd, message = fields
    return Commit(
        sha=found,
        tree=tree,
        parents=tuple(parents.split()),
        author=Signature(name=an, email=ae, date=ad),
        committer=Signature(name=cn, email=ce, date=cd),
        message=message.strip(),
    )


async def leads_to(folder: Path, older: str, newer: str) -> bool:
    """Whether one commit is among the ancestors of another, or the same."""
    try:
        await git(folder, "merge-base", "--is-ancestor", older, newer)
    except GitFailedError:
        return False
    return True


async def first_with(folder: Path, older: str, tip: str) -> str:
    """The commit by which an older one came to a branch: itself, or the first on the branch's own line that has it."""
    line = (await git(folder, "rev-list", "--first-parent", "--reverse", tip)).decode().split()
    if older in line:
        return older
    for sha in line:
        if await leads_to(folder, older, sha):
            return sha
    return tip


async def touched(folder: Path, shas: Iterable[str]) -> dict[str, list[tuple[str, str]]]:
    """For each commit the letter (A, M, D, T) and path of every file that differs from its first parent."""
    words = (
        "diff-tree",
        "--stdin",
        "-r",
        "--root",
        "--no-renames",
        "--diff-merges=first-parent",
        "--name-status",
        "-z",
    )
    asked = "".join(f"{sha}\n" for sha in dict.fromkeys(shas))
    shown = iter((await git(folder, *words, stdin=asked.encode())).decode(errors="replace").split("\0"))
    found: dict[str, list[tuple[str, str]]] = {}
    files: list[tuple[str, str]] = []
    for word in shown:
        if len(word) >= _SHA:
            files = found.setdefault(word, [])
        elif word:
            files.append((word, next(shown)))
    return found


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
