"""`/benchmark plan <targets>`: what a command would run and cost; nothing is started."""

from bot.commands.desk import Desk, Outcome
from bot.core.budget import must_confirm, usd
from bot.core.grammar import Spec
from bot.core.nouns import Call, Plan, PlannedLease, Refusal
from bot.core.options import OPTIONS
from bot.core.planning import FIRST_SEEDS
from bot.core.quantities import duration
from bot.core.wording import code, listed, plain
from bot.measure.metrics import Metric

SPEC = Spec(
    verb="plan",
    summary="show what a command would run and cost, without starting anything",
    usage="plan <targets> [options]",
    examples=("plan all", "plan resnet50 scenario=all seeds=3"),
    right="anyone",
    options=tuple(OPTIONS),
    needs_targets=True,
)


async def handle(call: Call, desk: Desk) -> Outcome:
    """The plan as Markdown; nothing is started."""
    planned = await desk.plan(call)
    if isinstance(planned, Refusal):
        return Outcome(refusal=planned)
    no = await desk.too_much(call, planned)
    now = f"\n\nIt would not be started now. {no.sentence} {no.hint}" if no else ""
    return Outcome(text=plan_text(planned, call) + now)


def plan_text(plan: Plan, call: Call) -> str:
    """Markdown: one row per lease, the cost, and what is taken for granted about the metrics."""
    rows = ["| benchmark | on | runs | at most | cost at most |", "|---|---|---|---|---|"]
    for lease in plan.leases:
        variant = [name for name in (lease.scenario, lease.init) if name != "default"]
        name = code(lease.benchmark) + (f" ({', '.join(code(each) for each in variant)})" if variant else "")
        longest = duration(lease.timeout_s)
        rows.append(
            f"| {name} | {code(lease.hardware)} | {order_text(lease)} | {longest} a run | {usd(lease.estimate_usd)} |"
        )
    base = f", base {code(call.base_sha[:10])} ({plain(call.baseline)})" if call.base_sha else ""
    said = [*rows, "", f"Head {code(call.head_sha[:10])}{base}. {cost_text(plan, call)}"]
    if call.head_only:
        said += ["", f"Only the head has {', '.join(code(name) for name in call.head_only)}: it is run alone."]
    noted = _metrics(plan, call)
    return "\n".join([*said, "", "What is judged:", "", *noted] if noted else said)


def cost_text(plan: Plan, call: Call) -> str:
    """What the plan may cost, with boot, setup and the end of its machines, and whether that has to be confirmed."""
    estimate = plan.estimate_usd
    said = f"Cost at most {usd(estimate)} in all."
    if estimate is None:
        said = f"Price unknown: the operator sets `price_usd_per_hour` of {listed(plan.unpriced)}."
    if must_confirm(plan, call.limits):
        said += (
            f" It would wait for somebody to confirm that, since it may be more than {usd(call.limits.confirm_usd)}."
        )
    return said


def order_text(lease: PlannedLease) -> str:
    """The runs of a lease in order, `H B B H`, with the number of seeds where they are not in pairs."""
    letters = " ".join(run.side[0].upper() for run in lease.runs)
    seeds = len({run.seed for run in lease.runs})
    against = f", against {lease.reused} base runs of the history" if lease.reused else ""
    if lease.until_decided:
        return f"{letters} ({FIRST_SEEDS} to {seeds} seeds, until decided{against})"
    paired = any(run.pair is not None for run in lease.runs)
    return letters if paired else f"{letters} ({seeds} seeds{against})"


def metric_text(metric: Metric) -> str:
    """One metric in words: where it is read, which way is better, and what counts as a change."""
    source = f"{metric.picked} of {code(metric.tag)}" if metric.tag else f"built-in {code(metric.builtin or '')}"
    if metric.better is None:
        return f"{source}; no direction is known, so it is shown without a verdict"
    tolerance = ""
    if metric.tolerance is not None:
        amount = f"{metric.tolerance * 100:g} %" if metric.scale == "log" else f"{metric.tolerance:g} {metric.unit}"
        tolerance = f", tolerance {amount.rstrip()}"
    gate = "gate" if metric.gate else "advisory"
    return f"{source}, {metric.kind}, {metric.better} is better{tolerance}, {gate}"


def _metrics(plan: Plan, call: Call) -> list[str]:
    benchmarks = call.config.benchmarks if call.config else {}
    lines = []
    for name in plan.targets:
        for metric in benchmarks[name].metrics:
            lines.append(f"- {code(name)} {code(metric.name)}: {metric_text(metric)}")
        if not benchmarks[name].metrics:
            lines.append(f"- {code(name)}: its exit status")
        for note in benchmarks[name].notes:
            lines.append(f"- {code(name)}, not said and taken for granted: {note}")
    return lines
