"""One line of a comment as a `Command`, or as a `Refusal` that says what to type instead.

    line   := prefix [verb] (target | "-" target | option)*
    option := key "=" value | "--" key ("=" | blank) value | flag

Knows words, not what they name: whether a benchmark exists is decided by `core.targets` and `core.planning`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from bot.core.markdown import PREFIX, Line, command_lines
from bot.core.nouns import Command, OptionValue, Refusal
from bot.core.options import LONGEST_VALUE, OPTIONS, OptionError, commit, not_yet
from bot.core.wording import code, did_you_mean, nearest
from bot.core.words import QuoteError, Word, quoted, split_words

MOST_COMMANDS = 5
LONGEST_LINE = 2_000
LATER_VERBS = (
    "compare",
    "history",
    "bisect",
    "ack",
    "unack",
    "queue",
    "delegate",
    "pause",
    "resume",
)
FIRST_VERBS = ("run", "plan", "status", "cancel", "confirm", "retry", "allow", "list", "help")
# no benchmark or group may have one of these names: they mean something else in a command
RESERVED = frozenset({*FIRST_VERBS, *LATER_VERBS, "all", "fresh"})

Right = Literal["anyone", "run", "write", "requester"]
Takes = Literal["targets", "commit", "verb", "nothing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """A verb as it is parsed, explained and allowed.

    `usage` stands after the prefix, and `examples` are what follows the prefix in complete lines. `options` are names
    of `core.options`. `takes` is what the words without "=" are; `needs_targets` refuses a line without any.
    """

    verb: str
    summary: str
    usage: str
    examples: tuple[str, ...]
    right: Right
    options: tuple[str, ...] = ()
    takes: Takes = "targets"
    needs_targets: bool = False


class _LineError(Exception):
    def __init__(self, code: str, sentence: str, hint: str = "") -> None:
        super().__init__(sentence)
        self.refusal = (code, sentence, hint)


def parse_body(body: str, verbs: Mapping[str, Spec], prefix: str = PREFIX) -> tuple[Command | Refusal, ...]:
    """Every command line of a comment, each as a command or a refusal, in order; at most five are commands."""
    return parse_lines(command_lines(body, prefix), verbs)


def parse_lines(lines: tuple[Line, ...], verbs: Mapping[str, Spec]) -> tuple[Command | Refusal, ...]:
    """The lines of one comment; those after the fifth are told once that they are too many."""
    parsed = [parse(line, verbs) for line in lines[:MOST_COMMANDS]]
    if len(lines) > MOST_COMMANDS:
        parsed.append(
            Refusal(
                code="too_many_commands",
                sentence=f"A comment may hold {MOST_COMMANDS} commands; line {lines[MOST_COMMANDS].number} and all "
                "after it were left out.",
                hint="Put them in another comment, or name several benchmarks in one line.",
                line=lines[MOST_COMMANDS].number,
            )
        )
    return tuple(parsed)


def parse(line: Line, verbs: Mapping[str, Spec]) -> Command | Refusal:
    """A command of one line, whose first word is the prefix. Never raises, whatever was typed."""
    try:
        return _parse(line, verbs)
    except _LineError as bad:
        name, sentence, hint = bad.refusal
        return Refusal(code=name, sentence=sentence, hint=hint, line=line.number)


def render(command: Command, prefix: str = PREFIX) -> str:
    """The line that means this command: `parse` of it gives the same verb, targets and options."""
    words = [prefix] if command.verb == "run" else [prefix, command.verb]
    for position, target in enumerate(command.targets):
        reads_as_verb = command.verb == "run" and position == 0 and target.lower() in RESERVED - {"all"}
        words.append(quoted(target, special="=,", always=reads_as_verb or target == "fresh"))
    for name, value in command.options.items():
        words.append(name if value is True else f"{name}={quoted(str(value))}")
    return " ".join(words)


def _parse(line: Line, verbs: Mapping[str, Spec]) -> Command:
    if len(line.text) > LONGEST_LINE:
        raise _LineError(
            "line_too_long", f"This line is longer than {LONGEST_LINE} characters.", "Use a glob or a group."
        )
    try:
        prefix, *words = split_words(line.text)
    except QuoteError as error:
        raise _LineError(
            "unbalanced_quote",
            f"The quote that opens at character {error.column} ({code(error.rest)}) is never closed.",
            'Close it, or leave it out: names need no quotes. Example: `set.name="two words"`.',
        ) from None
    spec, words = _verb(prefix.text, words, verbs)
    targets, options = _Reader(spec, prefix.text).read(words)
    if spec.takes == "commit":
        targets = _commit(targets, prefix.text)
    elif spec.takes == "verb":
        _known_verbs(targets, verbs)
    elif spec.takes == "nothing" and targets:
        raise _LineError(
            "unexpected_word",
            f"{code(spec.verb)} takes no names, but found {code(targets[0])}.",
            f"Type `{prefix.text} {spec.verb}`.",
        )
    elif spec.needs_targets and not targets:
        raise _LineError(
            "no_targets",
            "This does not say which benchmarks to run." if spec.verb == "run" else "This does not name a benchmark.",
            f"Type `{prefix.text} {spec.usage}`; `{prefix.text} list` shows the names.",
        )
    return Command(verb=spec.verb, targets=targets, options=options, line=line.number, text=line.text)


def _verb(prefix: str, words: list[Word], verbs: Mapping[str, Spec]) -> tuple[Spec, list[Word]]:
    """The verb's spec and the words after it; a line without a verb runs."""
    first = words[0].text.lower() if words and not words[0].was_quoted else ""
    if first in verbs:
        return verbs[first], words[1:]
    if first in LATER_VERBS or first in FIRST_VERBS:
        raise _LineError(
            "not_available",
            f"{code(first)} is not available in this version.",
            f"`{prefix} help` shows what is.",
        )
    return verbs["run"], words


