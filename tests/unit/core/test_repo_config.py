"""`.github/benchmark.yml`: what it means, and everything that is wrong with it, at its place."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.nouns import Benchmark, ConfigFault, Input, Parameter, RepoConfig, ScriptsSource, Variant
from bot.core.repo_config import load
from bot.core.yaml12 import MOST_BYTES
from tests.harness.cases import case_file

PRODUCT = """\
version: 1
python: "3.11"
setup: pip install -e .
setup_inputs: [pyproject.toml, requirements.txt]
scripts: {repository: org/models, ref: main}
benchmarks:
  resnet50:
    description: ResNet-50 on ImageNet-1k, 90 epochs
    run: python train.py --model resnet50 --seed {seed} --data {inputs.imagenet} {args}
    hardware: [a100x1, v5e-4]
    timeout: 6h
    groups: [classification]
    paths: [keras_cv/models/resnet/**]
    inputs:
      imagenet: {url: "https://example.org/imagenet.tar", sha256: "SHA"}
      weights: {url: "https://example.org/w.npz", sha256: "SHA"}
    parameters: {batch: {default: 256, min: 1, max: 1024}}
    scenarios: {default: {}, tiling: {args: --tiling}}
    init: {scratch: {}, imagenet: {args: "--weights {inputs.weights}"}}
    metrics:
      accuracy:   {tag: validation/accuracy, pick: best, better: higher, unit: pp, tolerance: 0.5, gate: true}
      step_time:  {tag: train/seconds_per_step, pick: median, better: lower, unit: s, tolerance: 5%, gate: true}
      train_time: {builtin: wall_seconds}
  tpu-tests:
    run: python -m pytest -m tpu
    hardware: [tpu-sim]
on_approval: {benchmarks: "@classification", on: a100x1}
schedules:
  nightly: {cron: "30 2 * * *", timezone: Europe/Berlin, benchmarks: all, seeds: 2}
retention: {good: 7, bad: 2}
""".replace("SHA", "0a" * 32)
SMALLEST = "version: 1\nbenchmarks:\n  a: {run: python a.py}\n"


def _config(text: str, hardware: tuple[str, ...] | None = None) -> RepoConfig:
    loaded = load(text, hardware)
    assert isinstance(loaded, RepoConfig), loaded
    return loaded


def _faults(text: str, hardware: tuple[str, ...] | None = None) -> tuple[ConfigFault, ...]:
    loaded = load(text, hardware)
    assert not isinstance(loaded, RepoConfig), loaded
    return loaded


def _with(line: str) -> str:
    """The smallest file with one more line at the top level."""
    return f"{SMALLEST}{line}\n"


def _entry(lines: str) -> str:
    """The smallest file with more keys in its benchmark, from line 5 on."""
    return "version: 1\nbenchmarks:\n  a:\n    run: python a.py\n" + "".join(
        f"    {line}\n" for line in lines.split("\n")
    )


def test_every_key_arrives() -> None:
    config = _config(PRODUCT, ("a100x1", "v5e-4", "tpu-sim"))
    assert (config.python, config.setup) == ("3.11", "pip install -e .")
    assert config.setup_inputs == ("pyproject.toml", "requirements.txt")
    assert config.scripts == ScriptsSource(repository="org/models", ref="main")
    assert (config.keep_good, config.keep_bad) == (7, 2)
    benchmark = config.benchmarks["resnet50"]
    assert benchmark.hardware == ("a100x1", "v5e-4")
    assert benchmark.timeout_s == 6 * 3600
    assert benchmark.inputs[0] == Input(name="imagenet", url="https://example.org/imagenet.tar", sha256="0a" * 32)
    assert benchmark.parameters == (Parameter(name="batch", default="256", minimum=1, maximum=1024),)
    assert benchmark.scenarios == (Variant(name="default"), Variant(name="tiling", args="--tiling"))
    assert benchmark.inits[1] == Variant(name="imagenet", args="--weights {inputs.weights}")
    assert benchmark.line == 8
    accuracy, step_time, train_time = benchmark.metrics
    assert (accuracy.kind, accuracy.pick, accuracy.tolerance, accuracy.scale) == ("accuracy", "best", 0.5, "linear")
    assert (step_time.kind, step_time.tolerance, step_time.scale, step_time.per) == ("time", 0.05, "log", "machine")
    assert (train_time.builtin, train_time.better, train_time.gate) == ("wall_seconds", "lower", False)
    assert config.benchmarks["tpu-tests"].metrics == ()
    assert config.on_approval is not None
    assert config.on_approval.text == "@classification on=a100x1"
    (nightly,) = config.schedules
    assert (nightly.name, nightly.text, nightly.cron) == ("nightly", "all seeds=2", "30 2 * * *")
    assert nightly.timezone == "Europe/Berlin"


def test_the_smallest_file_gets_every_default() -> None:
    config = _config(SMALLEST)
    assert config.benchmarks == {"a": Benchmark(name="a", run="python a.py", line=3)}
    assert config == RepoConfig(benchmarks=config.benchmarks)


def test_the_file_of_the_sample_repository_is_valid() -> None:
    project = Path(__file__).resolve().parents[3] / "templates" / "projects" / "resnet"
    config = _config((project / ".github" / "benchmark.yml").read_text(), ("local",))
    assert list(config.benchmarks) == ["digits-resnet", "smoke"]


def test_what_is_not_said_is_noted() -> None:
    # S02: a direction is never guessed where it is not certain, and the person is told
    config = _config(_entry("metrics: {score: {tag: score}, images_per_sec: {tag: ips}, step_time_ms: {tag: st}}"))
    score, rate, step_time = config.benchmarks["a"].metrics
    assert (score.better, rate.better, step_time.better) == (None, "higher", "lower")
    notes = config.benchmarks["a"].notes
    assert notes[0] == "`score`: no direction known, so it is shown without a verdict, pick last"
    assert notes[1].startswith("`images_per_sec`: read as time, higher is better, tolerance 5 %")
    said = "metrics: {m: {tag: m, kind: loss, better: lower, pick: min, tolerance: 1%, noise: 1%}}"
    assert _config(_entry(said)).benchmarks["a"].notes == ()


def test_picks_with_a_number_arrive() -> None:
    picks = ("at 1000", "steps to 0.5", "seconds to 76", "rate")
    text = ", ".join(f"m{at}: {{tag: t, pick: {pick}}}" for at, pick in enumerate(picks))
    metrics = _config(_entry(f"metrics: {{{text}, ms: {{tag: t, unit: ms, written: s}}}}")).benchmarks["a"].metrics
    assert [(metric.pick, metric.number) for metric in metrics[:4]] == [
        ("at", 1000),
        ("steps to", 0.5),
        ("seconds to", 76),
        ("rate", None),
    ]
    assert (metrics[4].unit, metrics[4].written) == ("ms", "s")


# ---- Y02: YAML 1.2, text stays text -------------------------------------------------------------------------------


def test_a_version_of_python_keeps_its_zero() -> None:
    assert _config(_with("python: 3.10")).python == "3.10"
    assert _config(_with('python: "3.10"')).python == "3.10"


@pytest.mark.parametrize("word", ["no", "on", "off", "y", "0123456", "12345678", "1e3", "0x10", "1:30:00", "3.10", "."])
def test_words_that_yaml_1_1_took_for_something_else_stay_texts(word: str) -> None:
    parameters = f'parameters: {{p: {{default: "{word}", choices: [{word}]}}}}'
    config = _config(_entry(f"description: {word}\nscenarios: {{s: {{args: {word}}}}}\n{parameters}"))
    benchmark = config.benchmarks["a"]
    assert benchmark.description == word
    assert benchmark.scenarios == (Variant(name="s", args=word),)
    assert benchmark.parameters[0].default == word
    assert benchmark.parameters[0].choices == (word,)


@pytest.mark.parametrize(
    ("line", "place", "told"),
    [
        ("timeout: 1:30:00", (5, 14), "`1:30:00` is no duration. It is written like `90m`, `6h` or `1h30m`"),
        ("timeout: 90", (5, 14), "Did you mean `90s` or `90m`?"),
        ("timeout: 0s", (5, 14), "`0s` is no duration"),
        ("timeout: 31d", (5, 14), "up to 30 days"),
        ("region: no", (5, 5), "There is no key `region` here."),
        ("on: {review: approved}", (5, 5), "There is no key `on` here."),
        ("metrics: {m: {tag: m, gate: yes}}", (5, 33), "`true` or `false`"),
        ('metrics: {m: {tag: m, gate: "true"}}', (5, 33), "`true` or `false`"),
        ("metrics: {m: {tag: m, better: lower, target: 1_000}}", (5, 50), "`1_000` is not a number"),
        ('metrics: {m: {tag: m, better: lower, target: "5"}}', (5, 50), "a number, without quotes"),
        ("metrics: {m: {tag: m, pick: at}}", (5, 33), "`at` needs a number. Example: `at 1000`."),
        ("metrics: {m: {tag: m, pick: at noon}}", (5, 33), "`at noon` is none of"),
        ("metrics: {m: {tag: m, pick: medain}}", (5, 33), "Did you mean `median`"),
        ("metrics: {m: {tag: m, pick: rate, per_step: many}}", (5, 49), "is not a number"),
        ("metrics: {m: {tag: m, unit: ms, written: MB}}", (5, 18), "MB cannot be turned into ms"),
        ("parameters: {n: {default: 1, min: 0o17}}", (5, 39), "`0o17` is not a number"),
    ],
)
def test_a_value_of_another_kind_is_told_and_never_read_as_something_else(
    line: str, place: tuple[int, int], told: str
) -> None:
    (fault,) = _faults(_entry(line))
    assert (fault.line, fault.column) == place
    assert told in f"{fault.sentence} {fault.hint}"


@pytest.mark.parametrize("version", ["1e0", "1.0", "2", "1e3", "0x1", "01"])
def test_only_version_1_is_known(version: str) -> None:
    (fault,) = _faults(SMALLEST.replace("version: 1", f"version: {version}"))
    assert (fault.line, fault.column, fault.where) == (1, 10, "version")
    assert f"`{version}`" in fault.sentence


# ---- faults ---------------------------------------------------------------------------------------------------------


def test_all_faults_come_at_once_in_the_order_of_the_file() -> None:
    text = """\
version: 1
pyhton: "3.11"
benchmarks:
  resnet50:
    rum: python train.py
    hardware: [a100x2]
    timeout: soon
    metrics:
      accuracy: {tag: acc, bettr: higher}
      speed: {better: higher}
  plan:
    run: python plan.py
retention: {good: -1}
"""
    faults = _faults(text, ("local", "a100x1"))
    assert [(fault.line, fault.column, fault.where) for fault in faults] == [
        (2, 1, "pyhton"),
        (5, 5, "benchmarks.resnet50.rum"),
        (5, 5, "benchmarks.resnet50"),
        (6, 16, "benchmarks.resnet50.hardware[0]"),
        (7, 14, "benchmarks.resnet50.timeout"),
        (9, 28, "benchmarks.resnet50.metrics.accuracy.bettr"),
        (10, 14, "benchmarks.resnet50.metrics.speed"),
        (11, 3, "benchmarks.plan"),
        (13, 19, "retention.good"),
    ]
    told = [f"{fault.sentence} {fault.hint}" for fault in faults]
    assert told[0] == "There is no key `pyhton` here. Did you mean `python`?"
    assert told[1].endswith("Did you mean `run`?")
    assert told[2].startswith("The key `run` is missing.")
    assert "Did you mean `a100x1`?" in told[3]
    assert "Did you mean `better`" in told[5]
    assert "tag" in told[6]
    assert "builtin" in told[6]
    assert "cannot be called `plan`" in told[7]
    assert "a whole number from 0 to 10000" in told[8]


@pytest.mark.parametrize(
    ("text", "place", "told"),
    [
        ("", (1, 1), "The file is empty."),
        ("# nothing\n", (1, 1), "The file is empty."),
        ("just words\n", (1, 1), "must be a mapping"),
        ("- a\n- b\n", (1, 1), "must be a mapping"),
        ("version: 1\n", (1, 1), "The key `benchmarks` is missing."),
        ("benchmarks: {a: {run: x}}\n", (1, 1), "The key `version` is missing."),
        ("version: 1\nbenchmarks: {}\n", (2, 13), "There is no benchmark here."),
        ("version: 1\nbenchmarks:\n", (2, 1), "There is no benchmark here."),
        ("version: 1\nbenchmarks:\n  a: {run: x}\n  a: {run: y}\n", (4, 3), "line 3 has it already"),
        ("version: 1\nversion: 1\nbenchmarks: {a: {run: x}}\n", (2, 1), "line 1 has it already"),
        ("version: 1\nbenchmarks:\n  a: {run: x, \"run\": y}\n", (3, 15), "The key `run` stands here again"),
        ("version: 1\nbenchmarks:\n\ta: {run: x}\n", (3, 1), "a tab stands where YAML allows only blanks"),
        ("version: 1\nbenchmarks: {a: {run: x}\n", (3, 1), "Not YAML"),
        ("version: 1\nbenchmarks: {a: {run: @x}}\n", (2, 23), "Put the text in quotes."),
        ("version: 1\nbenchmarks:\n  a:\n    run: x y: z\n", (4, 13), "Put a text that holds `: ` in quotes."),
        ("version: 1\nbenchmarks: {a: {run: *x}}\n", (2, 23), "names no anchor"),
        ("version: !!int 1\nbenchmarks: {a: {run: x}}\n", (1, 10), "Tags (`!name`)"),
        ("version: !!python/object/apply:os.system [id]\nbenchmarks: {a: {run: x}}\n", (1, 10), "Tags (`!name`)"),
        ("version: 1\nbenchmarks: {a: {run: x}}\n---\nversion: 1\n", (3, 1), "A second document"),
        ("%YAML 1.1\n---\nversion: 1\nbenchmarks: {a: {run: x}}\n", (2, 1), "another version of YAML"),
        ("version: 1\nbase: &b {run: x}\nbenchmarks: {a: {<<: *b}}\n", (3, 18), "no merge keys"),
        ("version: 1\nbenchmarks: {a: {run: x}, [b]: {run: y}}\n", (2, 27), "A key must be a single text."),
        ("version: 1\nbenchmarks: {a: {run: x\x07}}\n", (2, 24), "A control character"),
        ('version: 1\nbenchmarks: {a: {run: "\\U00110000"}}\n', (1, 1), "a character that does not exist"),
    ],
)  # fmt: skip
def test_what_is_no_configuration_is_told_with_its_place(text: str, place: tuple[int, int], told: str) -> None:
    faults = _faults(text)
    assert place in [(fault.line, fault.column) for fault in faults]
    assert any(told in f"{fault.sentence} {fault.hint}" for fault in faults), faults


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("python: 3", "`3` is no version of Python."),
        ("python: 2.7", "`2.7` is no version of Python."),
        ("python: [3.11]", "single text"),
        ("setup: {pip: x}", "single text"),
        ("setup_inputs: []", "The list is empty."),
        ("scripts: {ref: main}", "`repository` is missing"),
        ("scripts: {repository: https://github.com/org/models}", "is no repository"),
        ("scripts: {repository: org/models, branch: x}", "no key `branch`"),
        ("on_approval: {benchmarks: nothing}", "no benchmark or group called `nothing`"),
        ("on_approval: {benchmarks: -a}", "This says only what to leave out."),
        ("on_approval: {on: local}", "`benchmarks` is missing"),
        ("on_approval: {benchmarks: all, on: h100}", "`a` does not run on `h100`"),
        ("on_approval: {benchmarks: all, scenario: tiling}", "`a` has no scenario `tiling`"),
        ("on_approval: {benchmarks: all, pairs: 99}", "`pairs: 99` cannot be read"),
        ("on_approval: {benchmarks: all, pairs: 2, seeds: 2}", "two ways of counting runs"),
        ("on_approval: {benchmarks: all, vs: accepted}", "not available in this version"),
        ("on_approval: {benchmarks: all, vs: latest}", "no baseline"),
        ("on_approval: {benchmarks: all, cron: 1 2 3 4 5}", "no key `cron`"),
        ("schedules: {n: {benchmarks: all}}", "`cron` is missing"),
        ('schedules: {n: {benchmarks: all, cron: "0 0 * *"}}', "has 4 fields"),
        ('schedules: {n: {benchmarks: all, cron: "60 0 * * *"}}', "`60` is no minute"),
        ('schedules: {n: {benchmarks: all, cron: "0 24 * * *"}}', "`24` is no hour"),
        ('schedules: {n: {benchmarks: all, cron: "0 0 0 * *"}}', "`0` is no day of the month"),
        ('schedules: {n: {benchmarks: all, cron: "0 0 * foo *"}}', "`foo` is no month"),
        ('schedules: {n: {benchmarks: all, cron: "0 0 * * 8"}}', "`8` is no day of the week"),
        ('schedules: {n: {benchmarks: all, cron: "*/0 0 * * *"}}', "`*/0` is no minute"),
        ('schedules: {n: {benchmarks: all, cron: "9-5 0 * * *"}}', "`9-5` is no minute"),
        ('schedules: {n: {benchmarks: all, cron: "0 0 * * *", timezone: Europe/Berln}}', "no time zone"),
        ('schedules: {n: {benchmarks: all, cron: "0 0 * * *", timezone: ../../etc/passwd}}', "no time zone"),
        ("on_approval: {benchmarks: all, on: [[x]]}", "single text"),
        ("on_approval: {benchmarks: all, on: {a: b}}", "single text"),
        ("on_approval: {benchmarks: '[a\"\u201d\u201c\u2019\u2018\u00bb'']*'}", "cannot be written as a command"),
        ('schedules: {n: {benchmarks: all, cron: "*-5 0 * * *"}}', "`*-5` is no minute"),
        ('schedules: {n: {benchmarks: all, cron: "mon 0 * * *"}}', "`mon` is no minute"),
        ("schedules: {n: {benchmarks: all, cron: []}}", "single text"),
        ("retention: {good: many}", "a whole number"),
        ("retention: [1]", "must be a mapping"),
    ],
)
def test_faults_of_the_top_level(line: str, told: str) -> None:
    (fault,) = _faults(_with(line))
    assert fault.line == 4
    assert told in f"{fault.sentence} {fault.hint}"


