"""What a command runs: benchmark x scenario x initialisation x hardware, each one lease with its runs in order."""

import re
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import product

from bot.core.budget import most_usd
from bot.core.nouns import (
    Benchmark,
    Call,
    Command,
    Hardware,
    Parameter,
    Plan,
    PlannedLease,
    PlannedRun,
    Refusal,
    RepoConfig,
    Side,
    Variant,
)
from bot.core.options import MOST_SEEDS
from bot.core.quantities import decimal, duration, seconds
from bot.core.wording import code, did_you_mean, listed, one_of

DEFAULT_PAIRS = 2
FIRST_SEEDS = 2
"""With `seeds=auto` so many seeds a side are run before anything is decided."""
MOST_LEASES = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanInputs:
    """What a plan is made from. `targets` are resolved names of `config`; `hardware` is the operator's table.

    `head_only` plans what the base cannot run: the same number of runs, of head alone.
    """

    command: Command
    targets: tuple[str, ...]
    config: RepoConfig
    hardware: Mapping[str, Hardware]
    head_only: bool = False
    most_leases: int = MOST_LEASES


class _RefusedError(Exception):
    def __init__(self, code: str, sentence: str, hint: str) -> None:
        super().__init__(sentence)
        self.refusal = (code, sentence, hint)


def plan(inputs: PlanInputs) -> Plan | Refusal:
    """The leases of a command in the order of the file, or why it cannot be run as it stands."""
    try:
        leases = [lease for name in inputs.targets for lease in _leases(inputs.config.benchmarks[name], inputs)]
    except _RefusedError as error:
        name, sentence, hint = error.refusal
        return Refusal(code=name, sentence=sentence, hint=hint, line=inputs.command.line)
    if len(leases) > inputs.most_leases:
        return Refusal(
            code="too_many_leases",
            sentence=f"This would take {len(leases)} machines; one request may take {inputs.most_leases}.",
            hint="Name fewer benchmarks, or shorter lists in `on=`, `scenario=` and `init=`.",
            line=inputs.command.line,
        )
    return Plan(targets=inputs.targets, leases=tuple(leases))


def again(lease: PlannedLease) -> PlannedLease:
    """The same on another machine: further seeds and pairs, numbered on, since what is repeated exactly tells nothing
    new. What was undecided for long on the first one is all run on the second."""
    seeds = max(run.seed for run in lease.runs)
    pairs = 1 + max((run.pair for run in lease.runs if run.pair is not None), default=-1)
    runs = tuple(
        replace(
            run,
            seed=run.seed + seeds,
            position=run.position + len(lease.runs),
            pair=None if run.pair is None else run.pair + pairs,
        )
        for run in lease.runs
    )
    return replace(lease, runs=runs, until_decided=False)


def reuse(lease: PlannedLease, base_runs: int, hardware: Hardware) -> PlannedLease:
    """The lease without runs of the base: so many of its history stand in for them."""
    heads = [run for run in lease.runs if run.side == "head"]
    runs = tuple(replace(run, position=place) for place, run in enumerate(heads))
    estimate = most_usd(hardware.most_usd_per_hour, lease.timeout_s * len(runs), lease.hosts)
    return replace(lease, runs=runs, reused=base_runs, estimate_usd=estimate)


def may_reuse(command: Command) -> bool:
    """Whether a base that was measured before would do: by seeds, and not asked to be run anew."""
    return "seeds" in command.options and not command.options.get("fresh")


def is_auto(command: Command) -> bool:
    """Whether seeds are added only until the verdict is decided."""
    return command.options.get("seeds") == "auto"


def asks(lease: PlannedLease, run: PlannedRun) -> bool:
    """Whether this run begins a round of seeds that may not be needed any more."""
    first = min(other.position for other in lease.runs if other.seed == run.seed)
    return lease.until_decided and run.seed > FIRST_SEEDS and run.position == first


def order(command: Command, *, head_only: bool = False) -> tuple[PlannedRun, ...]:
    """The runs of one lease: H B B H H B ...; with `seeds=` they belong to no pair, and head alone repeats H.

    With `seeds=auto` these are the most; head alone has nothing to decide.
    """
    by_seeds = str(command.options.get("seeds", ""))
    if is_auto(command):
        by_seeds = str(FIRST_SEEDS if head_only else MOST_SEEDS)
    count = int(by_seeds or str(command.options.get("pairs", DEFAULT_PAIRS)))
    runs: list[PlannedRun] = []
    for index in range(count):
        first_second: tuple[Side, Side] = ("head", "base") if index % 2 == 0 else ("base", "head")
        for side in first_second:
            if side == "head" or not head_only:
                pair = None if by_seeds or head_only else index
                runs.append(PlannedRun(side=side, seed=index + 1, position=len(runs), pair=pair))
    return tuple(runs)


