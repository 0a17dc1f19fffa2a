"""docs/configuration.md says exactly what the code reads."""

import re
from pathlib import Path
from typing import get_args

import pytest

from bot.core.entries import BENCHMARK_KEYS, INPUT_KEYS, METRIC_KEYS, PARAMETER_KEYS, VARIANT_KEYS
from bot.core.nouns import Benchmark, ConfigFault, RepoConfig
from bot.core.planning import DEFAULT_PAIRS
from bot.core.quantities import duration
from bot.core.repo_config import (
    KEYS,
    MOST_BENCHMARKS,
    RETENTION_KEYS,
    SCRIPTS_KEYS,
    TIMING_KEYS,
    TRIGGER_OPTIONS,
    load,
)
from bot.core.yaml12 import DEEPEST, MOST_BYTES, MOST_NODES
from bot.measure.metrics import BUILTINS, Better, Kind, Metric, Per, Pick, Scale, complete

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "configuration.md").read_text(encoding="utf-8")
TABLES = [
    ("The file", KEYS),
    ("`scripts`", SCRIPTS_KEYS),
    ("`retention`", RETENTION_KEYS),
    ("A benchmark", BENCHMARK_KEYS),
    ("An input", INPUT_KEYS),
    ("A parameter", PARAMETER_KEYS),
    ("A scenario or init", VARIANT_KEYS),
    ("A metric", METRIC_KEYS),
    ("What runs by itself", ("benchmarks", *TRIGGER_OPTIONS, *TIMING_KEYS)),
]


def _section(title: str) -> str:
    return re.split(r"(?m)^##+ ", PAGE.split(f"# {title}\n", 1)[1])[0]


def _rows(title: str) -> dict[str, tuple[str, ...]]:
    """The cells behind the first one, of every row that begins with a name in code."""
    rows = re.findall(r"(?m)^\| `([a-z0-9_]+)` \| (.*) \|$", _section(title))
    return {name: tuple(cells.split(" | ")) for name, cells in rows}


def _metric(name: str, **declared: object) -> Metric:
    return complete(name, {"tag": "t", **declared})


@pytest.mark.parametrize(("title", "keys"), TABLES, ids=[title for title, _ in TABLES])
def test_every_key_stands_in_its_table(title: str, keys: tuple[str, ...]) -> None:
    rows = _rows(title)
    kinds = set(get_args(Kind)) if title == "A metric" else set()
    assert set(rows) - kinds == set(keys)
    assert all(default and meaning for name, (default, meaning, *_) in rows.items() if name in keys)


def test_the_example_is_a_configuration_that_uses_every_key() -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    loaded = load(example, hardware=("local", "a100x1", "v5e-4"))
    assert isinstance(loaded, RepoConfig), loaded
    for key in (*KEYS, *SCRIPTS_KEYS, *RETENTION_KEYS, *BENCHMARK_KEYS, *INPUT_KEYS, *PARAMETER_KEYS, *VARIANT_KEYS):
        assert re.search(rf"(?m)(^|[ {{]){key}:", example), key


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("The file", "{}"),
        ("A benchmark", "version: 1\nbenchmarks: {a: {}}"),
        ("An input", "version: 1\nbenchmarks: {a: {run: x, inputs: {d: {}}}}"),
        ("A parameter", "version: 1\nbenchmarks: {a: {run: x, parameters: {d: {}}}}"),
        ("A scenario or init", "version: 1\nbenchmarks: {a: {run: x, scenarios: {d: {}}}}"),
        ("`scripts`", "version: 1\nbenchmarks: {a: {run: x}}\nscripts: {}"),
        ("`retention`", "version: 1\nbenchmarks: {a: {run: x}}\nretention: {}"),
        ("What runs by itself", "version: 1\nbenchmarks: {a: {run: x}}\nschedules: {n: {}}"),
    ],
)
def test_what_is_called_required_is_and_nothing_else(title: str, text: str) -> None:
    loaded = load(text, None)
    faults: tuple[ConfigFault, ...] = () if isinstance(loaded, RepoConfig) else loaded
    missing = {match[1] for fault in faults if (match := re.match(r"The key `(\w+)` is missing", fault.sentence))}
    assert missing == {name for name, cells in _rows(title).items() if cells[0] == "required"}
    assert len(missing) == len(faults)


def test_defaults_are_those_of_the_code() -> None:
    config = load("version: 1\nbenchmarks: {a: {run: x}}\nscripts: {repository: a/b}", None)
    assert isinstance(config, RepoConfig)
    assert config.scripts is not None
    assert _rows("`scripts`")["ref"][0] == f"`{config.scripts.ref}`"
    kept = {name: cells[0] for name, cells in _rows("`retention`").items()}
    assert kept == {"good": f"`{config.keep_good}`", "bad": f"`{config.keep_bad}`"}
    entry: Benchmark = config.benchmarks["a"]
    rows = _rows("A benchmark")
    assert rows["timeout"][0] == f"`{duration(entry.timeout_s)}`"
    assert [rows["hardware"][0]] == [f"`{name}`" for name in entry.hardware]
    assert [rows["scenarios"][0]] == [f"`{variant.name}` alone" for variant in entry.scenarios]
    assert [rows["init"][0]] == [f"`{variant.name}` alone" for variant in entry.inits]
    assert _rows("A metric")["gate"][0] == f"`{str(_metric('x').gate).lower()}`"
    assert _rows("What runs by itself")["pairs"][0] == f"`{DEFAULT_PAIRS}`"


@pytest.mark.parametrize("kind", get_args(Kind))
def test_the_defaults_of_each_kind(kind: Kind) -> None:
    metric = _metric("x", kind=kind, better="lower")

    def shown(amount: float | None) -> str:
        if amount is None:
            return "none"
        return f"{amount * 100:g} %" if metric.scale == "log" else f"{amount:g} {metric.unit}"

    assert _rows("A metric")[kind] == (
        metric.scale,
        shown(metric.tolerance),
        shown(metric.noise),
        metric.per,
        metric.pick,
    )


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("kind", get_args(Kind)),
        ("pick", get_args(Pick)),
        ("better", get_args(Better)),
        ("scale", get_args(Scale)),
        ("per", get_args(Per)),
        ("builtin", tuple(BUILTINS)),
    ],
)
def test_the_words_that_a_metric_s_key_may_have(key: str, words: tuple[str, ...]) -> None:
    assert tuple(re.findall(r"`([a-z_ ]+)`", _rows("A metric")[key][1])) == words


def test_the_limits_are_those_of_the_code() -> None:
    said = " ".join(_section("The file").split())
    for limit in (
        f"more than {MOST_BYTES // 1024} KB",
        f"more than {MOST_NODES:,} values",
        f"more than {DEEPEST} levels",
        f"more than {MOST_BENCHMARKS} benchmarks",
    ):
        assert limit in said
