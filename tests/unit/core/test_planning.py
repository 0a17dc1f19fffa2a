"""What a command runs: order, seeds, variants, limits, and what is refused."""

from dataclasses import replace

import pytest

from bot.core.calls import plan_of
from bot.core.nouns import Parameter, Plan, PlannedLease, Refusal
from bot.core.planning import PlanInputs, again, asks, order, plan, reproduce_command, triggered, wrong_value
from tests.unit.core.making import BASE, HARDWARE, call, command, config


def _plan(*targets: str, head_only: bool = False, most_leases: int = 24, **options: str) -> Plan | Refusal:
    return plan(
        PlanInputs(
            command=command("run", *targets, **options),
            targets=targets,
            config=config(),
            hardware=HARDWARE,
            head_only=head_only,
            most_leases=most_leases,
        )
    )


def _leases(*targets: str, **options: str) -> tuple[PlannedLease, ...]:
    planned = _plan(*targets, **options)
    assert isinstance(planned, Plan), planned
    return planned.leases


def _refused(*targets: str, **options: str) -> Refusal:
    planned = _plan(*targets, **options)
    assert isinstance(planned, Refusal), planned
    assert planned.line == 3
    return planned


@pytest.mark.parametrize(
    ("options", "letters", "seeds", "pairs"),
    [
        ({}, "HBBH", [1, 1, 2, 2], [0, 0, 1, 1]),
        ({"pairs": "1"}, "HB", [1, 1], [0, 0]),
        ({"pairs": "3"}, "HBBHHB", [1, 1, 2, 2, 3, 3], [0, 0, 1, 1, 2, 2]),
        ({"seeds": "3"}, "HBBHHB", [1, 1, 2, 2, 3, 3], [None] * 6),
        ({"seeds": "auto"}, "HBBHHBBHHB", [1, 1, 2, 2, 3, 3, 4, 4, 5, 5], [None] * 10),
    ],
)
def test_runs_alternate_and_the_nth_of_each_side_has_seed_n(
    options: dict[str, str], letters: str, seeds: list[int], pairs: list[int | None]
) -> None:
    runs = order(command(**options))
    assert "".join(run.side[0].upper() for run in runs) == letters
    assert [run.seed for run in runs] == seeds
    assert [run.pair for run in runs] == pairs
    assert [run.position for run in runs] == list(range(len(runs)))


def test_what_only_the_head_has_runs_alone_with_the_same_seeds() -> None:
    runs = order(command(pairs="3"), head_only=True)
    assert [(run.side, run.seed, run.position, run.pair) for run in runs] == [
        ("head", 1, 0, None),
        ("head", 2, 1, None),
        ("head", 3, 2, None),
    ]


def test_without_options_one_lease_per_benchmark() -> None:
    leases = _leases("resnet50", "vit")
    assert [(lease.benchmark, lease.scenario, lease.init, lease.hardware) for lease in leases] == [
        ("resnet50", "default", "scratch", "a100x1"),
        ("vit", "default", "default", "local"),
    ]
    assert leases[0].timeout_s == 7200
    assert leases[0].parameters == {"batch": "256", "optimizer": "sgd"}
    # four runs of at most two hours and 1 h 45 min around them at 3.60 USD an hour; the second is on this host
    assert [lease.estimate_usd for lease in leases] == [35.1, 0.0]


def test_lists_and_all_multiply_in_the_order_of_the_file() -> None:
    leases = _leases("resnet50", scenario="all", init="imagenet,scratch", on="v5e-4,a100x1")
    assert [(lease.scenario, lease.init, lease.hardware) for lease in leases] == [
        ("tiling", "scratch", "a100x1"),
        ("tiling", "scratch", "v5e-4"),
        ("tiling", "imagenet", "a100x1"),
        ("tiling", "imagenet", "v5e-4"),
        ("default", "scratch", "a100x1"),
        ("default", "scratch", "v5e-4"),
        ("default", "imagenet", "a100x1"),
        ("default", "imagenet", "v5e-4"),
    ]
    assert len(_leases("resnet50", on="all")) == 2


