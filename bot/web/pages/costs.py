"""What machines have cost: month by month, by repository, person and hardware, and the newest requests."""

from datetime import UTC, datetime, timedelta

from aiohttp import web

from bot.core.budget import since, until
from bot.core.money import Spent
from bot.report.page import CostRow, CostsPage, render_costs
from bot.store.costs import SHARES, RequestCost, by_month, by_share, newest
from bot.store.reports import STATES
from bot.web.keys import SERVICES

MONTHS = 12
MOST = 30


def add_routes(app: web.Application) -> None:
    """One page; `?month=2026-11` shows another month's shares."""
    app.router.add_get("/costs", costs)


async def costs(request: web.Request) -> web.Response:
    """The last twelve months, the shares of one of them, and the newest requests."""
    services = request.app[SERVICES]
    now = services.clock()
    months = last_months(now, MONTHS)
    asked = request.query.get("month", months[-1][0])
    begin = next((begin for name, begin in months if name == asked), None)
    if begin is None:
        raise web.HTTPNotFound(text=f"There are costs of {months[0][0]} to {months[-1][0]} here.")
    end = until("month", begin)
    async with services.database.read() as tx:
        settled = {spent.name: spent for spent in await by_month(tx, months, until("month", now))}
        shares = {share: await by_share(tx, share, begin, end) for share in SHARES}
        rows = await newest(tx, MOST)
    # what lies before the first machine is not worth a line
    first = min([*settled, months[-1][0]])
    nothing = [Spent(name=name, usd=0.0, seconds=0.0, machines=0) for name, _ in months if name >= first]
    shown = CostsPage(
        month=asked,
        months=tuple(settled.get(month.name, month) for month in reversed(nothing)),
        shares=shares,
        rows=tuple(_row(row, services.settings.base_url) for row in rows),
    )
    return web.Response(text=render_costs(shown), content_type="text/html")


def last_months(now: float, count: int) -> tuple[tuple[str, float], ...]:
    """Name (`2026-11`) and beginning of the last months, this one included, oldest first."""
    found = []
    begin = since("month", now)
    for _ in range(count):
        found.append((datetime.fromtimestamp(begin, UTC).strftime("%Y-%m"), begin))
        begin = since("month", (datetime.fromtimestamp(begin, UTC) - timedelta(days=1)).timestamp())
    return tuple(reversed(found))


def _row(cost: RequestCost, base_url: str) -> CostRow:
    row = cost.request
    return CostRow(
        url=f"{base_url}/requests/{row.id}",
        full_name=row.full_name,
        number=row.number,
        command=row.command,
        requester=row.requester,
        created_at=row.created_at,
        state=row.verdict or ("waiting" if row.state == "waiting" else STATES[row.state]),
        estimate_usd=row.estimate_usd,
        reserved_usd=cost.reserved_usd,
        spent_usd=cost.spent_usd,
    )