def _commit(words: tuple[str, ...], prefix: str) -> tuple[str, ...]:
    try:
        if len(words) != 1:
            raise OptionError("it takes exactly one commit")
        return (commit(words[0]),)
    except OptionError as error:
        raise _LineError(
            "bad_commit", f"`allow` cannot read this: {error.sentence}.", f"Example: `{prefix} allow 3f2a9c1d7e`."
        ) from None


def _known_verbs(words: tuple[str, ...], verbs: Mapping[str, Spec]) -> None:
    unknown = next((word for word in words if word not in verbs), None)
    if unknown is not None:
        raise _LineError("unknown_verb", f"There is no command {code(unknown)}.", did_you_mean(unknown, tuple(verbs)))


class _Reader:
    """Sorts the words of one command into targets and options, and checks the options' values."""

    def __init__(self, spec: Spec, prefix: str) -> None:
        self.spec = spec
        self.prefix = prefix
        self.options: dict[str, OptionValue] = {}

    def read(self, words: list[Word]) -> tuple[tuple[str, ...], Mapping[str, OptionValue]]:
        """Targets as typed, without duplicates removed, and options with checked values."""
        targets: list[str] = []
        left = list(words)
        while left:
            word = left.pop(0)
            if word.was_quoted:
                targets.append(word.text)
            elif word.text.startswith("--"):
                self._long(word.text[2:], word.value, left)
            elif word.value is not None:
                self._keep(word.text, word.value)
            elif word.text == "fresh" and "fresh" in self.spec.options:
                self._keep("fresh", True)
            else:
                targets += [target for target in word.text.split(",") if target]
        if "pairs" in self.options and "seeds" in self.options:
            raise _LineError(
                "pairs_and_seeds",
                "`pairs=` and `seeds=` are two ways of counting runs; together they say nothing clear.",
                "Keep `pairs=` for times and speed, `seeds=` for accuracy.",
            )
        return tuple(targets), self.options

    def _long(self, name: str, value: str | None, left: list[Word]) -> None:
        """`--key value`, `--key=value` or `--flag`."""
        option = self._known(name)
        if value is None and OPTIONS[option].check is not None:
            following = left[0] if left else None
            if following is None or (not following.was_quoted and following.text.startswith("--")):
                raise _LineError("missing_value", f"{code('--' + name)} has no value.", self._form(option))
            left.pop(0)
            value = following.whole
        self._keep(name, True if value is None else value)

    def _known(self, name: str) -> str:
        """The option's name in the table; `set.batch` is an option `set`."""
        head, dot, parameter = name.partition(".")
        option = head if head == "set" else name
        if option not in self.spec.options:
            raise self._unknown(name)
        if option == "set" and not (dot and parameter.isidentifier() and parameter.isascii()):
            raise _LineError(
                "bad_parameter",
                f"{code(name)} does not name a parameter.",
                f"Example: `set.batch=128`; `{self.prefix} list` shows the parameters.",
            )
        return option

    def _unknown(self, name: str) -> _LineError:
        if name in OPTIONS:
            return _LineError(
                "option_of_another_verb",
                f"{code(self.spec.verb)} does not take {code(name + '=')}.",
                f"Type `{self.prefix} help {self.spec.verb}` for what it takes.",
            )
        if not self.spec.options:
            return _LineError(
                "unknown_option",
                f"{code(self.spec.verb)} takes no options, but found {code(name)}.",
                f"Type `{self.prefix} {self.spec.usage}`.",
            )
        near = nearest(name, self.spec.options)
        forms = [OPTIONS[option].form for option in near]
        return _LineError(
            "unknown_option",
            f"There is no option {code(name)}.",
            did_you_mean(name, forms)
            if forms
            else f"`{self.prefix} help {self.spec.verb}` shows the options; to leave a benchmark out, type one `-`.",
        )

    def _form(self, option: str) -> str:
        return f"Type it as {code(OPTIONS[option].form)}."

    def _keep(self, name: str, value: OptionValue) -> None:
        option = self._known(name)
        check = OPTIONS[option].check
        if name in self.options:
            raise _LineError("repeated_option", f"{code(name)} is given twice.", "Give it once; lists are `a,b`.")
        if check is None:
            if value is not True:
                raise _LineError("unexpected_value", f"{code(name)} takes no value.", self._form(option))
        else:
            value = self._checked(name, str(value), option)
        missing = not_yet(option, value)
        if missing is not None:
            raise _LineError(
                "not_available",
                f"{code(missing)} is not available in this version.",
                f"`{self.prefix} help {self.spec.verb}` shows what is.",
            )
        self.options[name] = value

    def _checked(self, name: str, text: str, option: str) -> str:
        check = OPTIONS[option].check
        if not text.strip() or check is None:
            raise _LineError("missing_value", f"{code(name + '=')} has no value.", self._form(option))
        try:
            if len(text) > LONGEST_VALUE:
                raise OptionError(f"it is longer than {LONGEST_VALUE} characters")
            return check(text)
        except OptionError as error:
            sentence = f"{code(name + '=' + text)} cannot be read: {error.sentence}."
            raise _LineError("bad_value", sentence, error.hint or self._form(option)) from None
