"""CSV with a header line. What the values mean is said in `rows`."""

import csv
from pathlib import Path

from bot.measure.readers.merging import FileContents
from bot.measure.readers.rows import take_row

LONGEST_FIELD = 1 << 20


def fits(name: str) -> bool:
    """Whether a file of this name is read here."""
    return name.endswith((".csv", ".tsv"))


def read(path: Path) -> FileContents:
    """The values of one file; a row with more or fewer fields than the header is damaged. Raises OSError."""
    contents = FileContents()
    bad: list[int] = []
    csv.field_size_limit(LONGEST_FIELD)
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        rows = csv.reader((line.replace("\0", "") for line in file), delimiter="\t" if path.suffix == ".tsv" else ",")
        header: list[str] | None = None
        while True:
            try:
                fields = next(rows)
            except StopIteration:
                break
            except csv.Error:
                bad.append(rows.line_num)
                continue
            if not any(field.strip() for field in fields):
                continue
            if header is None:
                header = [field.strip() for field in fields]
            elif len(fields) != len(header):
                bad.append(rows.line_num)
            else:
                named = {name: field.strip() for name, field in zip(header, fields, strict=True) if name}
                take_row(named, contents.records, contents)
                contents.records += 1
    contents.bad_records = len(bad)
    if bad:
        contents.notes.append(f"Not as many fields as the header on line {', '.join(str(at) for at in bad[:5])}.")
    return contents
