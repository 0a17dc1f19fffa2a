"""The first page: recent requests on public repositories."""

from aiohttp import web
from sqlalchemy import select

from bot.report.page import IndexPage, IndexRow, render_index
from bot.store.reports import STATES
from bot.store.tables import Request
from bot.web.keys import SERVICES

MOST = 50


def add_routes(app: web.Application) -> None:
    """The root of the site."""
    app.router.add_get("/", index)


async def index(request: web.Request) -> web.Response:
    """The newest requests, each with its state or verdict."""
    services = request.app[SERVICES]
    public = select(Request).where(Request.private.is_(False), Request.number > 0)
    async with services.database.read() as tx:
        rows = (await tx.scalars(public.order_by(Request.created_at.desc(), Request.id).limit(MOST))).all()
    page = IndexPage(rows=tuple(_row(row, services.settings.base_url) for row in rows))
    return web.Response(text=render_index(page), content_type="text/html")


def _row(row: Request, base_url: str) -> IndexRow:
    state = STATES[row.state]
    return IndexRow(
        url=f"{base_url}/requests/{row.id}",
        full_name=row.full_name,
        number=row.number,
        command=row.command,
        requester=row.requester,
        head_sha=row.head_sha,
        state=state,
        verdict=row.verdict or state,
        created_at=row.created_at,
    )
