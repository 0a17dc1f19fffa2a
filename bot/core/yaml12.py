"""YAML 1.2 as a tree of texts with their places, and nothing guessed: what a text means, its reader decides.

`3.10`, `no`, `0123456` and `1:30:00` stay what they are in the source. Refused, each with its place: duplicate keys,
tags, merge keys, several documents, another YAML version, and texts that grow too large, too deep or through aliases.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.events import (
    AliasEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
)
from ruamel.yaml.reader import ReaderError

MOST_BYTES = 256 * 1024
MOST_NODES = 20_000
DEEPEST = 20


@dataclass(frozen=True, slots=True)
class Scalar:
    """A text. `plain` when it stood without quotes, so that it may also mean a number or a truth value."""

    text: str
    plain: bool
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Items:
    """A sequence."""

    items: tuple["Node", ...]
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Entries:
    """A mapping, in the order of the source. A key that came twice is here once, the first time."""

    entries: tuple[tuple[Scalar, "Node"], ...]
    line: int
    column: int


Node = Scalar | Items | Entries


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with the text as YAML: 1-based place, sentence, and what to do."""

    line: int
    column: int
    sentence: str
    hint: str = ""


def read_tree(text: str) -> tuple[Node | None, tuple[Problem, ...]]:
    """The tree and all that is wrong with it. The tree is None when the text is empty or cannot be read to its end."""
    text = text.removeprefix("\ufeff")
    if len(text.encode(errors="replace")) > MOST_BYTES:
        return None, (Problem(1, 1, f"The file is larger than {MOST_BYTES // 1024} KB."),)
    builder = _Builder()
    try:
        for event in _events(text):
            builder.take(event)
    except _TooMuchError as error:
        return None, (*builder.problems, error.problem)
    except MarkedYAMLError as error:
        return None, (*builder.problems, _syntax(error))
    except ReaderError as error:
        return None, (*builder.problems, _unreadable(text, error.position))
    except (ValueError, OverflowError):
        # an escape for a character that does not exist; the scanner does not say where
        sentence = "A text in double quotes holds an escape for a character that does not exist."
        return None, (*builder.problems, Problem(1, 1, sentence))
    return builder.root, tuple(builder.problems)


def _events(text: str) -> Iterator[Event]:
    yield from YAML(typ="safe", pure=True).parse(text)


def _syntax(error: MarkedYAMLError) -> Problem:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    words = (error.problem or "the text cannot be read").strip()
    hint = ""
    if "\\t" in words or "\t" in words:
        words, hint = "a tab stands where YAML allows only blanks", "Indent with blanks."
    elif "cannot start any token" in words:
        hint = "Put the text in quotes."
    elif "mapping values are not allowed" in words:
        hint = "Put a text that holds `: ` in quotes."
    return Problem(line, column, f"Not YAML: {words}.", hint)


def _unreadable(text: str, position: int) -> Problem:
    before = text[:position]
    column = position - (before.rfind("\n") + 1) + 1
    return Problem(before.count("\n") + 1, column, "A control character stands here, which YAML does not allow.")


class _TooMuchError(Exception):
    def __init__(self, event: Event, sentence: str, hint: str = "") -> None:
        super().__init__(sentence)
        self.problem = Problem(event.start_mark.line + 1, event.start_mark.column + 1, sentence, hint)


@dataclass(slots=True)
class _Open:
    """A collection that is being read: where it began, its anchor, and the nodes inside so far."""

    event: CollectionStartEvent
    nodes: list[Node]
    count: int = 1
    height: int = 1


class _Builder:
    """Turns events into nodes without recursion, and counts what aliases would unfold to."""

    def __init__(self) -> None:
        self.root: Node | None = None
        self.problems: list[Problem] = []
        self._stack: list[_Open] = []
        # anchor -> node, how many nodes it unfolds to, how deep it is
        self._anchors: dict[str, tuple[Node, int, int]] = {}
        self._documents = 0

    def take(self, event: Event) -> None:
        if isinstance(event, DocumentStartEvent):
            self._document(event)
        if isinstance(event, ScalarEvent | CollectionStartEvent) and event.tag not in (None, "!"):
            self._problem(event, "Tags (`!name`) have no meaning here.", "Write the plain value.")
        if isinstance(event, CollectionStartEvent):
            if len(self._stack) >= DEEPEST:
                raise _TooMuchError(event, f"Nested deeper than {DEEPEST} levels.")
            self._stack.append(_Open(event, []))
        elif isinstance(event, ScalarEvent):
            line, column = event.start_mark.line + 1, event.start_mark.column + 1
            self._add(event, Scalar(event.value, event.style is None, line, column), 1, 1, event.anchor)
        elif isinstance(event, AliasEvent):
            if event.anchor not in self._anchors:
                raise _TooMuchError(event, f"`*{event.anchor}` names no anchor that is complete at this place.")
            self._add(event, *self._anchors[event.anchor], anchor=None)
        elif isinstance(event, MappingEndEvent | SequenceEndEvent):
            self._close()

    def _document(self, event: DocumentStartEvent) -> None:
        self._documents += 1
        if self._documents > 1:
            raise _TooMuchError(event, "A second document begins here.", "Remove the line `---`.")
        if event.version not in (None, (1, 2)):
            self._problem(event, "The file asks for another version of YAML.", "Remove the `%YAML` line: 1.2 is read.")

    def _close(self) -> None:
        done = self._stack.pop()
        line, column = done.event.start_mark.line + 1, done.event.start_mark.column + 1
        if isinstance(done.event, MappingStartEvent):
            node: Node = Entries(self._pairs(done), line, column)
        else:
            node = Items(tuple(done.nodes), line, column)
        self._add(done.event, node, done.count, done.height, done.event.anchor)

    def _pairs(self, done: _Open) -> tuple[tuple[Scalar, Node], ...]:
        pairs: dict[str, tuple[Scalar, Node]] = {}
        for key, value in zip(done.nodes[::2], done.nodes[1::2], strict=True):
            if not isinstance(key, Scalar):
                self.problems.append(Problem(key.line, key.column, "A key must be a single text."))
            elif key.text in pairs:
                first = pairs[key.text][0].line
                sentence = f"The key `{key.text}` stands here again; line {first} has it already."
                self.problems.append(Problem(key.line, key.column, sentence, "Keep one of them."))
            elif key.plain and key.text == "<<":
                sentence = "YAML 1.2 has no merge keys (`<<`)."
                self.problems.append(Problem(key.line, key.column, sentence, "Write the keys out."))
            else:
                # nothing stands nowhere: the parser would say at the next word, or behind the end
                nothing = isinstance(value, Scalar) and value.plain and not value.text
                pairs[key.text] = (key, Scalar("", True, key.line, key.column) if nothing else value)
        return tuple(pairs.values())

    def _add(self, event: Event, node: Node, count: int, height: int, anchor: str | None) -> None:
        if anchor is not None:
            self._anchors[anchor] = (node, count, height)
        if not self._stack:
            self.root = node
            return
        parent = self._stack[-1]
        parent.nodes.append(node)
        parent.count += count
        parent.height = max(parent.height, height + 1)
        if sum(opened.count for opened in self._stack) > MOST_NODES:
            raise _TooMuchError(event, f"With its aliases this is more than {MOST_NODES} values.")
        if len(self._stack) + height > DEEPEST + 1:
            raise _TooMuchError(event, f"With its aliases this is nested deeper than {DEEPEST} levels.")

    def _problem(self, event: Event, sentence: str, hint: str) -> None:
        self.problems.append(Problem(event.start_mark.line + 1, event.start_mark.column + 1, sentence, hint))