@pytest.mark.parametrize("cron", ["*/15 * * * *", "0 2-4,6 1,15 jan-MAR mon-fri", "0 0 31 12 7", "5/10 0 * * *"])
def test_schedules_that_are_fine(cron: str) -> None:
    config = _config(_with(f'schedules: {{n: {{benchmarks: [all], cron: "{cron}"}}}}'))
    assert config.schedules[0].cron == cron
    assert config.schedules[0].timezone == "UTC"


def test_a_trigger_is_written_as_the_command_that_it_stands_for() -> None:
    text = _entry("groups: [g]\nhardware: [h1, h2]") + (
        'on_approval: {benchmarks: ["@g", -b*, "a*"], on: [h1, h2], vs: base, pairs: 3}\n'
    )
    faults = _faults(text)
    assert "No benchmark matches `-b*`" in faults[0].sentence
    config = _config(text.replace("-b*, ", ""))
    assert config.on_approval is not None
    assert config.on_approval.text == "@g a* on=h1,h2 vs=base pairs=3"


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("run: other", "line 4 has it already"),
        ("hardware: []", "The list is empty."),
        ("hardware: [all]", "cannot be the name of hardware"),
        ("hardware: {a: b}", "single text"),
        ("hardware: ~", "This is empty."),
        ("description:", "This is empty."),
        ('run: ""', "line 4 has it already"),
        ("timeout: [1h]", "single text"),
        ("groups: [a b]", "cannot be the name of a group"),
        ("inputs: {data: {url: ftp://x/y, sha256: " + "0" * 64 + "}}", "https://"),
        ("inputs: {data: {url: https://x/y}}", "`sha256` is missing"),
        ("inputs: {data: {url: https://x/y, sha256: abc}}", "64 hex digits"),
        ("inputs: {my-data: {url: https://x/y, sha256: " + "0" * 64 + "}}", "cannot be the name of an input"),
        ("parameters: {seed: {default: 1}}", "has a meaning of its own"),
        ("parameters: {lr: {min: 1}}", "`default` is missing"),
        ("parameters: {lr: {default: fast}}", "needs `choices`"),
        ("parameters: {lr: {default: 5, min: 6}}", "The default is outside"),
        ("parameters: {lr: {default: 5, min: 9, max: 1}}", "`max` is smaller than `min`"),
        ("parameters: {lr: {default: a, choices: [b]}}", "The default is outside"),
        ("parameters: {lr: {default: 5, min: 1, choices: [5]}}", "either `choices` or `min` and `max`"),
        ("parameters: {lr: {default: 1}, LR: {default: 2}}", "differ only in upper and lower case"),
        ("scenarios: {all: {}}", "cannot be called `all`"),
        ("scenarios: {t: {arg: x}}", "no key `arg`"),
        ("init: {t: {args: '{args}'}}", "Nothing fills in the placeholder `{args}`"),
        ("init: {t: {args: '{inputs.w}'}}", "Nothing fills in the placeholder `{inputs.w}`"),
        ("metrics: {m: {tag: m, kind: speed}}", "`speed` is none of"),
        ("metrics: {m: {tag: m, builtin: wall_seconds}}", "either tag"),
        ("metrics: {m: {builtin: wall_second}}", "wall_seconds"),
        ("metrics: {m: {tag: m, tolerance: -1}}", "`-1` is no amount"),
        ("metrics: {m: {tag: m, tolerance: 5 percent}}", "is no amount"),
        ("metrics: {m: {tag: m, tolerance: nan}}", "is no amount"),
        ("metrics: {m: {tag: m, gate: true}}", "A gate needs better"),
        ("metrics: {m: {tag: m, better: higher, gate: true}}", "A gate needs a tolerance"),
        ("metrics: {acc: {tag: m, tolerance: 5%}}", "for points, or add scale: log"),
        ("metrics: [m]", "must be a mapping"),
    ],
)
def test_faults_of_a_benchmark(lines: str, told: str) -> None:
    (fault,) = _faults(_entry(lines))
    assert fault.line == 5
    assert told in f"{fault.sentence} {fault.hint}"


