"""Samples of a repository's history as JSON lines or CSV, to take them elsewhere and to bring others in."""

import csv
import io
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from bot.core.records import SampleLine

# columns of CSV and keys of JSON, in this order
FIELDS = ("benchmark", "scenario", "init", "hardware", "metric", "commit", "seed", "machine", "value", "at")
LONGEST_LINE = 10_000


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is left out, from 1 on, and why."""

    number: int
    sentence: str


def to_jsonl(lines: Iterable[SampleLine]) -> str:
    """A JSON object a line, its keys in the order of FIELDS."""
    ordered = ({name: getattr(line, name) for name in FIELDS} for line in lines)
    return "".join(f"{msgspec.json.encode(one).decode()}\n" for one in ordered)


def to_csv(lines: Iterable[SampleLine]) -> str:
    """A row a line below a header."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(FIELDS)
    for line in lines:
        # repr keeps every digit of a value
        writer.writerow([repr(each) if isinstance(each := getattr(line, name), float) else each for name in FIELDS])
    return out.getvalue()


def read(text: str) -> Iterator[SampleLine | BadLine]:
    """The lines of a file in either form; what cannot be read is told with its number, the rest is used."""
    text = text.removeprefix("\ufeff")
    first = next((line for line in text.splitlines() if line.strip()), "")
    yield from _jsonl(text) if first.lstrip().startswith("{") else _csv(text)


def _jsonl(text: str) -> Iterator[SampleLine | BadLine]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield _checked(number, line.strip())


def _checked(number: int, line: str) -> SampleLine | BadLine:
    if len(line) > LONGEST_LINE:
        return BadLine(number, f"it is longer than {LONGEST_LINE} characters")
    try:
        return _plausible(number, msgspec.json.decode(line, type=SampleLine))
    except (msgspec.MsgspecError, RecursionError) as error:
        return BadLine(number, str(error))


def _csv(text: str) -> Iterator[SampleLine | BadLine]:
    rows = csv.DictReader(io.StringIO(text))
    unknown = sorted(set(rows.fieldnames or ()) - set(FIELDS))
    missing = sorted({"benchmark", "metric", "commit", "value"} - set(rows.fieldnames or ()))
    if unknown or missing:
        said = [f"there is no column {', '.join(unknown)}"] if unknown else []
        said += [f"the column {', '.join(missing)} is missing"] if missing else []
        yield BadLine(1, f"{'; '.join(said)}; columns are {', '.join(FIELDS)}")
        return
    for number, row in enumerate(rows, 2):
        if None in row or None in row.values():
            yield BadLine(number, f"it has not {len(rows.fieldnames or ())} values as the header has")
            continue
        try:
            filled = {name: value.strip() for name, value in row.items() if value.strip()}
            yield _plausible(number, msgspec.convert(filled, SampleLine, strict=False))
        except msgspec.ValidationError as error:
            yield BadLine(number, str(error))


def _plausible(number: int, line: SampleLine) -> SampleLine | BadLine:
    commit = line.commit.lower()
    if len(commit) != 40 or set(commit) - set("0123456789abcdef"):
        return BadLine(number, "a commit is written with all its 40 hex digits")
    if not math.isfinite(line.value) or not math.isfinite(line.at):
        return BadLine(number, "value and time are finite numbers")
    if not -(2**63) <= line.seed < 2**63:
        return BadLine(number, "a seed is a whole number of 64 bits")
    return msgspec.structs.replace(line, commit=commit)
