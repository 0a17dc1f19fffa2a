"""What a push did to a repository: the refs that moved, and what GitHub tells of each."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from bot.sandbox import bare
from bot.sandbox.shapes import Json, Shapes
from bot.sandbox.state import Account, Repository

NOTHING = "0" * 40
BRANCHES = "refs/heads/"
TAGS = "refs/tags/"
# more tags than these in one push are told to nobody
MOST_TAGS = 3
# a push of more commits tells only the newest
MOST_COMMITS = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One ref before and after; a side that is not there is forty zeros."""

    ref: str
    before: str
    after: str

    @property
    def branch(self) -> str:
        """The name of the branch, empty for a tag."""
        return self.ref.removeprefix(BRANCHES) if self.ref.startswith(BRANCHES) else ""

    @property
    def deleted(self) -> bool:
        """Whether the ref is gone."""
        return self.after == NOTHING


def moves_between(before: dict[str, str], after: dict[str, str]) -> list[Move]:
    """The refs that differ, branches first."""
    differing = [name for name in sorted(before | after) if before.get(name) != after.get(name)]
    return [Move(ref=name, before=before.get(name, NOTHING), after=after.get(name, NOTHING)) for name in differing]


def told(moves: Iterable[Move]) -> list[Move]:
    """Those of one push that the Apps hear of."""
    branches = [move for move in moves if move.branch]
    tags = [move for move in moves if not move.branch]
    return branches + (tags if len(tags) <= MOST_TAGS else [])


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    """One moved ref, where, by whom; `known` are the commits that other refs and its own past already lead to."""

    repository: Repository
    move: Move
    who: Account
    known: tuple[str, ...]


async def push_fields(shapes: Shapes, push: Push) -> dict[str, Any]:
    """The fields of a `push` webhook that are its own."""
    move = push.move
    commits, head, forced = await _commits(shapes, push)
    created = move.before == NOTHING
    return {
        "ref": move.ref,
        "before": move.before,
        "after": move.after,
        "created": created,
        "deleted": move.deleted,
        "forced": forced,
        "base_ref": None,
        "compare": _compare(shapes, push),
        "commits": commits,
        "head_commit": head,
        "pusher": {"name": push.who.login, "email": f"{push.who.login}@localhost"},
    }


def _compare(shapes: Shapes, push: Push) -> str:
    web, move = f"{shapes.web}/{push.repository.full_name}", push.move
    if move.deleted or move.before == NOTHING:
        return f"{web}/compare/{(move.before if move.deleted else move.after)[:12]}"
    return f"{web}/compare/{move.before[:12]}...{move.after[:12]}"


async def _commits(shapes: Shapes, push: Push) -> tuple[list[Json], Json | None, bool]:
    """Commits oldest first, the one at the tip, and whether history was rewritten."""
    folder, move = push.repository.folder, push.move
    if move.deleted:
        return [], None, False
    created = move.before == NOTHING
    forced = not created and not await bare.leads_to(folder, move.before, move.after)
    new = {commit.sha for commit in await bare.log(folder, move.after, without=push.known, at_most=MOST_COMMITS)}
    # a new branch shows what no other ref has, a moved one all that it has gained
    without = push.known if created else (move.before,)
    gained = (await bare.log(folder, move.after, without=without, at_most=MOST_COMMITS))[::-1]
    (tip,) = await bare.log(folder, move.after, at_most=1)
    files = await bare.touched(folder, [commit.sha for commit in (*gained, tip)])
    shaped = {
        commit.sha: shapes.pushed_commit(push.repository, commit, files.get(commit.sha, []), distinct=commit.sha in new)
        for commit in (*gained, tip)
    }
    listed = [] if move.ref.startswith(TAGS) else [shaped[commit.sha] for commit in gained]
    return listed, shaped[tip.sha], forced
