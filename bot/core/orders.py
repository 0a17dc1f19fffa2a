"""The work that a lease orders from its machine: everything that the agent must know, and nothing that it must not.

What stands in `{args}` becomes part of the command here, because it may hold `{inputs.NAME}`, which only the machine
can fill in.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from bot.core.nouns import Benchmark, Call, PlannedLease, PlannedRun, RepoConfig
from bot.core.planning import asks
from runners.spec import DeviceWork, InputWork, KeptFile, RunWork, SideWork, Source, Work

# literal braces and placeholders, in the order in which `runners.protocol.fill` reads them
_PIECES = re.compile(r"\{\{|\}\}|\{[^}]*\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the machine finds things: git addresses, `{repository}` in the second one; a run's id for each position.

    Runs that have `ended` on an earlier machine are left out; `kept` are files by run that one of them left.
    """

    source_url: str
    scripts_url: str
    run_ids: tuple[str, ...]
    ended: frozenset[str] = frozenset()
    kept: Mapping[str, tuple[KeptFile, ...]] = field(default_factory=dict)
    interruptible: bool = False
    devices: DeviceWork | None = None


def run_work(call: Call, lease: PlannedLease, place: Place) -> Work:
    """The work of one lease of a call; `call.config` must hold the lease's benchmark."""
    config = call.config or RepoConfig()
    benchmark = config.benchmarks[lease.benchmark]
    scripts = None
    if config.scripts is not None:
        url = place.scripts_url.replace("{repository}", config.scripts.repository)
        scripts = Source(url=url, commit=call.scripts_sha)
    commits = {"head": call.head_sha, "base": call.base_sha}
    sides: dict[str, SideWork] = {
        side: SideWork(source=Source(url=place.source_url, commit=commits[side]), scripts=scripts)
        for side in dict.fromkeys(run.side for run in lease.runs)
    }
    return Work(
        sides=sides,
        runs=tuple(
            _run(benchmark, lease, run, run_id, place)
            for run, run_id in zip(lease.runs, place.run_ids, strict=True)
            if run_id not in place.ended
        ),
        interruptible=place.interruptible,
        devices=place.devices,
        hosts=lease.hosts,
        setup=config.setup,
        setup_inputs=config.setup_inputs,
        python=config.python,
        inputs=tuple(InputWork(name=item.name, url=item.url, sha256=item.sha256) for item in benchmark.inputs),
    )


def command_of(benchmark: Benchmark, lease: PlannedLease) -> str:
    """The command of a benchmark in the scenario and initialisation of a lease."""
    chosen = [variant.args for variant in benchmark.scenarios if variant.name == lease.scenario]
    chosen += [variant.args for variant in benchmark.inits if variant.name == lease.init]
    return with_args(benchmark.run, " ".join(args for args in chosen if args))


def with_args(command: str, args: str) -> str:
    """The command with the text `args` in place of `{args}`; every other placeholder stays."""
    return _PIECES.sub(lambda found: args if found[0] == "{args}" else found[0], command)


def _run(benchmark: Benchmark, lease: PlannedLease, run: PlannedRun, run_id: str, place: Place) -> RunWork:
    words = {"seed": str(run.seed), "scenario": lease.scenario, "init": lease.init, **lease.parameters}
    return RunWork(
        id=run_id,
        side=run.side,
        seed=run.seed,
        command=command_of(benchmark, lease),
        words=words,
        raw={},
        env=_environment(lease, run),
        timeout_s=lease.timeout_s,
        kept=place.kept.get(run_id, ()),
        asks=asks(lease, run),
    )


def _environment(lease: PlannedLease, run: PlannedRun) -> Mapping[str, str]:
    return {
        "BENCHBOT_SEED": str(run.seed),
        "BENCHBOT_SCENARIO": lease.scenario,
        "BENCHBOT_INIT": lease.init,
        **{f"BENCHBOT_SET_{name.upper()}": value for name, value in lease.parameters.items()},
    }
