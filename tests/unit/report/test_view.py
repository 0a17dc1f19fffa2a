"""What every form of a report shares: rows and words, next commands, and numbers as people read them."""

import math
from dataclasses import replace

import pytest

from bot.core.reasons import reason
from bot.measure.metrics import Metric
from bot.measure.noise import Prior
from bot.report import cells, findings, values, view
from bot.report.comment import render_comment, short_notice
from bot.report.page import RequestPage, render_request
from bot.report.terminal import render_terminal
from tests.unit.report.situations import (
    ACCURACY,
    FOUR_RUNS,
    NEW_ACCURACY,
    OPEN_ACCURACY,
    SAME_ACCURACY,
    SAME_LOSS,
    SAME_STEP,
    SECRETS,
    SLOWER_STEP,
    STEP,
    WORSE_ACCURACY,
    benchmark,
    comparison,
    report,
    situations,
)

SITUATIONS = situations()


# ---- what nobody may read


@pytest.mark.parametrize("secret", SECRETS)
def test_no_form_shows_what_a_script_let_out(secret: str) -> None:
    said = SITUATIONS["secrets"]
    forms = (
        render_comment(said, marker=""),
        short_notice(said),
        render_request(RequestPage(report=said)),
        render_terminal(said),
    )
    for form in forms:
        assert secret not in form.replace("\u200b", "")
        assert "masked" in form


# ---- rows


def test_rows_are_sorted_by_what_decides_and_how_bad_it_is() -> None:
    said = report(benchmark(comparisons=(SAME_LOSS, SAME_STEP, NEW_ACCURACY, WORSE_ACCURACY)))
    rows = findings.rows(said)
    assert [row.verdict for row in rows if row.decides] == ["regression", "no change", "new"]
    assert not rows[-1].decides


def test_a_benchmark_without_numbers_has_a_row_of_its_own() -> None:
    (row,) = findings.rows(report(benchmark(verdict=None, comparisons=())))
    assert (row.comparison, row.verdict) == (None, "not measured")
    line = view.line(row)
    assert (line.metric, line.base, line.head, line.change) == ("", "—", "—", "—")


@pytest.mark.parametrize(("most", "shown"), [(None, [4, 2]), (5, [4, 1]), (2, [2]), (0, [0])])
def test_tables_keep_the_worst_rows_and_count_the_rest(most: int | None, shown: list[int]) -> None:
    other = benchmark("vit", hardware="a100x1", lease_id="b", comparisons=(SAME_ACCURACY, SAME_LOSS))
    rows = findings.rows(report(benchmark(comparisons=(*benchmark().comparisons, WORSE_ACCURACY)), other))
    tables = view.tables(rows, most)
    assert [len(table.lines) for table in tables] == shown
    assert [table.left_out for table in tables][-1] == 6 - sum(shown)
    assert all(table.lines[0].word == "regression" for table in tables[:1] if table.lines)


def test_facts_are_those_that_are_known() -> None:
    bare = report(benchmark(runs=(), seconds=0.0, machine=""), config_sha="", base_sha="", finished_at=None)
    assert [fact.name for fact in view.method(bare)] == ["Head"]
    assert [(fact.name, fact.text) for fact in view.environment(bare)] == [("digits-resnet ran on", "local")]
    priced = report(benchmark(cost_usd=0.4))
    assert view.environment(priced)[0].text == "local, host-1, 4 min 22 s, $0.40"


@pytest.mark.parametrize(
    ("word", "count", "shown"),
    [
        ("regression", 1, "1 regression"),
        ("regression", 1200, "1,200 regressions"),
        ("suspected", 1, "1 suspected regression"),
        ("suspected", 2, "2 suspected regressions"),
        ("improvement", 2, "2 improvements"),
        ("no change", 2, "2 no change"),
    ],
)
def test_counted_words(word: str, count: int, shown: str) -> None:
    assert findings.counted_word(word, count) == shown


def test_a_failure_of_one_reason_is_told_once_per_side() -> None:
    found = view.failures(SITUATIONS["user_error"])
    assert [failure.runs for failure in found] == ["head, runs 1, 4", "base, runs 2, 3"]
    runs = (replace(FOUR_RUNS[0], state="failed"), *FOUR_RUNS[1:])
    (failure,) = view.failures(report(benchmark(runs=runs)))
    assert (failure.runs, failure.code, failure.sentence) == ("head, run 1", "failed", "The run failed.")


def test_a_benchmark_that_never_ran_says_why() -> None:
    said = report(benchmark(verdict="not measured", comparisons=(), runs=(), reason=reason("quota")))
    (failure,) = view.failures(said)
    assert (failure.code, failure.runs, failure.log) == ("quota", "", "")


# ---- what to type next


def _next(asked: object, **rest: object) -> str:
    (row,) = (r for r in findings.rows(report(benchmark(comparisons=(asked,), **rest))) if r.comparison)
    return findings.next_command(row)


def test_the_next_command_asks_for_as_many_runs_as_it_takes() -> None:
    assert _next(OPEN_ACCURACY) == "/benchmark digits-resnet seeds=3"
    assert _next(WORSE_ACCURACY) == "/benchmark digits-resnet seeds=3"
    assert _next(SLOWER_STEP) == "/benchmark digits-resnet pairs=3"
    assert _next(SAME_ACCURACY) == ""
    assert _next(OPEN_ACCURACY, scenario="tiling", init="imagenet") == (
        "/benchmark digits-resnet seeds=3 scenario=tiling init=imagenet"
    )


