"""Reports as the bot meets them, one per situation; snapshots, pages and properties are made of these."""

from dataclasses import replace

from bot.core.nouns import BenchmarkReport, Link, Report, RunReport, Side
from bot.core.reasons import reason
from bot.measure.metrics import Metric, Sample
from bot.measure.verdict import Comparison

HEAD = "abc1234d5e6f708192a3b4c5d6e7f8091a2b3c4d"
BASE = "def5678a9b0c1d2e3f405162738495a6b7c8d9e0"
CONFIG = "0123456789abcdef0123456789abcdef01234567"
BOT = "https://bench.example"
ACCURACY = Metric(
    name="accuracy", kind="accuracy", better="higher", unit="pp", scale="linear", tolerance=0.5, noise=0.3, gate=True
)
STEP = Metric(
    name="step_time", kind="time", better="lower", unit="s", scale="log", tolerance=0.05, noise=0.03, gate=True
)
LOSS = Metric(name="loss", kind="loss", better="lower", unit="", scale="log", tolerance=0.02, noise=0.02, gate=False)


def samples(values: tuple[float, ...], commit: str) -> tuple[Sample, ...]:
    return tuple(
        Sample(value=value, seed=seed, machine="lease1", commit=commit, pair=seed) for seed, value in enumerate(values)
    )


def comparison(metric: Metric, head: tuple[float, ...], base: tuple[float, ...], **rest: object) -> Comparison:
    values: dict[str, object] = {
        "metric": metric,
        "verdict": "no change",
        "reason": "",
        "sentence": "",
        "head": samples(head, HEAD),
        "base": samples(base, BASE),
        "head_centre": sum(head) / len(head) if head else None,
        "base_centre": sum(base) / len(base) if base else None,
        "difference": None,
        "interval": None,
        "scale": metric.scale,
        "level": 90,
        "p": None,
        "worse_runs": 0,
        "counted": "pair" if metric.kind == "time" else "seed",
        "units": len(head),
        "base_units": len(base),
    }
    return Comparison(**(values | rest))  # type: ignore[arg-type]  # the values are those of the table above


SAME_ACCURACY = comparison(
    ACCURACY,
    (76.3, 76.5),
    (76.4, 76.4),
    sentence="no change: accuracy 0.0 pp (90 % interval -0.3 to +0.3 pp, inside 0.5 pp); 2 pairs",
    difference=0.0,
    interval=(-0.3, 0.3),
)
WORSE_ACCURACY = comparison(
    ACCURACY,
    (75.0, 75.2),
    (76.5, 76.3),
    verdict="regression",
    sentence="regression: accuracy 75.1 % vs 76.4 % (-1.3 pp, 99 % interval -1.9 to -0.7; tolerance 0.5); 2 of 2 worse",
    difference=-1.3,
    interval=(-1.9, -0.7),
    level=99,
    worse_runs=2,
)
SAME_STEP = comparison(
    STEP,
    (0.00823, 0.00825),
    (0.0082, 0.00821),
    sentence="no change: step time +0.4 % (90 % interval -0.9 to +1.7 %, inside 5 %); 2 interleaved pairs",
    difference=0.004,
    interval=(-0.009, 0.017),
)
SLOWER_STEP = comparison(
    STEP,
    (0.0164, 0.0166),
    (0.0082, 0.0083),
    verdict="regression",
    sentence="regression: step_time 0.0165 s vs 0.00825 s (+100 %, 99 % interval +92 to +109 %; tolerance 5 %)",
    difference=1.0,
    interval=(0.92, 1.09),
    level=99,
    worse_runs=2,
)
OPEN_ACCURACY = comparison(
    ACCURACY,
    (75.8,),
    (76.4,),
    verdict="inconclusive",
    sentence="inconclusive: accuracy -0.6 pp, but 1 seed cannot tell 0 from -1.9 pp; 2 more seeds can tell (seeds=3)",
    difference=-0.6,
    interval=(-1.9, 0.7),
    more_runs=2,
)
SAME_LOSS = comparison(
    LOSS,
    (0.231, 0.229),
    (0.228, 0.23),
    sentence="no change: loss +0.4 % (90 % interval -1.1 to +1.9 %, inside 2 %)",
    difference=0.004,
    interval=(-0.011, 0.019),
)
NEW_ACCURACY = comparison(
    ACCURACY, (71.0, 71.4), (), verdict="new", sentence="new: accuracy 71.2 %, nothing to compare with"
)


