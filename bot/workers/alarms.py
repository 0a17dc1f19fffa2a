"""Alarms: what the runs of the default branch mean for them, and the one issue that each of them has."""

from dataclasses import dataclass, replace
from typing import Any, cast

from sqlalchemy import Executable

from bot.core.alarms import AlarmState, step_of
from bot.core.fingerprint import fingerprint_of, series_id
from bot.core.nouns import BenchmarkReport, Call, PlannedLease, RepoConfig, Report
from bot.measure.verdict import Comparison
from bot.report.issue import render_issue
from bot.services import Services
from bot.store.alarms import alarm_report, open_alarms, raise_alarm, renew
from bot.store.codec import dump, load
from bot.store.memory import Alarm
from bot.store.messages import show
from bot.store.reports import Rows
from bot.store.rows import Change
from bot.workers.base import Worker
from bot.workers.outbox import marker

# what is wanted of an alarm, and the state that it is in then
ENDS = {"close": "closed", "accept": "accepted"}


class Alarms(Worker[Alarm]):
    """Shows each alarm as an issue, edits it as more becomes known, and closes it at its end."""

    noun = "alarm"
    table = Alarm

    async def step(self, row: Alarm) -> Change:
        """Say what is known now; an alarm that is to end ends with its last words."""
        now = self.services.clock()
        state = ENDS.get(row.want, row.state)
        ended_at = row.ended_at if state == row.state else now
        async with self.services.database.read() as tx:
            settings = self.services.settings
            report = await alarm_report(tx, row, settings.base_url, settings.github_web_url)
        report = replace(report, state=cast(AlarmState, state), ended_at=ended_at)
        key = f"alarm:{row.id}"
        wanted = render_issue(report, marker=marker(key))
        place: dict[str, Any] = {"kind": "issue", "repository_id": row.repository_id, "number": 0, "request_id": None}
        told = show(self.services.database, key, wanted, now=now, **place)
        return Change(state=state, values={"want": "", "ended_at": ended_at}, writes=(told,))


async def consequences(services: Services, rows: Rows, report: Report) -> list[Executable]:
    """What a report on the default branch opens, renews and closes."""
    call = load(Call, rows.request.call)
    planned = {lease.id: load(PlannedLease, lease.planned) for lease in rows.leases}
    writes: list[Executable] = []
    for benchmark in report.benchmarks:
        about = _Measured(services, call, rows.request.id, benchmark)
        writes += await about.consequences(planned[benchmark.lease_id])
    return writes


@dataclass(frozen=True, slots=True)
class _Measured:
    """One benchmark of a report on the default branch."""

    services: Services
    call: Call
    request_id: str
    benchmark: BenchmarkReport

    async def consequences(self, planned: PlannedLease) -> list[Executable]:
        """The statements on the alarms of its series, and on the one that says that it fails."""
        config, repository_id = self.call.config or RepoConfig(), self.call.pull.repository_id
        if planned.benchmark not in config.benchmarks or self.benchmark.verdict is None:
            return []
        fingerprint = fingerprint_of(config, planned, self.call.hardware.get(planned.hardware))
        names = [series_id(repository_id, fingerprint, one.metric) for one in self.benchmark.comparisons]
        failing = f"failing:{planned.benchmark}:{planned.scenario}:{planned.init}:{planned.hardware}"
        async with self.services.database.read() as tx:
            known = await open_alarms(tx, repository_id, [*names, failing])
        writes = self._failing(failing, known.get(failing))
        for name, one in zip(names, self.benchmark.comparisons, strict=True):
            writes += self._of_series(name, one, known.get(name))
        return writes

    def _of_series(self, name: str, one: Comparison, alarm: Alarm | None) -> list[Executable]:
        step = step_of(one.verdict, is_open=alarm is not None, gate=one.metric.gate)
        said = {"sentence": one.sentence, "comparison": dump(one)}
        if step == "open":
            about = {"kind": "regression", "key": name, "name": f"{self.benchmark.benchmark}.{one.metric.name}"}
            good = one.base[-1].commit if one.base else ""
            return [self._raise(**about, **said, good_sha=good)]
        return self._renew(alarm, close=step == "close", **said) if step and alarm else []

    def _failing(self, key: str, alarm: Alarm | None) -> list[Executable]:
        fails = self.benchmark.verdict == "failed"
        failed = [run for run in self.benchmark.runs if run.state == "failed" and run.reason is not None]
        why = self.benchmark.reason or next((run.reason for run in failed), None)
        sentence = why.sentence if why else "Its runs fail."
        if fails and alarm is None:
            return [self._raise(kind="failing", key=key, name=self.benchmark.benchmark, sentence=sentence)]
        if alarm is None or self.benchmark.verdict == "not measured":
            return []
        return self._renew(alarm, close=not fails, sentence=sentence if fails else "It runs again.")

    def _raise(self, **values: Any) -> Executable:
        """A new alarm on the commit that was measured."""
        services, head = self.services, self.call.head_sha
        variant = (self.benchmark.scenario, self.benchmark.init, self.benchmark.hardware)
        common = {
            "id": services.new_id(),
            "repository_id": self.call.pull.repository_id,
            "variant": ", ".join(dict.fromkeys(word for word in variant if word not in ("default", "local"))),
            "bad_sha": head,
            "last_sha": head,
            "request_id": self.request_id,
        }
        return raise_alarm({**common, **values}, services.clock())

    def _renew(self, alarm: Alarm, *, close: bool, **values: Any) -> list[Executable]:
        seen = {"last_sha": self.call.head_sha, "request_id": self.request_id, **values}
        return [renew(alarm.id, self.services.clock(), want="close" if close else "", **seen)]
