"""Secrets taken out of what scripts print: known values in their usual disguises, and whatever looks like a token.

Works on text that is complete (`mask`) or that arrives in pieces (`Masker`).
"""

import base64
import json
import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

MASK = "[masked]"
# shorter values would take ordinary words out of a log
_SHORTEST = 4
# no token is longer than this; of a line without end, so much is held back
_LONGEST = 8192
_LONGEST_LINE = 64 * 1024

_TOKENS = re.compile(
    r"""
    \b(?:gh[a-z]_[A-Za-z0-9]{16,255} | github_pat_[A-Za-z0-9_]{16,255} | glpat-[\w-]{16,255}
  | (?:AKIA|ASIA)[0-9A-Z]{16} | AIza[\w-]{35} | ya29\.[\w.-]{16,2000}
  | hf_[A-Za-z0-9]{20,255} | xox[a-z]-[\w-]{10,255} | sk-[\w-]{20,255} | pypi-[\w-]{50,500}
  | eyJ[\w-]{8,2000}\.eyJ[\w-]{8,3000}\.[\w-]{8,2000})
  | (?<=://)[^\s/?\#]{1,512}@                              # user:token@ of a URL
  | (?<=bearer\s)[\w.~+/=-]{16,4000} | (?<=basic\s)[\w+/=-]{16,4000}
    """,
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_KEY_BEGINS = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----")
_KEY_ENDS = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----")
# a key whose end never comes must not swallow the rest of a log
_KEY_LINES = 200


def mask(text: str, secrets: Iterable[str] = ()) -> str:
    """The text without the secrets: as they are, line by line, in base64, in URLs, in JSON; and without tokens."""
    masker = Masker(secrets)
    return masker.feed(text) + masker.close()


class Masker:
    """Masks a stream of text. Lines come out as soon as they are complete; the last one comes with `close`."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        needles = sorted({needle for secret in secrets for needle in _disguises(secret)}, key=len, reverse=True)
        self._needles = re.compile("|".join(map(re.escape, needles))) if needles else None
        self._hold = max(_LONGEST, len(needles[0]) if needles else 0)
        self._held = ""
        self._key_lines = 0

    def feed(self, chunk: str) -> str:
        """Take the next piece; returns what is safe to show by now."""
        text = self._held + chunk
        end = max(text.rfind("\n"), text.rfind("\r")) + 1
        self._held = text[end:]
        shown = "".join(self._line(line) for line in text[:end].splitlines(keepends=True))
        if len(self._held) > _LONGEST_LINE + self._hold:
            cut = self._before(len(self._held) - self._hold)
            shown += self._line(self._held[:cut])
            self._held = self._held[cut:]
        return shown

    def close(self) -> str:
        """The end of the stream: what was held back."""
        held, self._held = self._held, ""
        return self._line(held)

    def _before(self, cut: int) -> int:
        """A place at or before `cut` that lies in no secret."""
        for pattern in filter(None, (self._needles, _TOKENS, _KEY_BEGINS, _KEY_ENDS)):
            for found in pattern.finditer(self._held):
                if found.start() < cut < found.end():
                    cut = found.start()
        return cut

    def _line(self, line: str) -> str:
        if self._key_lines:
            return self._key_line(line)
        begins = _KEY_BEGINS.search(line)
        if begins:
            self._key_lines = 1
            rest = self._key_line(line[begins.end() :])
            return self._values(line[: begins.start()]) + MASK + rest.removeprefix(MASK)
        return self._values(line)

    def _key_line(self, line: str) -> str:
        ends = _KEY_ENDS.search(line)
        self._key_lines = 0 if ends or self._key_lines >= _KEY_LINES else self._key_lines + 1
        if ends:
            return MASK + self._values(line[ends.end() :])
        text = line.rstrip("\r\n")
        return (MASK if text.strip() else text) + line[len(text) :]

    def _values(self, line: str) -> str:
        if self._needles:
            line = self._needles.sub(MASK, line)
        return _TOKENS.sub(lambda found: MASK + "@" * found.group().endswith("@"), line)


def _disguises(secret: str) -> set[str]:
    """Everything by which a secret can be read: whole, line by line, and encoded."""
    plain = {secret, secret.strip(), *(line.strip() for line in secret.splitlines())}
    plain = {text for text in plain if len(text) >= _SHORTEST}
    found = set(plain)
    for text in plain:
        found |= {quote(text, safe=""), quote(text), quote_plus(text), json.dumps(text)[1:-1]}
        found |= _encoded(text.encode("utf-8", "surrogatepass"))
    return {needle for needle in found if len(needle) >= _SHORTEST and "\n" not in needle and "\r" not in needle}


def _encoded(value: bytes) -> set[str]:
    """Base64 of the value wherever it begins in the encoded text, hexadecimal digits as well.

    Base64 takes three bytes at a time, so the value reads differently after none, one or two bytes; the letters that
    depend on its neighbours are left out.
    """
    found = {value.hex(), value.hex().upper()}
    for before in range(3):
        whole = base64.b64encode(b"\0" * before + value).decode()
        first = -(-8 * before // 6)
        last = 8 * (before + len(value)) // 6
        text = whole[first:last]
        if len(text) >= 2 * _SHORTEST:
            # tools that encode files begin a new line after 64 or 76 letters
            lines = {text[at : at + width] for width in (64, 76) if not before for at in range(0, len(text), width)}
            found |= {text, *(line for line in lines if len(line) >= 2 * _SHORTEST)}
            found |= {part.replace("+", "-").replace("/", "_") for part in tuple(found)}
    return found