BETTER_ACCURACY = comparison(
    ACCURACY,
    (78.0, 78.2),
    (76.5, 76.3),
    verdict="improvement",
    sentence="improvement: accuracy 78.1 % vs 76.4 % (+1.7 pp, 99 % interval +1.1 to +2.3; tolerance 0.5); 2 of 2",
    difference=1.7,
    interval=(1.1, 2.3),
    level=99,
)


def run(position: int, side: Side, seed: int, **rest: object) -> RunReport:
    values: dict[str, object] = {
        "id": f"run{position}",
        "side": side,
        "seed": seed,
        "position": position,
        "commit": HEAD if side == "head" else BASE,
        "state": "done",
        "seconds": 61.5 + position,
        "imported": f"digits of {(HEAD if side == 'head' else BASE)[:7]} from src/digits",
        "links": (Link(name="run", url=f"{BOT}/runs/run{position}"),),
    }
    return RunReport(**(values | rest))  # type: ignore[arg-type]  # the values are those of the table above


FOUR_RUNS = (run(0, "head", 0), run(1, "base", 0), run(2, "base", 1), run(3, "head", 1))


def benchmark(name: str = "digits-resnet", **rest: object) -> BenchmarkReport:
    values: dict[str, object] = {
        "lease_id": f"lease-{name}",
        "benchmark": name,
        "scenario": "default",
        "init": "default",
        "hardware": "local",
        "verdict": "no change",
        "comparisons": (SAME_ACCURACY, SAME_STEP, SAME_LOSS),
        "runs": FOUR_RUNS,
        "machine": "host-1",
        "seconds": 262.0,
        "curves_url": f"{BOT}/requests/req1/curves/lease-{name}.png",
    }
    return BenchmarkReport(**(values | rest))  # type: ignore[arg-type]  # the values are those of the table above


def report(*benchmarks: BenchmarkReport, **rest: object) -> Report:
    values: dict[str, object] = {
        "request_id": "req1",
        "kind": "command",
        "full_name": "acme/digits",
        "number": 7,
        "command": "/benchmark digits-resnet",
        "requester": "maintainer-mia",
        "head_sha": HEAD,
        "base_sha": BASE,
        "config_sha": CONFIG,
        "baseline": "merge-base",
        "state": "done",
        "verdict": benchmarks[0].verdict if benchmarks else None,
        "benchmarks": benchmarks,
        "links": (
            Link(name="results", url=f"{BOT}/requests/req1"),
            Link(name="TensorBoard", url=f"{BOT}/requests/req1/tensorboard/"),
            Link(name="checkpoints", url=f"{BOT}/requests/req1#files"),
        ),
        "reproduce": f"git fetch origin {HEAD} && git checkout {HEAD}\nbenchbot run digits-resnet --vs {BASE}",
        "created_at": 1_796_108_400.0,
        "finished_at": 1_796_108_700.0,
    }
    return Report(**(values | rest))  # type: ignore[arg-type]  # the values are those of the table above


WAITING = tuple(replace(one, state="queued", seconds=None, imported="", links=()) for one in FOUR_RUNS)
HALFWAY = (*FOUR_RUNS[:2], replace(FOUR_RUNS[2], state="running", seconds=None), WAITING[3])
TRACE = 'Traceback (most recent call last):\n  File "train.py", line 3\nValueError: bad | `shape` @alice #12'


