"""What a reader of Markdown sees: the elements, the words, and what GitHub would make of the words."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

from markdown_it import MarkdownIt

# what GitHub, or a mail program, would turn into a mention, a reference or a link
ALIVE = re.compile(
    r"@[\w-]|#\d|\bGH-\d|https?://|\bwww\.|(?<![0-9a-zA-Z])[0-9a-f]{7,40}(?![0-9a-zA-Z])", re.IGNORECASE | re.ASCII
)


@dataclass
class Seen:
    tags: list[str] = field(default_factory=list)
    attributes: list[tuple[str, str | None]] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.words)

    @property
    def alive(self) -> list[str]:
        return ALIVE.findall(self.text)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.seen = Seen()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.tags.append(tag)
        self.seen.attributes += attrs
        if tag == "tr":
            self.seen.rows.append(0)
        elif tag in ("td", "th"):
            self.seen.rows[-1] += 1

    def handle_data(self, data: str) -> None:
        self.seen.words.append(data)


def read(markdown: str) -> Seen:
    """The page that Markdown with tables becomes. Raw HTML is kept, as GitHub keeps what it finds harmless."""
    reader = _Reader()
    reader.feed(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(markdown))
    reader.close()
    return reader.seen
