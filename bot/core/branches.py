"""The first-parent history of a default branch: what a walk from its tip adds to what is known, and what it takes away.

Only first parents count: they are the states that the branch itself had, one after each pull request.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

_MERGE = re.compile(r"Merge pull request #(\d{1,9}) from ")
_SQUASH = re.compile(r"\(#(\d{1,9})\)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed:
    """A commit of the branch. `number` is the pull request that its subject names, None for none; `committed_at` in
    seconds since the epoch; `parent` is empty for the first commit of all."""

    sha: str
    parent: str
    author: str
    subject: str
    committed_at: float

    @property
    def number(self) -> int | None:
        """The pull request that brought it, by the way in which GitHub writes subjects of merges and squashes."""
        found = _MERGE.match(self.subject) or _SQUASH.search(self.subject)
        return int(found[1]) if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """What a walk has found: commits with their positions, and above which position the branch is no more what it
    was (None: nothing was taken away)."""

    positions: Mapping[str, int]
    kept_until: int | None = None


class Walker:
    """Follows first parents from a tip through commits that come in any order, until it meets what is known."""

    def __init__(self, tip: str, known: Mapping[str, int]) -> None:
        self._known = known
        self._seen: dict[str, Landed] = {}
        self._wanted = tip
        self.path: list[Landed] = []

    @property
    def arrived(self) -> bool:
        """Whether it has met a known commit, or the first one of all."""
        return not self._wanted or self._wanted in self._known

    def see(self, commit: Landed) -> None:
        """One more commit; the path grows as far as it can."""
        self._seen[commit.sha] = commit
        while not self.arrived and self._wanted in self._seen:
            step = self._seen.pop(self._wanted)
            self.path.append(step)
            self._wanted = step.parent

    def walk(self) -> Walk:
        """Positions of the path, newest first walked; they go on behind the commit that was met.

        Where none was met, a rewritten branch begins anew behind all that was known.
        """
        newest = max(self._known.values(), default=0)
        met = self._known.get(self._wanted)
        begin = newest if met is None else met
        positions = {step.sha: begin + len(self.path) - place for place, step in enumerate(self.path)}
        left = bool(self.path) if met is None else met < newest
        rewritten = bool(self._known) and left
        return Walk(positions=positions, kept_until=(met or 0) if rewritten else None)
