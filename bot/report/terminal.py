"""A report on a terminal: plain text in columns, in colour only when asked for."""

import unicodedata

from bot.core.nouns import Report
from bot.report import findings, view
from bot.report.text import plain, shorten
from bot.report.view import Line, Table

HEADER = ("Benchmark", "Metric", "Base", "Head", "Change (interval)", "Tolerance", "Verdict")
NAME_WIDTH = 40
LOG_LINES = 30
_COLOURS = {
    "failed": "31",
    "not measured": "33",
    "regression": "31",
    "suspected": "33",
    "inconclusive": "33",
    "improvement": "32",
    "no change": "32",
    "passed": "32",
    "new": "36",
}


def render_terminal(report: Report, *, colour: bool = False) -> str:
    """The report as text that ends with a line end; no control character of a script gets through."""
    lines = [_paint(view.plain_headline(report), report.verdict or "", colour), _commits(report)]
    if report.reason is not None:
        lines += ["", plain(report.reason.sentence)]
    for table in view.tables(findings.rows(report)) if report.state == "done" else ():
        place = f"{plain(table.hardware)}{f' ({table.simulated})' if table.simulated else ''}"
        lines += ["", f"On {place}:", *_table(table, colour)]
    needs = view.items(report)
    if needs:
        lines += ["", "Needs you:"]
    for need in needs:
        lines.append(f"  {plain(need.benchmark)} {plain(need.sentence)}")
        lines += [f"    Next: {_as_typed(need.command)}"] * bool(need.command)
    for failure in view.failures(report):
        where = ", ".join(part for part in (failure.benchmark, failure.runs) if part)
        lines += ["", f"{plain(where)} ({failure.code}): {plain(failure.sentence)}"]
        last = plain(failure.log, lines=True).rstrip().split("\n")[-LOG_LINES:]
        lines += [f"  | {line}" for line in last if failure.log]
    notes = view.notes(report)
    lines += ["", "Noticed:", *(f"  {plain(note)}" for note in notes)] * bool(notes)
    return "\n".join(lines) + "\n"


def _commits(report: Report) -> str:
    head = f"head {findings.short(report.head_sha)}"
    if not report.base_sha:
        return f"{head}, compared with nothing"
    return f"{head} against {findings.short(report.base_sha)} ({plain(view.baseline(report))})"


def _table(table: Table, colour: bool) -> list[str]:
    cells = [HEADER, *(_cells(line) for line in table.lines)]
    widths = [max(_width(row[column]) for row in cells) for column in range(len(HEADER))]
    shown = []
    for position, row in enumerate(cells):
        parts = [_padded(text, widths[column], right=2 <= column <= 5) for column, text in enumerate(row)]
        if position:
            parts[-1] = _paint(parts[-1].rstrip(), table.lines[position - 1].word, colour)
        shown.append(f"  {'  '.join(parts)}".rstrip())
    return shown


def _cells(line: Line) -> tuple[str, ...]:
    metric = f"{shorten(plain(line.metric), characters=NAME_WIDTH)} {line.arrow}".strip()
    name = shorten(plain(line.benchmark), characters=NAME_WIDTH)
    word = f"{line.word} (advisory)" if line.advisory else line.word
    return (name, metric, plain(line.base), plain(line.head), plain(line.change), plain(line.tolerance), word)


def _as_typed(command: str) -> str:
    """A command of a pull request as the same one of this machine."""
    words = command.split()[1:]
    if words[:1] == ["retry"]:
        words = words[1:]
    options = [f"--{word.replace('=', ' ', 1)}" if "=" in word else word for word in words]
    return plain(f"benchbot run {' '.join(options)}")


def _paint(text: str, word: str, colour: bool) -> str:
    code = _COLOURS.get(word)
    return f"\x1b[{code}m{text}\x1b[0m" if colour and code else text


def _width(text: str) -> int:
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.combining(character) > 0 for character in text)


def _padded(text: str, width: int, *, right: bool) -> str:
    gap = " " * (width - _width(text))
    return gap + text if right else text + gap
