"""`benchbot judge`: numbers from anywhere get the verdict that a pull request would get."""

import json
from pathlib import Path
from typing import Any

import pytest

from bot.__main__ import main

ACCURACY = {"name": "accuracy", "better": "higher", "tolerance": 0.5, "noise": 0.3, "unit": "pp"}
TIME = {"name": "step_time", "scale": "log", "better": "lower", "tolerance": "5%", "noise": 0.03, "per": "machine"}


def _values(*values: Any, machine: str = "") -> list[dict[str, Any]]:
    return [{"value": value, "machine": machine or f"m{at}", "seed": at} for at, value in enumerate(values, 1)]


def _judge(tmp_path: Path, *lines: Any, options: tuple[str, ...] = ()) -> int:
    file = tmp_path / "numbers.jsonl"
    file.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines) + "\n")
    return main(["judge", str(file), *options])


def test_one_sentence_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    worse = {"metric": ACCURACY, "head": _values(75.0, 75.1, 75.2), "base": _values(*[76.4, 76.5] * 10)}
    same = {"metric": ACCURACY, "head": _values(76.4, 76.5, 76.4), "base": _values(*[76.4, 76.5] * 10)}
    assert _judge(tmp_path, worse, same) == 1
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("regression: accuracy 75.1 % vs 76.5 %")
    assert "3 of 3 seeds worse" in first
    assert second.startswith("no change: accuracy")
    assert _judge(tmp_path, same) == 0


