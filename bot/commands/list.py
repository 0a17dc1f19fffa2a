"""`/benchmark list`: the benchmarks, groups, hardware and metrics of this repository."""

from collections.abc import Iterable, Mapping

from bot.commands.desk import Desk, Outcome
from bot.core.grammar import Spec
from bot.core.markdown import PREFIX
from bot.core.nouns import Benchmark, Call, Hardware, RepoConfig
from bot.core.targets import groups
from bot.core.wording import code, plain

SPEC = Spec(
    verb="list",
    summary="show the benchmarks, groups, hardware and metrics of this repository",
    usage="list",
    examples=("list",),
    right="anyone",
    takes="nothing",
)


def list_text(config: RepoConfig, hardware: Mapping[str, Hardware], prefix: str = PREFIX) -> str:
    """Markdown: one row per benchmark, then the groups and what the hardware costs."""
    rows = ["| benchmark | hardware | metrics | scenarios, init, parameters |", "|---|---|---|---|"]
    rows += [_row(benchmark) for benchmark in config.benchmarks.values()]
    for group, names in groups(config).items():
        if "Groups:" not in rows:
            rows += ["", "Groups:", ""]
        rows.append(f"- {code('@' + group)}: {', '.join(code(name) for name in names)}")
    rows += ["", "Hardware:", ""]
    rows += [_hardware(entry) for entry in hardware.values()]
    first = next(iter(config.benchmarks), "all")
    return "\n".join([*rows, "", f"Run one with `{prefix} {first}`; `{prefix} help run` explains the options."])


def _row(benchmark: Benchmark) -> str:
    about = f": {plain(benchmark.description)}" if benchmark.description else ""
    metrics = ", ".join(code(metric.name) + (" (gate)" if metric.gate else "") for metric in benchmark.metrics)
    return (
        f"| {code(benchmark.name)}{about} | {_codes(benchmark.hardware)} | {metrics or 'exit status'} | "
        f"{_variants(benchmark)} |"
    )


def _variants(benchmark: Benchmark) -> str:
    parts = []
    for title, names in (
        ("scenarios", [variant.name for variant in benchmark.scenarios]),
        ("init", [variant.name for variant in benchmark.inits]),
    ):
        if names != ["default"]:
            parts.append(f"{title}: {_codes(names)}")
    if benchmark.parameters:
        parts.append(_codes(f"set.{parameter.name}={parameter.default}" for parameter in benchmark.parameters))
    return "; ".join(parts)


def _hardware(entry: Hardware) -> str:
    most = entry.most_usd_per_hour
    price = "price unknown" if most is None else f"{most:.2f} USD per hour" if most else "not billed"
    if most and entry.price_usd_per_hour is None:
        price = f"at most {price} by list"
    simulated = f", simulated {entry.simulated.upper()}" if entry.simulated else ""
    return f"- {code(entry.name)}: {price}, {entry.at_once} at once{simulated}"


def _codes(names: Iterable[str]) -> str:
    return ", ".join(code(name) for name in names)


async def handle(call: Call, desk: Desk) -> Outcome:
    """What the base's configuration declares."""
    if call.config is None:
        raise AssertionError("a list is answered only where there is a configuration")
    return Outcome(text=list_text(call.config, call.hardware, desk.prefix))