def _leases(benchmark: Benchmark, inputs: PlanInputs) -> list[PlannedLease]:
    options = inputs.command.options
    scenarios = _chosen(benchmark, "scenario", _names(benchmark.scenarios), options.get("scenario"))
    inits = _chosen(benchmark, "init", _names(benchmark.inits), options.get("init"))
    hardware = _chosen(benchmark, "on", benchmark.hardware, options.get("on"))
    timeout_s = _timeout(benchmark, options.get("timeout"))
    parameters = _parameters(benchmark, inputs.command)
    runs = order(inputs.command, head_only=inputs.head_only)
    leases = []
    for scenario, init, name in product(scenarios, inits, hardware):
        entry = inputs.hardware.get(name)
        if entry is None:
            raise _RefusedError(
                "unknown_hardware",
                f"{code(benchmark.name)} wants {code(name)}, which the operator has not defined.",
                one_of(tuple(inputs.hardware)),
            )
        leases.append(
            PlannedLease(
                benchmark=benchmark.name,
                scenario=scenario,
                init=init,
                hardware=name,
                runs=runs,
                timeout_s=timeout_s,
                parameters=parameters,
                hosts=entry.hosts,
                estimate_usd=most_usd(entry.most_usd_per_hour, timeout_s * len(runs), entry.hosts),
                simulated=entry.simulated,
                stop_diverged=benchmark.stop_diverged,
                until_decided=is_auto(inputs.command) and not inputs.head_only and bool(benchmark.metrics),
            )
        )
    return leases


def _names(variants: tuple[Variant, ...]) -> tuple[str, ...]:
    return tuple(variant.name for variant in variants)


def _chosen(benchmark: Benchmark, option: str, names: tuple[str, ...], value: str | bool | None) -> tuple[str, ...]:
    """The names that an option picks; without it `default` where there is one, else the first."""
    if value is None:
        return ("default",) if option == "scenario" and "default" in names else names[:1]
    if value == "all":
        return names
    wanted = str(value).split(",")
    unknown = [name for name in wanted if name not in names]
    if unknown:
        what = {"on": "does not run on", "scenario": "has no scenario", "init": "has no init"}[option]
        raise _RefusedError(
            f"unknown_{'hardware' if option == 'on' else option}",
            f"{code(benchmark.name)} {what} {listed(unknown, 'or')}.",
            f"{did_you_mean(unknown[0], names)} Leave the benchmark out with {code('-' + benchmark.name)}.".strip(),
        )
    return tuple(name for name in names if name in wanted)


def _timeout(benchmark: Benchmark, value: str | bool | None) -> int:
    if value is None:
        return benchmark.timeout_s
    asked = seconds(str(value)) or 0
    if not 0 < asked <= benchmark.timeout_s:
        limit = duration(benchmark.timeout_s)
        raise _RefusedError(
            "timeout_too_long",
            f"{code(f'timeout={value}')} is longer than the {limit} of {code(benchmark.name)}.",
            f"A command may only shorten it: up to {code(f'timeout={limit}')}.",
        )
    return asked


def _parameters(benchmark: Benchmark, command: Command) -> Mapping[str, str]:
    values = {parameter.name: parameter.default for parameter in benchmark.parameters}
    declared = {parameter.name: parameter for parameter in benchmark.parameters}
    for option, value in command.options.items():
        if not option.startswith("set."):
            continue
        name = option.removeprefix("set.")
        if name not in declared:
            near = did_you_mean(name, tuple(declared)) or "It declares none."
            raise _RefusedError(
                "unknown_parameter", f"{code(benchmark.name)} declares no parameter {code(name)}.", near
            )
        wrong = wrong_value(declared[name], str(value))
        if wrong:
            raise _RefusedError(
                "bad_parameter",
                f"{code(f'{option}={value}')} does not fit {code(benchmark.name)}: {wrong}.",
                f"Without it the value is {code(declared[name].default)}.",
            )
        values[name] = str(value)
    return values


def wrong_value(parameter: Parameter, text: str) -> str:
    """Why a parameter cannot have this value; empty when it can. Numbers are whole where the declared ones are."""
    if parameter.choices:
        return "" if text in parameter.choices else f"it is one of {listed(parameter.choices, 'or')}"
    number = decimal(text)
    if number is None:
        return "it is a number"
    bounds = [bound for bound in (parameter.minimum, parameter.maximum) if bound is not None]
    only_whole = parameter.default.lstrip("+-").isdigit() and all(bound == int(bound) for bound in bounds)
    if only_whole and not text.lstrip("+-").isdigit():
        return "it is a whole number"
    if parameter.minimum is not None and number < parameter.minimum:
        return f"it is at least {parameter.minimum:g}"
    if parameter.maximum is not None and number > parameter.maximum:
        return f"it is at most {parameter.maximum:g}"
    return ""


def triggered(config: RepoConfig, changed_paths: Collection[str]) -> tuple[str, ...]:
    """The benchmarks that a change is about, for runs that nobody typed: no `paths` declared means always."""
    return tuple(
        benchmark.name
        for benchmark in config.benchmarks.values()
        if not benchmark.paths
        or any(pattern.fullmatch(path) for pattern in map(_path_pattern, benchmark.paths) for path in changed_paths)
    )


def _path_pattern(glob: str) -> re.Pattern[str]:
    """`*` and `?` stay inside one folder, `**` goes through any number of them; a folder means all below it."""
    parts = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    glob = f"{glob}**" if glob.endswith("/") else glob
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", glob)
    return re.compile("".join(parts.get(piece, re.escape(piece)) for piece in pieces), re.DOTALL)


def reproduce_command(call: Call) -> str:
    """The line that repeats the comparison on one's own machine, in a checkout of the head."""
    words = ["benchbot", "run", *(shlex.quote(name) for name in call.resolved), "--vs", call.base_sha]
    for name, value in call.command.options.items():
        if name not in ("vs", "sha", "config", "on", "timeout"):
            words.append(shlex.quote(f"{name}={value}"))
    return " ".join(words)
