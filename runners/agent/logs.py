"""What a command prints, made fit to keep: text, without secrets and control codes, bounded in memory and on disk."""

from __future__ import annotations

import base64
import codecs
import re
from collections import deque
from collections.abc import Iterable
from typing import BinaryIO
from urllib.parse import quote

LINE_LETTERS = 8 * 1024
HEAD_BYTES = 1024 * 1024
TAIL_BYTES = 1024 * 1024
TAIL_LINES = 30
_MASK = "***"
_CUT = " …[line cut]"
# longest escape sequence that is waited for when a read ends inside it
_ESCAPE_LETTERS = 256
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # cursor and colour
    r"|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles and links, up to their end
    r"|[ -/]+[0-~]|[0-OQ-WYZ\\`-~])"
)
_OPEN_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)\Z")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029]")


def forms_of(secret: str) -> list[str]:
    """How a secret may appear: as it is, percent-encoded, and inside base64 at each of the three alignments."""
    forms = {secret, quote(secret, safe="")}
    raw = secret.encode()
    for shift in range(3):
        # letters that also depend on the neighbours of the secret are cut off
        first = -(-shift * 8 // 6)
        last = (shift + len(raw)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            forms.add(encode(b"\0" * shift + raw).decode()[first:last])
    return sorted((form for form in forms if len(form) >= 8), key=len, reverse=True)


class LogCleaner:
    """Bytes as they come in, whole clean lines out.

    Progress bars (`\\r`) leave their last state, escape codes and control characters go, lines are cut at
    LINE_LETTERS, bytes that are not UTF-8 become U+FFFD. Holds at most one line, whatever comes.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms = sorted({form for secret in secrets if secret for form in forms_of(secret)}, key=len, reverse=True)
        self._secrets = re.compile("|".join(map(re.escape, forms))) if forms else None
        self._keep = LINE_LETTERS + 1 + max((len(form) for form in forms), default=0)
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._rest = ""
        self._line = ""
        self._anew = False

    def feed(self, data: bytes, final: bool = False) -> list[str]:
        """The lines that `data` completes, without line ends. `final` gives out the last one, too."""
        text = self._rest + self._decode(data, final)
        self._rest = ""
        if not final:
            text = self._hold(text)
        text = _CONTROL.sub("", _ESCAPES.sub("", text)).replace("\r\n", "\n")
        *whole, last = text.split("\n")
        lines = [self._finish(part) for part in whole]
        self._join(last)
        if final and self._line:
            lines.append(self._finish(""))
        return lines

    def _hold(self, text: str) -> str:
        """Keep back an escape sequence, or a `\\r` before a `\\n`, that the read may have cut in two."""
        cut = len(text)
        opened = _OPEN_ESCAPE.search(text, max(0, cut - _ESCAPE_LETTERS))
        if opened:
            cut = opened.start()
        elif text.endswith("\r"):
            cut -= 1
        self._rest = text[cut:]
        return text[:cut]

    def _join(self, part: str) -> None:
        """Add a piece without line ends to the line; `\\r` begins it anew once something follows."""
        *states, last = part.split("\r")
        shown = next((state for state in reversed(states) if state), None)
        if states and last:
            self._line, self._anew = "", False
        elif shown is not None:
            self._line, self._anew, last = "", True, shown
        elif states:
            self._anew = True
        elif last and self._anew:
            self._line, self._anew = "", False
        self._line += last[: max(0, self._keep - len(self._line))]

    def _finish(self, part: str) -> str:
        self._join(part)
        line, self._line, self._anew = self._line, "", False
        if self._secrets:
            line = self._secrets.sub(_MASK, line)
        return line if len(line) <= LINE_LETTERS else line[:LINE_LETTERS] + _CUT


class LogKeeper:
    """Writes lines to a file: the first HEAD_BYTES as they come, the last TAIL_BYTES when it is closed."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._room = HEAD_BYTES
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._dropped_lines = 0
        self._dropped_bytes = 0
        self._last: deque[str] = deque(maxlen=TAIL_LINES)

    def add(self, lines: Iterable[str]) -> None:
        """Take in lines; the file grows only at its end."""
        for line in lines:
            self._last.append(line)
            raw = line.encode("utf-8", "replace") + b"\n"
            if self._room >= len(raw) and not self._tail:
                self._room -= len(raw)
                self._file.write(raw)
            else:
                self._later(raw)
        self._file.flush()

    def _later(self, raw: bytes) -> None:
        self._tail.append(raw)
        self._tail_bytes += len(raw)
        while self._tail_bytes > TAIL_BYTES:
            gone = len(self._tail.popleft())
            self._tail_bytes -= gone
            self._dropped_lines += 1
            self._dropped_bytes += gone

    def close(self) -> None:
        """Write the tail behind a line that says what was left out."""
        if self._dropped_lines:
            sentence = f"[benchbot] {self._dropped_lines} lines ({self._dropped_bytes} bytes) are left out here\n"
            self._file.write(sentence.encode())
        self._file.writelines(self._tail)
        self._tail.clear()
        self._file.flush()

    def last_lines(self) -> str:
        """The last TAIL_LINES lines, for the person who looks at a failure."""
        return "\n".join(self._last)
