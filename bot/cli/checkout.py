"""What `benchbot run` needs to know of the git checkout it stands in. Every question is one git command."""

import subprocess
from dataclasses import dataclass
from pathlib import Path


class NotPossible(Exception):
    """What was asked of the checkout cannot be done; the text says what to do instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commits:
    """Head and base as 40 hex digits. `dirty` tells that the head is a snapshot of uncommitted changes."""

    head: str
    base: str
    baseline: str
    dirty: bool


class Checkout:
    """A git work tree. Raises NotPossible where the folder is none."""

    def __init__(self, folder: Path) -> None:
        self.top = Path(self._ask(folder, "rev-parse", "--show-toplevel"))
        self.git_folder = Path(self._ask(folder, "rev-parse", "--absolute-git-dir"))

    def commits(self, vs: str | None) -> Commits:
        """What to compare: the work tree as it stands, against `vs` or the merge-base with the main branch."""
        head, dirty = self._snapshot()
        if vs == "self":
            return Commits(head=head, base=head, baseline="itself", dirty=dirty)
        tip = self._commit("HEAD")
        if vs is not None:
            return Commits(head=head, base=self._commit(vs), baseline=vs, dirty=dirty)
        main = self._main_branch()
        base = self._ask(self.top, "merge-base", main, tip)
        if base == head:
            raise NotPossible(
                f"The work tree is what {main} holds, so there is nothing to compare. "
                "Name a commit: --vs HEAD~1, or measure the noise: --vs self."
            )
        return Commits(head=head, base=base, baseline=f"merge-base with {main}", dirty=dirty)

    def _snapshot(self) -> tuple[str, bool]:
        """A commit of the tracked files as they stand; the work tree and its branch are not touched."""
        made = self._ask(self.top, "-c", "user.name=benchbot", "-c", "user.email=benchbot@localhost", "stash", "create")
        if not made:
            return self._commit("HEAD"), False
        # a commit that no ref holds may be pruned while it waits
        self._ask(self.top, "update-ref", "refs/benchbot/worktree", made)
        return made, True

    def untracked(self) -> tuple[str, ...]:
        """Files that git does not know, and that a snapshot therefore leaves out."""
        listed = self._ask(self.top, "ls-files", "--others", "--exclude-standard")
        return tuple(listed.splitlines())

    def file(self, commit: str, path: str) -> str | None:
        """A file at a commit, None when it does not exist there."""
        shown = subprocess.run(
            ["git", "-C", str(self.top), "show", f"{commit}:{path}"], capture_output=True, check=False
        )
        return shown.stdout.decode("utf-8", "replace") if shown.returncode == 0 else None

    def _main_branch(self) -> str:
        for name in ("origin/HEAD", "main", "origin/main", "master", "origin/master"):
            try:
                self._commit(name)
            except NotPossible:
                continue
            return name
        raise NotPossible("There is no branch main here; name what to compare with: --vs BRANCH.")

    def _commit(self, ref: str) -> str:
        try:
            return self._ask(self.top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
        except NotPossible:
            raise NotPossible(f"There is no commit called {ref} here.") from None

    def _ask(self, folder: Path, *words: str) -> str:
        answer = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=False)
        if answer.returncode != 0:
            raise NotPossible(answer.stderr.strip() or f"git {words[0]} failed in {folder}")
        return answer.stdout.strip()
