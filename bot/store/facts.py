"""What we remember of repositories, pull requests and comments."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Executable, insert, select, update

from bot.store.database import Database, Transaction, insert_into
from bot.store.rows import poke
from bot.store.tables import Allowed, Comment, Head, Repository, Request

OPEN_REQUESTS = ("accepted", "waiting", "running")


def remember_repository(database: Database, values: dict[str, Any]) -> Executable:
    """Insert or refresh a repository; `values` are the table's columns."""
    fresh = {key: value for key, value in values.items() if key != "id"}
    statement = insert_into(database, Repository).values(**values)
    return statement.on_conflict_do_update(index_elements=["id"], set_=fresh)


def remember_comment(database: Database, values: dict[str, Any]) -> Executable:
    """Insert or refresh what a comment says."""
    statement = insert_into(database, Comment).values(**values)
    return statement.on_conflict_do_update(index_elements=["id"], set_={"body": values["body"]})


def remember_head(repository_id: int, number: int, sha: str, received_at: float) -> Executable:
    """One more line in our own log of heads."""
    return insert(Head).values(repository_id=repository_id, number=number, sha=sha, received_at=received_at)


def allow(database: Database, values: dict[str, Any]) -> Executable:
    """Somebody with write right allows a commit; a second time changes nothing."""
    return insert_into(database, Allowed).values(**values).on_conflict_do_nothing()


async def head_at(tx: Transaction, repository_id: int, number: int, at: float) -> str | None:
    """The head of a pull request as we knew it at a time, None when we knew none."""
    known = select(Head.sha).where(Head.repository_id == repository_id, Head.number == number, Head.received_at <= at)
    return (await tx.scalars(known.order_by(Head.received_at.desc(), Head.id.desc()).limit(1))).one_or_none()


async def allowed_shas(tx: Transaction, repository_id: int, number: int) -> frozenset[str]:
    """Head commits that were allowed on a pull request."""
    shas = select(Allowed.sha).where(Allowed.repository_id == repository_id, Allowed.number == number)
    return frozenset(await tx.scalars(shas))


async def comment_body(tx: Transaction, comment_id: str) -> str | None:
    """What a comment said when we last saw it."""
    comment = await tx.get(Comment, comment_id)
    return comment.body if comment else None


async def requests_of(tx: Transaction, repository_id: int, number: int) -> Sequence[Request]:
    """All requests of a pull request, newest first."""
    mine = select(Request).where(Request.repository_id == repository_id, Request.number == number)
    return (await tx.scalars(mine.order_by(Request.created_at.desc(), Request.id))).all()


def cancel_requests(reason: str, *where: Any) -> Executable:
    """Ask open requests to end; `reason` is the JSON of a Reason."""
    return (
        update(Request)
        .where(Request.state.in_(OPEN_REQUESTS), Request.want != "cancel", *where)
        .values(want="cancel", reason=reason, poked=True)
    )


def confirm_requests(login: str, ids: Sequence[str]) -> Executable:
    """Somebody confirms what waiting requests may cost."""
    waiting = (Request.id.in_(ids), Request.state == "waiting", Request.confirmed_by == "")
    return update(Request).where(*waiting).values(confirmed_by=login, poked=True)


def outdate(repository_id: int, number: int, head_sha: str) -> tuple[Executable, ...]:
    """Results on older commits say from now on that the pull request has moved on."""
    older = (Request.repository_id == repository_id, Request.number == number, Request.head_sha != head_sha)
    return (
        update(Request).where(*older).values(outdated_by=head_sha),
        poke(Request, *older),
    )
