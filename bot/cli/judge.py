"""`benchbot judge FILE`: the same verdict for numbers from anywhere, without a run, a repository or a server."""

import argparse
import codecs
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from bot.measure.comparison import Comparison, Evidence
from bot.measure.metrics import Metric, Sample
from bot.measure.verdict import judge, judge_report

HELP = "the verdict for numbers from anywhere: one comparison a line"
EXAMPLES = (
    "benchbot judge numbers.jsonl",
    "benchbot judge - --json < numbers.jsonl",
    "benchbot judge all.jsonl --report",
)
ABOUT = """\
Each line of FILE is a JSON object:

  {"metric": {"name": "accuracy", "better": "higher", "tolerance": 0.5, "noise": 0.3, "unit": "pp"},
   "head": [{"value": 75.1, "seed": 1}], "base": [{"value": 76.4, "seed": 1, "commit": "abc123"}]}

metric   name; better: higher or lower (without it there is no verdict); scale: linear or log; tolerance and noise: in
         the unit of the values when linear, a share (0.05 or "5%") when log; per: seed or machine, what one independent
         measurement is; unit, target, gate (true)
head     values with machine and seed. Values of one machine are one measurement where per is machine; without a name
         all are of the same machine. null, NaN and Infinity, bare or in quotes, are runs that diverged, and so is a
         number too large to be kept, such as 1e999
base     the same with commit, oldest first; the newest 50 count
paired   true where the first head and the first base value were measured in turn on one machine, and so on

--report corrects the gates of all lines for their number, as one report of benchbot does.
Exit status: 0 no regression, 1 a regression or a failed head, 2 a line that cannot be judged (the others are). A metric
with gate: false is judged and shown, and never makes it 1.
"""
WINDOW = 50
LONGEST_LINE = 16 << 20


class _Value(msgspec.Struct, forbid_unknown_fields=True):
    value: float | str | None
    machine: str = ""
    seed: int | None = None
    commit: str = ""


