"""When a run has nothing left to learn, whatever its metric is called."""

import json
from pathlib import Path

from bot.measure.metrics import complete
from bot.workers.diverging import Divergence


def _write(folder: Path, **ends: list[str | float]) -> None:
    """Two good values of each curve and three of its own; two lines of a name are a slash."""
    lines = []
    for step in range(5):
        values = {
            name.replace("__", "/"): ([1.0, 2.0, *end][step] if len(end) == 3 else 1.0) for name, end in ends.items()
        }
        lines.append(json.dumps({"step": step, **values}))
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")


def test_each_curve_of_a_pattern_is_watched(tmp_path: Path) -> None:
    metric = complete("loss", {"tag": "eval/*/loss"})
    _write(tmp_path, eval__a__loss=[3.0, 4.0, 5.0], eval__b__loss=["NaN", "NaN", "NaN"])
    why = Divergence().look("r1", tmp_path, [metric])
    assert why == "The training diverged and was stopped: loss[b] is nan since step 2."


def test_hope_remains_while_one_of_the_last_three_is_a_number(tmp_path: Path) -> None:
    metrics = [complete("loss", {"tag": "*loss"}), complete("t", {"builtin": "wall_seconds"})]
    _write(tmp_path, loss=["NaN", 1.0, "NaN"])
    assert Divergence().look("r1", tmp_path, metrics) == ""
    assert Divergence().look("r1", tmp_path / "nothing", metrics) == ""