def test_json_for_machines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = {"metric": TIME, "head": _values(0.30, 0.31), "base": _values(0.25, 0.25), "paired": True}
    for one, other in zip(line["head"], line["base"], strict=True):
        one["machine"] = other["machine"] = "one"
    assert _judge(tmp_path, line, options=("--json",)) == 1
    (told,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert set(told) == {"verdict", "sentence", "difference", "interval"}
    assert told["verdict"] == "regression"
    assert told["difference"] == pytest.approx(0.22, abs=0.001)
    assert told["interval"][0] < told["difference"] < told["interval"][1]


def test_values_without_a_machine_are_of_the_same_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Five runs of one machine must not pass for five machines because nobody wrote down a name."""
    nameless = [{"value": value} for value in (0.30, 0.30, 0.31, 0.30, 0.31)]
    base = _values(*[0.25, 0.251] * 10)
    assert _judge(tmp_path, {"metric": TIME, "head": nameless, "base": base}) == 0
    assert "suspected" in capsys.readouterr().out
    assert _judge(tmp_path, {"metric": TIME, "head": _values(0.30, 0.30, 0.31), "base": base}) == 1


def test_a_run_that_diverged_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = {"metric": ACCURACY, "head": _values("NaN", None), "base": _values(76.4, 76.5)}
    assert _judge(tmp_path, line) == 1
    assert "2 of 2 head runs failed or diverged" in capsys.readouterr().out


@pytest.mark.parametrize("written", ["null", '"NaN"', "NaN", '"Infinity"', "Infinity", "-Infinity", "1e999", "9" * 400])
def test_however_it_is_written_it_has_diverged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], written: str
) -> None:
    base = json.dumps(_values(76.4, 76.5))
    line = f'{{"metric": {json.dumps(ACCURACY)}, "head": [{{"value": {written}}}, {{"value": 76.4}}], "base": {base}}}'
    assert _judge(tmp_path, line) == 1
    assert "1 of 2 head runs failed or diverged" in capsys.readouterr().out


def test_only_gates_decide_the_exit_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    worse = {"metric": {**ACCURACY, "gate": False}, "head": _values(75.0, 75.1, 75.2), "base": _values(76.4, 76.5)}
    failed = {"metric": {**ACCURACY, "gate": False}, "head": _values(None, 76.5), "base": _values(76.4, 76.5)}
    assert _judge(tmp_path, worse, failed) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("regression")
    assert second.startswith("regression")
    nameless = {"metric": {"name": "score"}, "head": _values(None, 76.5), "base": _values(76.4, 76.5)}
    assert _judge(tmp_path, nameless) == 1


def test_a_mark_of_the_encoding_and_line_ends_of_another_system(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    same = json.dumps({"metric": ACCURACY, "head": _values(76.4, 76.5, 76.4), "base": _values(*[76.4, 76.5] * 10)})
    file = tmp_path / "numbers.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + f"{same}\r\n\r\n  \r\n{same}".encode())
    assert main(["judge", str(file)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    file.write_text(same, encoding="utf-16")
    assert main(["judge", str(file)]) == 2
    assert "not text in UTF-8" in capsys.readouterr().err


def test_the_newest_fifty_of_the_base_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = [{"value": value, "commit": f"{at:07d}"} for at, value in enumerate([90.0] * 50 + [76.4, 76.5] * 25)]
    assert _judge(tmp_path, {"metric": ACCURACY, "head": _values(76.4, 76.5, 76.4), "base": base}) == 0
    said = capsys.readouterr().out
    assert "50 base runs since 0000050" in said
    assert "no change" in said


def test_a_report_is_stricter_than_its_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line is called worse on its own; among two hundred such a difference also comes up by chance."""
    doubtful = {"metric": ACCURACY, "head": _values(75.75, 75.80, 75.72), "base": _values(76.4, 76.5, 76.4)}
    same = {"metric": ACCURACY, "head": _values(76.4, 76.5, 76.4), "base": _values(*[76.4, 76.5] * 10)}
    lines = [doubtful, *[same] * 199]
    assert _judge(tmp_path, *lines) == 1
    assert capsys.readouterr().out.splitlines()[0].startswith("regression")
    assert _judge(tmp_path, *lines, options=("--report",)) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert "suspected regression" in first
    assert "among 200 gates" in first


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "one whole JSON object"),
        ("[1]", "Expected `object`"),
        ("[" * 100_000, "nested too deeply"),
        ('{"metric": {"name": "a", "name": "b"}, "head": [], "base": []}', "`name` is written twice"),
        ('{"metric": {"name": "a\\u001b[31m"}, "head": [], "base": []}', "cannot be shown"),
        ('{"metric": {"name": "\\ud800"}, "head": [], "base": []}', "cannot be shown"),
        ({"metric": ACCURACY, "head": [{"value": True}], "base": []}, "got `bool` - at `$.head[0].value`"),
        ({"metric": {**ACCURACY, "gate": 1}, "head": [], "base": []}, "got `int` - at `$.metric.gate`"),
        ({"metric": {**ACCURACY, "tolerance": float("nan")}, "head": [], "base": []}, "is a finite number"),
        ({"metric": {**ACCURACY, "noise": 10**400}, "head": [], "base": []}, "is a finite number"),
        ({"metric": ACCURACY, "head": [{"value": 1, "sed": 1}], "base": []}, "unknown field `sed`"),
        ({"metric": ACCURACY, "head": []}, "missing required field `base`"),
        ({"metric": {**ACCURACY, "toleranse": 1}, "head": [], "base": []}, "unknown field `toleranse`"),
        ({"metric": {**ACCURACY, "better": "up"}, "head": [], "base": []}, "$.metric.better"),
        ({"metric": {**ACCURACY, "tolerance": -1}, "head": [], "base": []}, "cannot be less than 0"),
        ({"metric": {**ACCURACY, "tolerance": "5%"}, "head": [], "base": []}, "on a log scale"),
        ({"metric": {**TIME, "tolerance": "five%"}, "head": [], "base": []}, "no percentage"),
        ({"metric": {**ACCURACY, "tolerance": None}, "head": [], "base": []}, "a gate needs a tolerance"),
        ({"metric": ACCURACY, "head": [{"value": "fast"}], "base": []}, "head[0].value is a number"),
        ({"metric": TIME, "head": _values(1.0), "base": [], "paired": True}, "as many head as base values"),
        (
            {"metric": TIME, "head": _values(1.0, machine="a"), "base": _values(1.0, machine="b"), "paired": True},
            "a pair is of one machine",
        ),
    ],
)
def test_a_bad_line_is_told_and_the_others_are_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: Any, said: str
) -> None:
    good = {"metric": ACCURACY, "head": _values(76.4, 76.5), "base": _values(76.4, 76.5)}
    assert _judge(tmp_path, good, line, good, options=("--json",)) == 2
    shown = capsys.readouterr()
    assert "line 2: " in shown.err
    assert said in shown.err
    verdicts = [json.loads(told)["verdict"] for told in shown.out.splitlines()]
    assert verdicts[1] is None
    assert verdicts[0] == verdicts[2] is not None


def test_nothing_to_judge(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge", str(tmp_path / "none.jsonl")]) == 2
    assert "cannot be read" in capsys.readouterr().err
    assert _judge(tmp_path, "") == 2
    assert "holds no line" in capsys.readouterr().err
