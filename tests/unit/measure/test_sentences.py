"""Every inconclusive sentence: values, difference, interval, tolerance, counts and what to do next."""

import dataclasses
from collections.abc import Sequence
from typing import get_args

import pytest
from syrupy.assertion import SnapshotAssertion

from bot.measure.comparison import Comparison, Evidence, Why
from bot.measure.confirming import confirm, unconfirmed
from bot.measure.metrics import Metric, Sample
from bot.measure.verdict import judge, judge_report

ACCURACY = Metric(name="accuracy", tag="a", better="higher", unit="pp", tolerance=0.5, noise=0.3, gate=True)
STEP = Metric(name="step", tag="t", better="lower", unit="s", scale="log", tolerance=0.05, noise=0.03, per="machine")
SCORE = Metric(name="score", tag="s")
BASE = (76.4, 76.5, 76.3)


def _side(values: Sequence[float], commit: str, machine: str) -> tuple[Sample, ...]:
    return tuple(
        Sample(value=value, seed=at, machine=machine or f"{commit[:1]}{at}", commit=commit * 8, pair=at)
        for at, value in enumerate(values)
    )


def _judge(
    metric: Metric, head: Sequence[float], base: Sequence[float], machine: str = "m", *, paired: bool = False, **n: int
) -> Comparison:
    sides = {"head": _side(head, "head", machine), "base": _side(base, "base", machine)}
    return judge(Evidence(metric=metric, paired=paired, **sides, **n))


def _among_many() -> Comparison:
    doubtful = _judge(ACCURACY, (75.75, 75.80, 75.72), BASE)
    return judge_report([doubtful, *[_judge(ACCURACY, BASE, BASE)] * 199])[0]


def _taken_back() -> Comparison:
    first = _judge(ACCURACY, (73.0, 73.1, 73.0), BASE)
    return confirm(first, _judge(ACCURACY, (76.3,), (76.4,), "two"))


SITUATIONS: dict[str, Comparison] = {
    "suspected, one run": _judge(ACCURACY, (70.0,), BASE),
    "suspected, split vote": _judge(dataclasses.replace(ACCURACY, noise=0.05), (75.95, 75.8), (76.4, 76.4)),
    "suspected, many gates": _among_many(),
    "unrepeated": unconfirmed(_judge(ACCURACY, (75.0, 75.1), BASE)),
    "unrepeated, pairs": unconfirmed(_judge(STEP, (1.2, 1.21), (1.0, 1.0), paired=True)),
    "unconfirmed": _taken_back(),
    "more_runs, one seed": _judge(ACCURACY, (75.8,), BASE),
    "more_runs, pair": _judge(STEP, (1.03,), (1.0,), paired=True),
    "more_runs, machines": _judge(STEP, (1.03, 1.06), (1.0, 1.04), ""),
    "more_runs, never": _judge(dataclasses.replace(ACCURACY, noise=9.0), (75.8, 76.0), BASE),
    "more_runs, a gain": _judge(dataclasses.replace(ACCURACY, noise=0.2), (76.9, 76.9), BASE),
    "one_machine": _judge(STEP, (1.5, 1.5), (1.0, 1.0)),
    "no_base": _judge(ACCURACY, (76.4, 76.5), (), failed_base=2),
    "no_noise": _judge(dataclasses.replace(ACCURACY, noise=None), (75.8,), (76.4,)),
    "no_tolerance": _judge(dataclasses.replace(ACCURACY, tolerance=None), (75.8, 75.9), BASE),
    "no_direction": _judge(SCORE, (4.0, 4.2), (5.0, 5.3)),
    "failed_runs": _judge(ACCURACY, BASE, BASE[:2], failed_base=1),
    "missing_values": _judge(ACCURACY, BASE, BASE[:2], missing_base=1),
    "out_of_range": _judge(SCORE, (1e308, -1e308), (1e308, 1e308)),
}


def test_sentences(snapshot: SnapshotAssertion) -> None:
    assert "".join(f"{name}\n  {found.sentence}\n" for name, found in SITUATIONS.items()) == snapshot


def test_every_reason_has_its_situation() -> None:
    reasons = {name.split(",")[0] for name in SITUATIONS}
    assert reasons == set(get_args(Why)) - {""}
    for name, found in SITUATIONS.items():
        assert (found.verdict, found.reason) == ("inconclusive", name.split(",")[0]), name


@pytest.mark.parametrize("name", sorted(set(SITUATIONS) - {"no_base", "out_of_range"}))
def test_nothing_that_is_known_is_left_out(name: str) -> None:
    found = SITUATIONS[name]
    said = found.sentence
    assert " vs " in said
    assert ("interval" in said) is (found.interval is not None)
    assert ("; tolerance " in said) is (found.metric.tolerance is not None)
    assert f"{found.units} {'interleaved ' if found.counted == 'pair' else ''}{found.counted}" in said
    assert found.counted == "pair" or f"{found.base_units} base" in said
