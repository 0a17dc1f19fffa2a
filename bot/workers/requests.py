"""Requests: from accepted to leases, and from their numbers to one report and what is shown of it."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from sqlalchemy import Executable, insert, update

from bot.core.budget import CONFIRM_S, must_confirm
from bot.core.calls import plan_of, repeats_of, unasked, with_history, within_caps
from bot.core.conclusion import suspected
from bot.core.nouns import Call, Plan, PlannedLease, Refusal, Report
from bot.core.planning import may_reuse
from bot.core.reasons import Reason, reason
from bot.report.check import render_check
from bot.report.comment import render_comment, short_notice
from bot.store.codec import dump, load
from bot.store.history import REMEMBERED, base_runs
from bot.store.ledger import accounts, admit, extend
from bot.store.messages import show
from bot.store.reports import Rows, build, rows_of
from bot.store.rows import Change
from bot.store.tables import Lease, Request, Run
from bot.workers.alarms import consequences
from bot.workers.base import Worker
from bot.workers.outbox import marker

LOOK_S = 60.0
# people watch progress; GitHub counts edits
PROGRESS_S = 10.0
LONG_S = 15 * 60.0
# requests behind which a person stands who can be asked
ASKED = ("command", "button")


class Requests(Worker[Request]):
    """Brings each request to its report, and shows every step of it."""

    noun = "request"
    table = Request

    async def step(self, row: Request) -> Change:
        """Plan, watch the leases, conclude, or amend what was said."""
        steps = {
            "accepted": self._plan,
            "waiting": self._wait,
            "running": self._watch,
            "reporting": self._conclude,
            "done": self._amend,
        }
        return await steps[row.state](row)

    async def _plan(self, row: Request) -> Change:
        now = self.services.clock()
        if row.want == "cancel":
            return self._ended(load(Reason, row.reason) if row.reason else reason("cancelled"))
        # limits are those of today, prices those that were told when it was asked for
        call = replace(load(Call, row.call), limits=self.services.settings.limits)
        planned = plan_of(call, self.services.settings.prefix)
        if isinstance(planned, Refusal):
            return self._not_started(planned)
        if may_reuse(call.command):
            async with self.services.database.read() as tx:
                planned = with_history(call, planned, await base_runs(tx, call, planned))
        if not row.confirmed_by and must_confirm(planned, call.limits):
            return await self._ask(row, call, planned)
        no = await admit(self.services.database, row, call, planned, now)
        if no is not None:
            return self._not_started(no)
        writes = [
            *self._rows(row, planned, now),
            # shown at once: somebody waits for a sign
            *(await self._show(replace(await self._report(row), state="queued"), row)),
        ]
        return Change(state="running", due_at=now + LOOK_S, writes=tuple(writes))

    async def _ask(self, row: Request, call: Call, planned: Plan) -> Change:
        """It costs so much that a person has to confirm it; nothing is reserved meanwhile."""
        now, prefix = self.services.clock(), self.services.settings.prefix
        async with self.services.database.read() as tx:
            no = within_caps(call, planned, await accounts(tx, call, now), now, prefix)
        if row.kind not in ASKED:
            no = unasked(call, planned, prefix)
        if no is not None:
            return self._not_started(no)
        asked = {"estimate_usd": planned.estimate_usd, "lapses_at": now + CONFIRM_S, "call": dump(call)}
        return Change(state="waiting", due_at=now, values=asked)

    async def _wait(self, row: Request) -> Change:
        """For the word of a person, for a day."""
        now = self.services.clock()
        if row.want == "cancel":
            return self._ended(load(Reason, row.reason) if row.reason else reason("cancelled"))
        if row.confirmed_by:
            return Change(state="accepted", due_at=now)
        if row.lapses_at is None or now >= row.lapses_at:
            return self._ended(reason("lapsed"))
        writes = await self._show(await self._report(row), row)
        return Change(state="waiting", due_at=row.lapses_at, writes=tuple(writes))

    def _not_started(self, no: Refusal) -> Change:
        code = "budget" if no.code in ("budget", "price_unknown") else "removed"
        return self._ended(reason(code, f"{no.sentence} {no.hint}".strip()))

    def _ended(self, why: Reason) -> Change:
        return Change(state="reporting", due_at=self.services.clock(), values={"reason": dump(why)})

    def _rows(
        self, row: Request, planned: Plan, now: float, *, after: int = 0, repeats: Sequence[str] = ()
    ) -> list[Executable]:
        """Leases and runs, `after` as many leases; each of them may repeat one that has ended."""
        writes: list[Executable] = []
        for position, lease in enumerate(planned.leases, after):
            lease_id = self.services.new_id()
            values = {"id": lease_id, "state": "queued", "due_at": now, "request_id": row.id, "position": position}
            about = {"planned": dump(lease), "hardware": lease.hardware, "created_at": now, "notes": "[]"}
            about["reserved_usd"] = lease.estimate_usd or 0.0
            about["repeats"] = repeats[position - after] if repeats else ""
            writes.append(insert(Lease).values(**values, **about))
            writes += [
                insert(Run).values(
                    id=self.services.new_id(),
                    lease_id=lease_id,
                    commit=row.head_sha if run.side == "head" else row.base_sha,
                    **asdict(run),
                )
                for run in lease.runs
            ]
        return writes

    async def _watch(self, row: Request) -> Change:
        now = self.services.clock()
        writes: list[Executable] = []
        if row.want == "cancel":
            open_leases = (Lease.request_id == row.id, Lease.state.in_(("queued", "booting", "running")))
            writes.append(update(Lease).where(*open_leases).values(want="cancel", poked=True, reason=row.reason))
        async with self.services.database.read() as tx:
            rows = await rows_of(tx, row)
        if all(lease.state in ("done", "failed", "cancelled") for lease in rows.leases):
            if row.want != "cancel" and not any(lease.repeats for lease in rows.leases):
                return await self._repeat(row, rows)
            return Change(state="reporting", due_at=now, writes=tuple(writes))
        report = build(rows, self.services.settings.base_url)
        told = dump(report)
        if told == row.report:
            return Change(state="running", due_at=now + LOOK_S, writes=tuple(writes))
        # that it has begun is shown at once, how far it has come every now and then
        begun = not row.report or load(Report, row.report).state != report.state
        writes += await self._show(report, row, due_at=now if begun else now + PROGRESS_S)
        return Change(state="running", due_at=now + LOOK_S, values={"report": told}, writes=tuple(writes))

    async def _repeat(self, row: Request, rows: Rows) -> Change:
        """What looks worse is measured again on other machines before anybody is accused, if that can be paid."""
        now = self.services.clock()
        report = build(rows, self.services.settings.base_url)
        wanted = suspected(report.benchmarks)
        leases = {lease.id: load(PlannedLease, lease.planned) for lease in rows.leases}
        call = replace(load(Call, row.call), limits=self.services.settings.limits)
        planned = Plan(targets=(), leases=tuple(leases.values()))
        more = repeats_of(call, planned, [leases[name] for name in wanted])
        if not isinstance(more, Refusal) and more.leases:
            inserts = self._rows(row, more, now, after=len(leases), repeats=wanted)
            no = await extend(self.services.database, row, call, more, inserts, now)
            if no is None:
                return Change(state="running", due_at=now)
            more = no
        values: list[Executable] = []
        if isinstance(more, Refusal):
            told = f"It was not repeated on another machine. {more.sentence}"
            values = [
                update(Lease)
                .where(Lease.id == lease.id)
                .values(notes=dump((*load(tuple[str, ...], lease.notes), told)))
                for lease in rows.leases
                if lease.id in wanted
            ]
        return Change(state="reporting", due_at=now, writes=tuple(values))

    async def _conclude(self, row: Request) -> Change:
        now = self.services.clock()
        async with self.services.database.read() as tx:
            rows = await rows_of(tx, row)
        report = replace(build(rows, self.services.settings.base_url), finished_at=now)
        writes = await self._show(report, row)
        if row.kind in REMEMBERED:
            writes += await consequences(self.services, rows, report)
        bad = report.verdict not in (None, "no change", "improvement", "passed", "new")
        if row.number and (bad or now - row.created_at > LONG_S) and now - row.created_at > 60:
            body = {"body": f"{short_notice(report)}\n{marker(f'{row.id}:notice')}"}
            writes.append(self._message(row, "notice", body))
        values = {"report": dump(report), "verdict": report.verdict or report.state, "finished_at": now}
        return Change(state="done", values=values, writes=tuple(writes))

    async def _amend(self, row: Request) -> Change:
        """What becomes known after the last word: that the pull request moved on, and what the machines cost."""
        told = load(Report, row.report)
        report = replace(await self._report(row), finished_at=told.finished_at, outdated_by=row.outdated_by)
        if (report.outdated_by, report.cost_usd) == (told.outdated_by, told.cost_usd):
            return Change(state="done")
        return Change(state="done", values={"report": dump(report)}, writes=tuple(await self._show(report, row)))

    async def _report(self, row: Request) -> Report:
        async with self.services.database.read() as tx:
            return build(await rows_of(tx, row), self.services.settings.base_url)

    async def _show(self, report: Report, row: Request, *, due_at: float | None = None) -> list[Executable]:
        if not row.number:
            return []  # a local run has no pull request to show it on
        body = {"body": render_comment(report, marker=marker(f"{row.id}:results"))}
        check = check_message(report)
        return [
            self._message(row, "results", body, due_at=due_at),
            self._message(row, "check", check, due_at=due_at),
        ]

    def _message(self, row: Request, kind: str, wanted: dict[str, Any], due_at: float | None = None) -> Executable:
        return show(
            self.services.database,
            f"{row.id}:{kind}",
            wanted,
            now=self.services.clock(),
            due_at=due_at,
            kind=kind,
            repository_id=row.repository_id,
            number=row.number,
            request_id=row.id,
        )


def check_message(report: Report) -> dict[str, Any]:
    """The check run as GitHub's API takes it."""
    check = render_check(report)
    message: dict[str, Any] = {
        "name": check.name,
        "head_sha": report.head_sha,
        "external_id": report.request_id,
        "status": check.status,
        "output": {"title": check.title, "summary": check.summary, "text": check.text},
        "actions": [asdict(action) for action in check.actions],
    }
    if check.details_url:
        message["details_url"] = check.details_url
    if check.conclusion:
        message["conclusion"] = check.conclusion
    return message