def test_no_command_is_offered_that_cannot_help() -> None:
    assert _next(replace(OPEN_ACCURACY, more_runs=10_000)) == ""
    assert _next(replace(OPEN_ACCURACY, more_runs=None)) == ""
    assert _next(replace(OPEN_ACCURACY, more_runs=None, reason="suspected")) == "/benchmark digits-resnet seeds=2"
    assert _next(replace(OPEN_ACCURACY, verdict="not measured")) == "/benchmark retry digits-resnet"


def test_the_hardware_is_named_where_it_was_named() -> None:
    said = report(benchmark(comparisons=(OPEN_ACCURACY,)), command="/benchmark digits-resnet on=local")
    assert view.items(said)[0].command == "/benchmark digits-resnet seeds=3 on=local"


# ---- numbers


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"),
        (75.1, "75.1"),
        (-0.00823, "−0.00823"),
        (1.2e9, "1.2e+09"),
        (3e-7, "3e−07"),
        (math.nan, "NaN"),
        (math.inf, "∞"),
        (-math.inf, "−∞"),
        (123456.0, "123456"),
        (1200.0, "1200"),
    ],
)
def test_numbers(value: float, shown: str) -> None:
    assert values.number(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1.0, "+1"), (-1.0, "−1"), (0.0, "0"), (math.inf, "+∞"), (-math.inf, "−∞"), (math.nan, "NaN"), (3e-7, "+3e−07")],
)
def test_signs(value: float, shown: str) -> None:
    assert values.signed(value) == shown


def test_no_difference_that_is_rounded_away_has_a_sign() -> None:
    assert values.signed(0.0004, 2) == "0.00"
    assert values.signed(-0.0004, 2) == "0.00"


@pytest.mark.parametrize(
    ("given", "difference", "decimals"),
    [
        ((76.4, 75.1), -1.3, 1),
        ((76.4, 76.39), -0.01, 3),
        ((0.008205, 0.00824), 0.000035, 6),
        ((), None, 0),
        ((0.0, math.nan), None, 0),
        ((120_000.0, 120_400.0), 400.0, 0),
        ((76.4, 76.4), 0.0, 1),
    ],
)
def test_decimals_show_the_difference(given: tuple[float, ...], difference: float | None, decimals: int) -> None:
    assert values.decimals_for(given, difference) == decimals


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.0, "0.0 s"),
        (8.24, "8.2 s"),
        (45.0, "45 s"),
        (59.7, "1 min"),
        (200.0, "3 min 20 s"),
        (7_500.0, "2 h 5 min"),
        (97_200.0, "1 d 3 h"),
    ],
)
def test_times(seconds: float, shown: str) -> None:
    assert values.duration(seconds) == shown


@pytest.mark.parametrize(
    ("usd", "shown"), [(0.0, "$0.00"), (0.001, "under $0.01"), (0.42, "$0.42"), (1204.4, "$1,204")]
)
def test_money(usd: float, shown: str) -> None:
    assert values.money(usd) == shown


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0 B"), (512, "512 B"), (1_400_000, "1.4 MB"), (3_000_000_000, "3.0 GB"), (7 * 10**12, "7.0 TB")],
)
def test_sizes(count: int, shown: str) -> None:
    assert values.size(count) == shown


def test_changes_in_points_in_percent_and_without_an_interval() -> None:
    assert cells.change(WORSE_ACCURACY) == "−1.3 pp (−1.9 to −0.7)"
    assert cells.change(SLOWER_STEP) == "+100 % (+92 to +109)"
    assert cells.change(NEW_ACCURACY) == cells.NOTHING
    assert cells.change(replace(WORSE_ACCURACY, difference=math.nan)) == cells.NOTHING
    assert cells.change(replace(WORSE_ACCURACY, interval=None)) == "−1.3 pp"


def test_a_value_in_points_is_a_percentage_and_what_is_not_known_is_a_dash() -> None:
    assert cells.head_value(WORSE_ACCURACY) == "75.1 %"
    assert cells.base_value(NEW_ACCURACY) == cells.NOTHING
    percent = replace(ACCURACY, unit="%")
    assert cells.tolerance(percent) == "0.5 pp"
    assert cells.tolerance(replace(STEP, tolerance=None)) == cells.NOTHING
    assert cells.noise(SLOWER_STEP) == "3 %"


def test_noise_that_was_learned_says_so() -> None:
    learned = replace(SLOWER_STEP, prior=Prior(noise=0.0213, weight=2.3))
    assert cells.noise(learned) == "2.1 % (learned)"
    assert cells.noise(replace(WORSE_ACCURACY, prior=Prior(noise=0.19, weight=2.6))) == "0.19 pp (learned)"


def test_no_arrow_where_no_direction_is_known() -> None:
    unknown: Metric = replace(ACCURACY, better=None)
    assert (cells.arrow(ACCURACY), cells.arrow(STEP), cells.arrow(unknown)) == ("↑", "↓", "")


def test_one_sided_and_huge_values_are_shown() -> None:
    odd = comparison(ACCURACY, (math.inf,), (math.nan,), head_centre=math.inf, base_centre=math.nan)
    assert cells.head_value(odd) == "∞ %"
    assert cells.base_value(odd) == "NaN %"