def test_a_placeholder_that_nothing_fills_in() -> None:
    (fault,) = _faults(SMALLEST.replace("python a.py", "'python a.py --s {sed} --c ${{HOME}}'"))
    assert "Nothing fills in the placeholder `{sed}`." in fault.sentence
    assert "Did you mean `seed`?" in fault.hint
    assert "`{{` and `}}`" in fault.hint
    assert _config('version: 1\nbenchmarks: {a: {run: "echo ${{HOME}} {seed} {init} {scenario} {args}"}}')


@pytest.mark.parametrize("name", ["plan", "Status", "all", "bisect", "fresh", "-a", "a b", "@a", "a*", "é", "a" * 101])
def test_names_that_would_mean_something_else_in_a_command(name: str) -> None:
    (fault,) = _faults(f'version: 1\nbenchmarks:\n  "{name}": {{run: x}}\n')
    assert (fault.line, fault.column) == (3, 3)


def test_without_an_operator_any_hardware_will_do() -> None:
    text = _entry("hardware: [h100]")
    assert _config(text, None).benchmarks["a"].hardware == ("h100",)
    (fault,) = _faults(text, ("local",))
    assert fault.sentence == "The operator has defined no hardware `h100`."
    assert fault.hint == "There is `local`."


def test_anchors_may_repeat_texts_and_the_fault_of_a_copy_stands_at_its_source() -> None:
    text = "version: 1\nbenchmarks:\n  a: &a {run: x, timeout: 5m}\n  b: *a\n"
    assert _config(text).benchmarks["b"].timeout_s == 300
    faults = _faults(text.replace("5m", "5q"))
    assert {(fault.line, fault.column) for fault in faults} == {(3, 27)}
    assert [fault.where for fault in faults] == ["benchmarks.a.timeout", "benchmarks.b.timeout"]