def test_options_change_parameters_and_shorten_the_time() -> None:
    (lease,) = _leases("resnet50", set_batch="32", set_optimizer="adam", timeout="90m", pairs="1")
    assert lease.parameters == {"batch": "32", "optimizer": "adam"}
    assert lease.timeout_s == 5400
    assert lease.estimate_usd == pytest.approx((2 * 1.5 + 1.75) * 3.6)


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        ({"on": "a100x2"}, "unknown_hardware", "`a100x1`"),
        ({"on": "local"}, "unknown_hardware", "does not run on `local`"),
        ({"scenario": "tilin"}, "unknown_scenario", "Did you mean `tiling`?"),
        ({"init": "imagnet"}, "unknown_init", "Did you mean `imagenet`?"),
        ({"scenario": "default,nothing"}, "unknown_scenario", "no scenario `nothing`"),
        ({"timeout": "3h"}, "timeout_too_long", "the 2h of `resnet50`"),
        ({"set_batch": "2048"}, "bad_parameter", "it is at most 1024"),
        ({"set_batch": "0"}, "bad_parameter", "it is at least 1"),
        ({"set_batch": "many"}, "bad_parameter", "it is a number"),
        ({"set_batch": "1.5"}, "bad_parameter", "it is a whole number"),
        ({"set_optimizer": "lion"}, "bad_parameter", "it is one of `sgd` or `adam`"),
        ({"set_bach": "8"}, "unknown_parameter", "Did you mean `batch`?"),
    ],
)
def test_what_a_benchmark_does_not_have_is_refused_with_what_it_has(
    options: dict[str, str], code: str, told: str
) -> None:
    refusal = _refused("resnet50", **options)
    assert refusal.code == code
    assert told in f"{refusal.sentence} {refusal.hint}"


def test_one_benchmark_that_cannot_refuses_the_whole_line() -> None:
    # nothing is half started: `vit` declares no parameter
    refusal = _refused("resnet50", "vit", set_batch="8")
    assert "`vit` declares no parameter `batch`" in refusal.sentence


def test_hardware_that_the_operator_took_away_is_refused() -> None:
    inputs = PlanInputs(
        command=command(), targets=("resnet50",), config=config(), hardware={"local": HARDWARE["local"]}
    )
    refusal = plan(inputs)
    assert isinstance(refusal, Refusal)
    assert refusal.code == "unknown_hardware"
    assert "There is `local`." in refusal.hint


def test_too_many_leases_are_refused_with_their_number() -> None:
    refusal = _plan("resnet50", scenario="all", init="all", on="all", most_leases=7)
    assert isinstance(refusal, Refusal)
    assert refusal.code == "too_many_leases"
    assert "8 machines; one request may take 7" in refusal.sentence
    assert isinstance(_plan("resnet50", scenario="all", init="all", on="all", most_leases=8), Plan)


def test_a_call_compares_what_both_have_and_runs_alone_what_the_head_has() -> None:
    planned = plan_of(call(command("run", "all"), resolved=("resnet50", "resnet18", "vit"), head_only=("resnet18",)))
    assert isinstance(planned, Plan)
    assert planned.targets == ("resnet50", "resnet18", "vit")
    assert ["".join(run.side[0] for run in lease.runs) for lease in planned.leases] == ["hbbh", "hh", "hbbh"]
    assert planned.estimate_usd == pytest.approx(35.1)


@pytest.mark.parametrize("head_only", [(), ("resnet50",)])
def test_a_call_that_cannot_be_planned_is_refused_on_either_side(head_only: tuple[str, ...]) -> None:
    refusal = plan_of(call(command("run", on="nowhere"), resolved=("resnet50",), head_only=head_only))
    assert isinstance(refusal, Refusal)
    assert refusal.code == "unknown_hardware"


@pytest.mark.parametrize(
    ("value", "wrong"),
    [("0.5", ""), ("1e-3", ""), ("2", "it is at most 1"), ("nan", "it is a number"), ("inf", "it is a number")],
)
def test_a_parameter_with_fractions(value: str, wrong: str) -> None:
    assert wrong_value(Parameter(name="lr", default="0.1", minimum=0, maximum=1), value) == wrong


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["models/resnet/deep/block.py"], ("resnet50", "resnet18")),
        (["models/resnet.py"], ("resnet18",)),
        (["train.py"], ("resnet50", "resnet18")),
        (["other/train.py"], ("resnet18",)),
        (["models/vit/a/b.py", "README.md"], ("resnet18", "vit")),
        ([], ("resnet18",)),
    ],
)
def test_paths_say_which_benchmarks_a_change_is_about(paths: list[str], names: tuple[str, ...]) -> None:
    assert triggered(config(), paths) == names


def test_the_line_that_repeats_a_comparison_is_safe_to_paste() -> None:
    options = {"pairs": "3", "set.note": "a b; rm -rf x", "sha": "a" * 40, "on": "a100x1", "vs": "base"}
    given = replace(command("run", "resnet*"), options=options)
    line = reproduce_command(call(given, resolved=("resnet50",)))
    assert line == f"benchbot run resnet50 --vs {BASE} pairs=3 'set.note=a b; rm -rf x'"


def test_seeds_are_added_until_decided_and_the_machine_asks_before_each_round() -> None:
    (lease,) = _leases("resnet50", seeds="auto")
    assert lease.until_decided
    assert [run.position for run in lease.runs if asks(lease, run)] == [4, 6, 8]
    assert not again(lease).until_decided
    (fixed,) = _leases("resnet50", seeds="5")
    assert not any(asks(fixed, run) for run in fixed.runs)


def test_head_alone_has_nothing_to_decide() -> None:
    assert len(order(command(seeds="auto"), head_only=True)) == 2
