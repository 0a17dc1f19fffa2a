"""What a machine is told to do."""

import shlex

import pytest

from bot.core.calls import plan_of
from bot.core.nouns import Plan, PlannedLease, RepoConfig
from bot.core.orders import Place, run_work, with_args
from runners.protocol import fill
from runners.spec import InputWork, Source, Work
from tests.unit.core.making import BASE, HEAD, call, command, config

SCRIPTS = "d" * 40
TEXT = f"""\
version: 1
python: "3.12"
setup: pip install -e .
setup_inputs: [pyproject.toml]
scripts: {{repository: org/scripts}}
benchmarks:
  a:
    run: python a.py --seed {{seed}} --data {{inputs.data}} --lr {{lr}} {{args}} -n {{scenario}}/{{init}} '${{{{X}}}}'
    timeout: 5m
    inputs: {{data: {{url: "https://example.org/d", sha256: "{"0" * 64}"}}}}
    parameters: {{lr: {{default: 0.1, min: 0, max: 1}}}}
    scenarios: {{default: {{}}, tiling: {{args: "--tiling --from {{inputs.data}}"}}}}
    init: {{scratch: {{}}, given: {{args: "--lr-again {{lr}}"}}}}
"""


def _planned(text: str = TEXT, **options: str) -> tuple[RepoConfig, PlannedLease]:
    parsed = config(text)
    planned = plan_of(call(command("run", "a", **options), config=parsed, resolved=("a",)))
    assert isinstance(planned, Plan), planned
    return parsed, planned.leases[0]


def _work(text: str = TEXT, **options: str) -> Work:
    parsed, lease = _planned(text, **options)
    place = Place(
        source_url="https://bench/git/5",
        scripts_url="https://bench/git/{repository}",
        run_ids=tuple(f"run{run.position}" for run in lease.runs),
    )
    return run_work(call(command("run", "a"), config=parsed, resolved=("a",), scripts_sha=SCRIPTS), lease, place)


def test_both_sides_check_out_their_commit_and_the_same_scripts() -> None:
    work = _work()
    scripts = Source(url="https://bench/git/org/scripts", commit=SCRIPTS)
    assert {side: (tree.source.commit, tree.scripts) for side, tree in work.sides.items()} == {
        "head": (HEAD, scripts),
        "base": (BASE, scripts),
    }
    assert work.sides["head"].source.url == "https://bench/git/5"
    assert (work.python, work.setup, work.setup_inputs) == ("3.12", "pip install -e .", ("pyproject.toml",))
    assert work.inputs == (InputWork(name="data", url="https://example.org/d", sha256="0" * 64),)


def test_runs_keep_their_order_ids_and_seeds() -> None:
    work = _work(pairs="2", timeout="90s")
    assert [(run.id, run.side, run.seed) for run in work.runs] == [
        ("run0", "head", 1),
        ("run1", "base", 1),
        ("run2", "base", 2),
        ("run3", "head", 2),
    ]
    assert {run.timeout_s for run in work.runs} == {90}


def test_a_run_s_line_is_what_the_file_says_with_its_words_quoted() -> None:
    run = _work(scenario="tiling", init="given", set_lr="0.5").runs[2]
    words = {**run.words, "inputs.data": "/cache/my data"}
    assert shlex.split(fill(run.command, words, dict(run.raw))) == [
        *("python", "a.py", "--seed", "2", "--data", "/cache/my data", "--lr", "0.5"),
        *("--tiling", "--from", "/cache/my data", "--lr-again", "0.5"),
        *("-n", "tiling/given", "${X}"),
    ]


def test_a_script_is_told_everything_but_its_side() -> None:
    runs = _work(set_lr="0.25").runs
    assert runs[0].env == {
        "BENCHBOT_SEED": "1",
        "BENCHBOT_SCENARIO": "default",
        "BENCHBOT_INIT": "scratch",
        "BENCHBOT_SET_LR": "0.25",
    }
    # head and base of a pair differ in nothing that the script could see
    assert (runs[0].env, runs[0].command, runs[0].words) == (runs[1].env, runs[1].command, runs[1].words)


def test_what_runs_alone_needs_no_base() -> None:
    parsed = config(TEXT.replace("scripts: {repository: org/scripts}\n", ""))
    given = call(command("run", "a"), config=parsed, resolved=("a",), head_only=("a",))
    planned = plan_of(given)
    assert isinstance(planned, Plan)
    work = run_work(given, planned.leases[0], Place(source_url="u", scripts_url="s", run_ids=("x", "y")))
    assert list(work.sides) == ["head"]
    assert work.sides["head"].scripts is None
    assert [run.id for run in work.runs] == ["x", "y"]


@pytest.mark.parametrize(
    ("template", "line"),
    [
        ("a {args} b", "a --x b"),
        ("a {{args}} {args}", "a {{args}} --x"),
        ("a {{{args}}}", "a {{--x}}"),
        ("a {seed}", "a {seed}"),
    ],
)
def test_only_the_placeholder_itself_is_replaced(template: str, line: str) -> None:
    assert with_args(template, "--x") == line