# ---- limits -------------------------------------------------------------------------------------------------------


def test_aliases_cannot_grow_without_bound() -> None:
    lines = ["version: 1", "a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    faults = _faults("\n".join([*lines, "benchmarks: {a: {run: x}}"]))
    assert "With its aliases this is more than" in faults[-1].sentence
    assert faults[-1].line <= 6


def test_an_alias_into_itself_is_refused() -> None:
    assert any("no anchor that is complete" in fault.sentence for fault in _faults("a: &a [*a]\n"))


def test_nesting_and_size_are_limited() -> None:
    assert "Nested deeper than 20 levels." in _faults("a: " + "[" * 5000)[0].sentence
    assert _faults("x" * (MOST_BYTES + 1))[0].sentence == "The file is larger than 256 KB."
    assert _faults("é" * (MOST_BYTES // 2 + 1))[0].sentence == "The file is larger than 256 KB."
    deep = "a: &a [[[[[[[[[[[x]]]]]]]]]]]\nb: [[[[[[[[[[*a]]]]]]]]]]\n"
    assert "With its aliases this is nested deeper than 20 levels." in _faults(deep)[0].sentence
    many = "version: 1\nbenchmarks:\n" + "".join(f"  b{n}: {{run: x}}\n" for n in range(501))
    (fault,) = _faults(many)
    assert "at most 500" in fault.sentence


def test_a_file_full_of_faults_is_told_up_to_a_hundred() -> None:
    faults = _faults(_with("\n".join(f"k{n}: x" for n in range(300))))
    assert len(faults) == 100
    assert [fault.line for fault in faults] == list(range(4, 104))


def test_a_text_of_the_file_never_becomes_markup() -> None:
    (fault,) = _faults(_with('"`@org/team` <b>|": x'))
    assert "`'@org/team' <b>¦`" in fault.sentence


def test_a_file_of_another_tool_is_refused_without_being_misread() -> None:
    faults = _faults(case_file("19-torchbench-resnet50-metadata.yaml").read_text())
    assert any("`version` is missing" in fault.sentence for fault in faults)
    assert any(fault.where == "eval_benchmark" for fault in faults)


@given(st.text(alphabet=st.sampled_from("ab:{}[],-&*!|>'\"#%@ \n\t\\1~<?"), max_size=80))
def test_no_text_breaks_the_reader(text: str) -> None:
    for candidate in (text, f"version: 1\nbenchmarks:\n  a:\n    {text}\n"):
        loaded = load(candidate, ("local",))
        if not isinstance(loaded, RepoConfig):
            lines = candidate.count("\n") + 1
            assert loaded
            assert all(1 <= fault.line <= lines + 1 and fault.column >= 1 for fault in loaded)
            assert all(fault.sentence for fault in loaded)
