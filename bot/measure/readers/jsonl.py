"""JSON lines: one object a line. What the values mean is said in `rows`."""

import json
from pathlib import Path

from bot.measure.readers.merging import FileContents
from bot.measure.readers.rows import take_row

LONGEST_LINE = 4 << 20


def fits(name: str) -> bool:
    """Whether a file of this name is read here."""
    return name.endswith((".jsonl", ".ndjson"))


def read(path: Path) -> FileContents:
    """The values of one file; a line that is no object is damaged, an unfinished last one is a tail. Raises OSError."""
    contents = FileContents()
    bad: list[int] = []
    with path.open("rb") as file:
        number = 0
        while line := file.readline(LONGEST_LINE):
            number += 1
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                row = None
            if isinstance(row, dict):
                take_row(row, contents.records, contents)
                contents.records += 1
            elif not line.endswith(b"\n") and len(line) < LONGEST_LINE:
                contents.tail_bytes = len(line)
                contents.notes.append(f"Line {number} is not finished.")
            else:
                bad.append(number)
    contents.bad_records = len(bad)
    if bad:
        contents.notes.append(f"No JSON object on line {', '.join(str(number) for number in bad[:5])}.")
    return contents
