"""From a call to its plan: what the base has is compared, what only the head has is run alone, and all can be paid."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from bot.core.budget import Account, Excess, over_budget, over_caps, request_limit_usd, unattended, usd
from bot.core.grammar import render
from bot.core.markdown import PREFIX
from bot.core.nouns import Call, Command, Plan, PlannedLease, Refusal, RepoConfig
from bot.core.options import MOST_SEEDS
from bot.core.planning import DEFAULT_PAIRS, MOST_LEASES, PlanInputs, again, is_auto, may_reuse, plan, reuse
from bot.measure.estimate import REUSED_BASE


def plan_of(call: Call, prefix: str = PREFIX) -> Plan | Refusal:
    """The leases of a call in the order of its configuration, or why there are none."""
    planned = _planned(call)
    if isinstance(planned, Refusal):
        return planned
    excess = over_budget(planned, call)
    return refused(excess, call, prefix) if excess else planned


def with_history(call: Call, planned: Plan, base_runs: Sequence[int]) -> Plan:
    """The plan without runs of a base that was measured often enough before; `base_runs` counts them for each lease."""
    if not may_reuse(call.command):
        return planned
    leases = [
        reuse(lease, known, call.hardware[lease.hardware])
        if known >= REUSED_BASE and any(run.side == "base" for run in lease.runs)
        else lease
        for lease, known in zip(planned.leases, base_runs, strict=True)
    ]
    return replace(planned, leases=tuple(leases))


def repeats_of(call: Call, planned: Plan, suspects: Sequence[PlannedLease]) -> Plan | Refusal:
    """The leases that repeat some of a plan on other machines, or why their price is too much for the request."""
    more = tuple(again(lease) for lease in suspects)
    excess = over_budget(replace(planned, leases=planned.leases + more), call)
    return refused(excess, call, PREFIX) if excess else replace(planned, leases=more)


def within_caps(
    call: Call, planned: Plan, accounts: Iterable[Account], now: float, prefix: str = PREFIX
) -> Refusal | None:
    """Why the plan does not fit under what requests may cost together, None when it does."""
    excess = over_caps(planned, accounts, now)
    return refused(excess, call, prefix) if excess else None


def refused(excess: Excess, call: Call, prefix: str) -> Refusal:
    """The refusal of what cannot be paid for, with the command that could."""
    fits = ""
    if excess.room_usd is not None:
        limit = request_limit_usd(call)
        fits = _what_fits(call, excess.room_usd if limit is None else min(limit, excess.room_usd), prefix)
    hint = f"{excess.hint} {fits}".strip()
    return Refusal(code=excess.code, sentence=excess.sentence, hint=hint, line=call.command.line)


def unasked(call: Call, planned: Plan, prefix: str = PREFIX) -> Refusal | None:
    """Why what nobody typed is not started where a person would have to confirm it, None where nobody would."""
    excess = unattended(planned, call.limits)
    if excess is None:
        return None
    typed = render(replace(call.command, verb="run"), prefix).replace("`", "")
    return refused(replace(excess, hint=f"To be asked, type `{typed}`."), call, prefix)


def _planned(call: Call) -> Plan | Refusal:
    both = tuple(name for name in call.resolved if name not in call.head_only)
    inputs = PlanInputs(command=call.command, targets=both, config=call.config or RepoConfig(), hardware=call.hardware)
    compared = plan(inputs)
    alone = plan(replace(inputs, targets=call.head_only, head_only=True))
    if isinstance(compared, Refusal):
        return compared
    if isinstance(alone, Refusal):
        return alone
    place = {name: at for at, name in enumerate(call.resolved)}
    leases = sorted(compared.leases + alone.leases, key=lambda lease: place[lease.benchmark])
    if len(leases) > MOST_LEASES:
        return Refusal(
            code="too_many_leases",
            sentence=f"This would take {len(leases)} machines; one request may take {MOST_LEASES}.",
            hint="Name fewer benchmarks, or shorter lists in `on=`, `scenario=` and `init=`.",
        )
    return Plan(targets=call.resolved, leases=tuple(leases))


def _what_fits(call: Call, room_usd: float, prefix: str) -> str:
    """The first smaller command that fits into the room; where none does, what the smallest would take."""
    least: tuple[str, float] | None = None
    for command, estimate in _smaller(call):
        line = f"`{render(command, prefix).replace('`', '')}`"
        if estimate <= room_usd:
            return f"This would fit: {line}, up to {usd(estimate)}."
        if least is None or estimate < least[1]:
            least = (line, estimate)
    return f"Even {least[0]} may cost up to {usd(least[1])}." if least else "There is no smaller command."


def _smaller(call: Call) -> Iterator[tuple[Command, float]]:
    """Commands that take less, with the most that they may cost: fewer runs, then one machine alone, cheapest first."""
    options = call.command.options
    counted = "seeds" if "seeds" in options else "pairs"
    most = MOST_SEEDS if is_auto(call.command) else int(str(options.get(counted, DEFAULT_PAIRS)))
    for count in range(most - 1, 0, -1):
        fewer = replace(call.command, verb="run", options={**options, counted: str(count)})
        planned = _planned(replace(call, command=fewer))
        if isinstance(planned, Plan) and planned.estimate_usd is not None:
            yield fewer, planned.estimate_usd
    least = _planned(replace(call, command=replace(call.command, options={**options, counted: "1"})))
    if isinstance(least, Refusal) or least.estimate_usd is None or len(least.leases) == 1:
        return
    for lease in sorted(least.leases, key=lambda lease: lease.estimate_usd or 0.0):
        alone = {"on": lease.hardware, "scenario": lease.scenario, "init": lease.init, counted: "1"}
        named = {name: value for name, value in alone.items() if name in options or name == counted}
        command = replace(call.command, verb="run", targets=(lease.benchmark,), options={**options, **named})
        yield command, lease.estimate_usd or 0.0