# what a script could print and nobody may read: each begins as real ones do, none is one
SECRETS = (
    "ghp_" + "a1B2c3D4" * 4,
    "hf_" + "QwErTyUiOp" * 3,
    "AKIA" + "ABCDEFGH12345678",
    "user:pa55word",
    "MIIBOgIBAAJBAKj34GkxFhD90vcNLYLInFEX6Ppy1tPf9Cnzj4p4WGeKLs1Pt8Qu",
)
LEAKING = (
    f"clone with {SECRETS[0]}\nHF_TOKEN={SECRETS[1]} AWS={SECRETS[2]}\n"
    f"pip install --index-url https://{SECRETS[3]}@pypi.example/simple x\n"
    f"-----BEGIN RSA PRIVATE KEY-----\n{SECRETS[4]}\n-----END RSA PRIVATE KEY-----\nValueError: no more"
)
FLOOD = "epoch 1\r 12%|##| 12/100\r100%|####| 100/100\n\x00\x1b[2Kok \ufffd\ufffd\nv\u0435ry | odd\u202e\n" + "x" * 9000


def failing(
    code: str, log: str = TRACE, *, sides: tuple[str, ...] = ("head", "base"), **rest: object
) -> BenchmarkReport:
    runs = tuple(
        replace(one, state="failed", reason=reason(code), log_tail=log, links=()) if one.side in sides else one
        for one in FOUR_RUNS
    )
    values: dict[str, object] = {"verdict": "failed", "comparisons": (), "runs": runs, "curves_url": ""}
    return benchmark(**(values | {"reason": reason(code)} | rest))  # type: ignore[arg-type]


def going(state: str, runs: tuple[RunReport, ...], phase: str, **rest: object) -> Report:
    waiting = benchmark(verdict=None, comparisons=(), runs=runs, phase=phase, seconds=0.0, machine="", curves_url="")
    return report(waiting, **({"state": state, "finished_at": None, "links": report().links[:1]} | rest))


HOSTILE_NAMES = (
    "loss|val",
    "a`b",
    "x\ny",
    "",
    "m" * 300,
    "@org/team",
    "org/repo#1",
    "<img src=x>",
    "![x](http://e.vil)",
)
HOSTILE = benchmark(
    "<b>@alice</b> | #123",
    comparisons=tuple(
        replace(
            WORSE_ACCURACY,
            metric=replace(ACCURACY, name=name, unit="|`@bob"),
            sentence=f"regression: {name} fell; `ask @alice` see #123, org/repo@deadbeef, www.evil.example",
        )
        for name in HOSTILE_NAMES
    ),
    verdict="regression",
    notes=("<script>alert(1)</script> https://evil.example @org/gpu-team", "`un`balanced`"),
)