class _Metric(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    scale: Literal["linear", "log"] = "linear"
    better: Literal["higher", "lower"] | None = None
    tolerance: float | str | None = None
    noise: float | str | None = None
    per: Literal["seed", "machine"] = "seed"
    unit: str = ""
    target: float | None = None
    gate: bool = True


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    metric: _Metric
    head: list[_Value]
    base: list[_Value]
    paired: bool = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A file, and how to print."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = ABOUT
    parser.add_argument("file", metavar="FILE", help="JSON lines, one comparison each; - for standard input")
    parser.add_argument("--json", action="store_true", help="print {verdict, sentence, difference, interval} a line")
    parser.add_argument("--report", action="store_true", help="judge all lines as the gates of one report")


def run(args: argparse.Namespace) -> int:
    """0 without a regression, 1 with one, 2 when a line could not be judged."""
    try:
        text = sys.stdin.buffer.read() if args.file == "-" else Path(args.file).read_bytes()
    except OSError as error:
        print(f"benchbot judge: {args.file} cannot be read: {error.strerror}", file=sys.stderr)
        return 2
    # some editors begin a file with a mark of its encoding
    text = text.removeprefix(codecs.BOM_UTF8)
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not lines:
        print(f"benchbot judge: {args.file} holds no line; see benchbot judge --help", file=sys.stderr)
        return 2
    judged: dict[int, Comparison] = {}
    faults: dict[int, str] = {}
    for number, line in lines:
        try:
            judged[number] = judge(evidence(line))
        except ValueError as error:
            faults[number] = f"line {number}: {error}"
            print(f"benchbot judge: {faults[number]}", file=sys.stderr)
    if args.report:
        judged = dict(zip(judged, judge_report(judged.values()), strict=True))
    for number, _ in lines:
        if args.json:
            print(json.dumps(_told(judged[number]) if number in judged else _told_fault(faults[number])))
        elif number in judged:
            print(judged[number].sentence)
    worse = any(one.verdict in ("regression", "failed") for one in judged.values() if one.metric.gate)
    return 2 if faults else int(worse)


def evidence(line: bytes) -> Evidence:
    """What one line says. Raises ValueError with what to change."""
    if len(line) > LONGEST_LINE:
        raise ValueError(f"it is longer than {LONGEST_LINE >> 20} MiB")
    try:
        read = msgspec.convert(_parsed(line), type=_Line)
    except msgspec.ValidationError as error:
        raise ValueError(f"{error}; `benchbot judge --help` shows a line") from None
    metric = _metric(read.metric)
    if read.paired and len(read.head) != len(read.base):
        sentence = f"paired needs as many head as base values, not {len(read.head)} and {len(read.base)}"
        raise ValueError(sentence)
    head, failed_head = _samples("head", read.head, paired=read.paired)
    base, failed_base = _samples("base", read.base, paired=read.paired)
    for one, other in zip(read.head, read.base, strict=False) if read.paired else ():
        if one.machine != other.machine:
            raise ValueError(f"a pair is of one machine, not of `{one.machine}` and `{other.machine}`")
    if not read.paired:
        base = _newest(base, metric)
    return Evidence(
        metric=metric,
        head=tuple(head),
        base=tuple(base),
        paired=read.paired,
        failed_head=failed_head,
        failed_base=failed_base,
    )


def _parsed(line: bytes) -> object:
    """JSON as Python and others write it: NaN and infinities may stand bare, and no key may stand twice."""
    try:
        return json.loads(line.decode("utf-8"), object_pairs_hook=_object, parse_int=_whole)
    except UnicodeDecodeError:
        raise ValueError("it is not text in UTF-8: save the file in that encoding") from None
    except json.JSONDecodeError as error:
        where = f"{error.msg} at column {error.colno}"
        raise ValueError(f"a line holds one whole JSON object, and here is {where}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        for text in (key, value):
            if isinstance(text, str) and not text.isprintable():
                raise ValueError(f"a text holds characters that cannot be shown: {text[:40]!a}")
        if key in found:
            raise ValueError(f"`{key[:40]}` is written twice in one object: leave one of them out")
        found[key] = value
    return found


def _whole(digits: str) -> float:
    """A whole number; one that no computer keeps exactly is as good as a float, or infinite."""
    return int(digits) if len(digits) < 20 else float(digits)


def _metric(told: _Metric) -> Metric:
    if not told.name.strip():
        raise ValueError("the metric has no name")
    if told.gate and told.better is not None and told.tolerance is None:
        raise ValueError(
            f"{told.name}: a gate needs a tolerance, the change that you would still accept; or gate: false"
        )
    return Metric(
        name=told.name,
        tag=told.name,
        better=told.better,
        unit=told.unit,
        scale=told.scale,
        tolerance=_amount(told, "tolerance"),
        noise=_amount(told, "noise"),
        per=told.per,
        target=_finite(told.target, f"{told.name}: target"),
        gate=told.gate,
    )


def _amount(told: _Metric, key: str) -> float | None:
    """A share on a log scale, else in the unit of the values."""
    given, where = getattr(told, key), f"{told.name}: {key}"
    if isinstance(given, str):
        if not given.endswith("%") or told.scale != "log":
            raise ValueError(f'{where} is a number, or on a log scale a text such as "5%"')
        try:
            given = float(given[:-1]) / 100
        except ValueError:
            raise ValueError(f'{where}: {given} is no percentage such as "5%"') from None
    if given is not None and given < 0:
        raise ValueError(f"{where} cannot be less than 0")
    return _finite(given, where)


def _finite(number: float | None, where: str) -> float | None:
    if number is not None and not math.isfinite(number):
        raise ValueError(f"{where} is a finite number")
    return number


def _samples(side: str, values: Sequence[_Value], *, paired: bool) -> tuple[list[Sample], int]:
    """Values, and how many runs gave none."""
    found = []
    for at, one in enumerate(values):
        value = _number(side, at, one.value)
        if math.isfinite(value):
            seed = at + 1 if one.seed is None else one.seed
            pair = at if paired else None
            found.append(Sample(value=value, seed=seed, machine=one.machine, commit=one.commit, pair=pair))
    return found, len(values) - len(found)


def _number(side: str, at: int, value: float | str | None) -> float:
    if value is None:
        return math.nan
    if isinstance(value, str):
        if value not in ("NaN", "Infinity", "-Infinity"):
            raise ValueError(f'{side}[{at}].value is a number, null, "NaN" or "Infinity", not {value[:40]!r}')
        return float(value)
    return value


def _newest(base: list[Sample], metric: Metric) -> list[Sample]:
    """The newest measurements of the base, which comes oldest first."""
    if metric.per == "seed":
        return base[-WINDOW:]
    machines = list(dict.fromkeys(sample.machine for sample in reversed(base)))[:WINDOW]
    return [sample for sample in base if sample.machine in machines]


def _told(comparison: Comparison) -> dict[str, Any]:
    return {
        "verdict": comparison.verdict,
        "sentence": comparison.sentence,
        "difference": comparison.difference,
        "interval": comparison.interval,
    }


def _told_fault(sentence: str) -> dict[str, Any]:
    return {"verdict": None, "sentence": sentence, "difference": None, "interval": None}