def many(count: int) -> Report:
    """More than a comment can hold: each benchmark with long names, notes and logs."""
    failed = failing("oom", "step | loss | @alice `x` " * 900)
    odd = tuple(
        benchmark(f"model-{n:04d}-{'x' * 80}", verdict="regression", comparisons=(WORSE_ACCURACY, SAME_STEP, SAME_LOSS))
        for n in range(count)
    )
    broken = tuple(replace(failed, benchmark=f"broken-{n}", lease_id=f"broken{n}") for n in range(count // 4))
    return report(*broken, *odd, verdict="failed", command="/benchmark all")


def situations() -> dict[str, Report]:
    """Every situation by its name."""
    suspected = replace(
        WORSE_ACCURACY,
        verdict="inconclusive",
        reason="suspected",
        sentence="inconclusive: suspected regression, accuracy 75.1 % vs 76.4 % (-1.3 pp, 99 % interval -1.9 to -0.7; "
        "tolerance 0.5); only 1 of 2 seeds worse by the tolerance; 1 more seed can tell (seeds=3)",
        more_runs=1,
    )
    diverged = benchmark(
        verdict="regression",
        reason=reason("user_error", "Half of the head's runs or more diverged to NaN, and none of the base's."),
        comparisons=(
            comparison(ACCURACY, (), (76.4, 76.3), verdict="not measured", sentence="not measured: accuracy"),
        ),
        notes=("accuracy: head, seed 0: the values are NaN from step 120 on",),
    )
    passed = benchmark(
        "smoke", verdict="passed", comparisons=(), runs=(run(0, "head", 0), run(1, "base", 0)), curves_url=""
    )
    lost = failing("agent_lost", "", verdict="not measured", runs=WAITING)
    three = (
        failing("no_metrics", "", verdict="not measured", benchmark="first", lease_id="a"),
        failing("user_error", benchmark="second", lease_id="b"),
        benchmark("third"),
    )
    return {
        "queued": going("queued", WAITING, "waiting for local", estimate_usd=3.2),
        "planning": report(state="queued", finished_at=None, links=()),
        "running": going("running", HALFWAY, "run 3 of 4: base, seed 1"),
        "regression": report(
            benchmark(verdict="regression", comparisons=(WORSE_ACCURACY, SAME_STEP, SAME_LOSS)), cost_usd=0.42
        ),
        "slower_step": report(benchmark(verdict="regression", comparisons=(SAME_ACCURACY, SLOWER_STEP, SAME_LOSS))),
        "improvement": report(benchmark(verdict="improvement", comparisons=(BETTER_ACCURACY, SAME_STEP))),
        "no_change": report(benchmark()),
        "inconclusive": report(benchmark(verdict="inconclusive", comparisons=(OPEN_ACCURACY, SAME_STEP))),
        "suspected": report(benchmark(verdict="inconclusive", comparisons=(suspected, SAME_STEP))),
        "new": report(benchmark(verdict="new", comparisons=(NEW_ACCURACY,), runs=FOUR_RUNS[::3]), base_sha=""),
        "user_error": report(failing("user_error")),
        "secrets": report(
            failing("user_error", LEAKING, reason=reason("user_error", f"Exit 1: {SECRETS[0]}"), notes=(SECRETS[1],))
        ),
        "odd_log": report(failing("user_error", FLOOD)),
        "head_fails": report(failing("user_error", sides=("head",), verdict="regression")),
        "oom": report(failing("oom", "step 3\ntorch.OutOfMemoryError: CUDA out of memory.")),
        "timeout": report(failing("timeout", "epoch 3 of 90")),
        "no_metrics": report(failing("no_metrics", "done.", verdict="not measured")),
        "not_measured": report(lost),
        "three_benchmarks": report(*three, verdict="failed"),
        "diverged": report(diverged),
        "passed": report(passed, command="/benchmark smoke"),
        "cancelled": report(
            benchmark(
                verdict=None,
                comparisons=(),
                runs=(*FOUR_RUNS[:2], *(replace(r, state="cancelled") for r in WAITING[2:])),
            ),
            state="cancelled",
            verdict=None,
            reason=reason("cancelled"),
        ),
        "waiting": report(
            state="queued",
            finished_at=None,
            estimate_usd=43.1,
            waits="This may cost up to 43.10 USD, and what may cost more than 25.00 USD needs a second word. It starts "
            "when `mia` or somebody with write right types `/benchmark confirm`, and lapses at 2026-12-02 07:08 UTC.",
        ),
        "lapsed": report(verdict="not measured", reason=reason("lapsed"), estimate_usd=43.1),
        "confirmed": going("running", HALFWAY, "run 3 of 4: base, seed 1", estimate_usd=43.1, confirmed_by="eve"),
        "unpriced": report(benchmark(), estimate_usd=None),
        "over_budget": report(verdict="not measured", reason=reason("budget"), links=()),
        "outdated": report(benchmark(), outdated_by=CONFIG),
        "variants": report(
            benchmark(
                scenario="tiling", init="imagenet", hardware="a100x1", notes=("`score`: no direction is known.",)
            ),
            benchmark("vit", hardware="v5e-4", lease_id="second"),
            kind="approval",
        ),
        "over_long": many(120),
        "hostile_names": report(HOSTILE, command="/benchmark `@alice` #1\n| x", requester="eve_@org"),
    }
