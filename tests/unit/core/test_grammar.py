"""One line as a command or a refusal."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bot.commands import specs
from bot.core.grammar import FIRST_VERBS, LATER_VERBS, MOST_COMMANDS, RESERVED, parse, parse_body, render
from bot.core.markdown import Line
from bot.core.nouns import Command, Refusal
from bot.core.options import NOT_YET, OPTIONS


def _parse(text: str) -> Command | Refusal:
    return parse(Line(1, f"/benchmark {text}".strip()), specs())


@pytest.mark.parametrize(
    ("text", "verb", "targets", "options"),
    [
        ("resnet50", "run", ["resnet50"], {}),
        ("run resnet50", "run", ["resnet50"], {}),
        ("resnet50 bert* -bert_large @vision", "run", ["resnet50", "bert*", "-bert_large", "@vision"], {}),
        ("resnet50,vit", "run", ["resnet50", "vit"], {}),
        ("plan all", "plan", ["all"], {}),
        ("Plan all", "plan", ["all"], {}),
        ("status", "status", [], {}),
        ("cancel resnet50", "cancel", ["resnet50"], {}),
        ("retry sha=3F2A9C1D7E", "retry", [], {"sha": "3f2a9c1d7e"}),
        ("allow 3F2A9C1D7E", "allow", ["3f2a9c1d7e"], {}),
        ("help run", "help", ["run"], {}),
        ("list", "list", [], {}),
        # both styles of options, and both orders
        ("a pairs=3", "run", ["a"], {"pairs": "3"}),
        ("a --pairs 3", "run", ["a"], {"pairs": "3"}),
        ("--pairs=3 a", "run", ["a"], {"pairs": "3"}),
        ("--pairs 03 a", "run", ["a"], {"pairs": "3"}),
        ("a on=x,y scenario=all init=s", "run", ["a"], {"on": "x,y", "scenario": "all", "init": "s"}),
        ("a on=x, y, x b", "run", ["a", "b"], {"on": "x,y"}),
        ("a set.lr=1e-3 set.batch=64", "run", ["a"], {"set.lr": "1e-3", "set.batch": "64"}),
        ("a --set.batch 64", "run", ["a"], {"set.batch": "64"}),
        ("a set.x=a=b", "run", ["a"], {"set.x": "a=b"}),
        ("a --set.x a=b", "run", ["a"], {"set.x": "a=b"}),
        ("a timeout=1h30M config=head", "run", ["a"], {"timeout": "1h30m", "config": "head"}),
        ("a vs=merge-base", "run", ["a"], {"vs": "merge-base"}),
        ("a vs=base", "run", ["a"], {"vs": "base"}),
        # what phones and copied pages make of it
        ("a —seeds 3", "run", ["a"], {"seeds": "3"}),
        ("a –seeds=3", "run", ["a"], {"seeds": "3"}),
        ("a\u00a0--seeds\u00a03", "run", ["a"], {"seeds": "3"}),
        ("a --scenario “fast path”", "run", ["a"], {"scenario": "fast path"}),
        ("a scenario=‘fast path’", "run", ["a"], {"scenario": "fast path"}),
        ("a set.x='two words'", "run", ["a"], {"set.x": "two words"}),
        ('"plan"', "run", ["plan"], {}),
    ],
)
def test_a_line_is_read(text: str, verb: str, targets: list[str], options: dict[str, str]) -> None:
    command = _parse(text)
    assert isinstance(command, Command), command
    assert (command.verb, list(command.targets), command.options) == (verb, targets, options)
    assert command.text == f"/benchmark {text}"


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        ("", "no_targets", "/benchmark <targets>"),
        ("plan", "no_targets", "/benchmark plan <targets>"),
        ("a --seeds three", "bad_value", "`seeds=three`"),
        ("a seeds=6", "bad_value", "1 to 5"),
        ("a seeds=٣", "bad_value", "1 to 5"),
        ("a pairs=0", "bad_value", "1 to 10"),
        ("a pairs=2.5", "bad_value", "1 to 10"),
        ("a timeout=90", "bad_value", "`90m`"),
        ("a timeout=1:30:00", "bad_value", "`1h30m`"),
        ("a budget=lots", "bad_value", "US dollars"),
        ("a sha=12345", "bad_value", "7 to 40"),
        ("a config=heads", "bad_value", "`head`"),
        ("a wheel=http://x/y.whl", "bad_value", "https://"),
        ("a vs=relese", "bad_value", "`release`"),
        ("a vs=tag:..", "bad_value", "in git"),
        ("a on=x,,y", "bad_value", "empty"),
        ("a on=", "missing_value", "`on=NAME,...`"),
        ("a --on", "missing_value", "`--on`"),
        ("a --on --pairs 2", "missing_value", "`--on`"),
        ("a --parirs 2", "unknown_option", "`pairs=N`"),
        ("a zzzzzz=2", "unknown_option", "help run"),
        ("a pairs=2 --pairs 2", "repeated_option", "`pairs`"),
        ("a set.x=2 set.x=2", "repeated_option", "`set.x`"),
        ("a pairs=2 seeds=2", "pairs_and_seeds", "`seeds=`"),
        ("a set.=2", "bad_parameter", "set.batch"),
        ("a set=2", "bad_parameter", "set.batch"),
        ("a --fresh=yes", "unexpected_value", "`fresh`"),
        ('a --scenario "open', "unbalanced_quote", "character 25"),
        ('a --scenario open"', "unbalanced_quote", "character 29"),
        ('a "b"c', "unbalanced_quote", "character 14"),
        ("a “", "unbalanced_quote", "character 14"),
        ("list a", "unexpected_word", "`a`"),
        ("status on=x", "option_of_another_verb", "`on=`"),
        ("status colour=x", "unknown_option", "takes no options"),
        ("allow", "bad_commit", "allow 3f2a9c1d7e"),
        ("allow 3f2a9c1d7e 3f2a9c1d7f", "bad_commit", "exactly one"),
        ("allow main", "bad_commit", "hex digits"),
        ("help rn", "unknown_verb", "`run`"),
        ("x" * 2000, "line_too_long", "2000"),
        ("a set.x=" + "y" * 400, "bad_value", "300"),
        *((verb, "not_available", f"`{verb}`") for verb in LATER_VERBS),
    ],
)
def test_a_line_that_cannot_be_read_is_refused_with_what_to_type(text: str, code: str, told: str) -> None:
    refusal = _parse(text)
    assert isinstance(refusal, Refusal), refusal
    assert refusal.code == code
    assert told in f"{refusal.sentence} {refusal.hint}"
    assert refusal.hint
    assert refusal.line == 1


_VALUES = {"fresh": "", "budget": "20usd", "wheel": "https://example.org/a-1.whl"}
_REFS = {"sha": "3f2a9c1d7e", "tag": "v1", "branch": "main", "version": "1.2"}


@pytest.mark.parametrize("item", sorted(NOT_YET))
def test_what_is_not_built_yet_is_refused_and_left_out_of_help(item: str) -> None:
    name, _, value = item.partition("=")
    if value == "several":
        value = "merge-base,base"
    value = f"{value}:{_REFS[value]}" if value in _REFS else value or _VALUES[name]
    refusal = _parse(f"a {name}={value}" if value else f"a {name}")
    assert isinstance(refusal, Refusal)
    assert refusal.code == "not_available"
    assert "not available in this version" in refusal.sentence


def test_every_verb_has_a_file_and_every_file_has_a_known_verb() -> None:
    assert tuple(specs()) == FIRST_VERBS
    assert set(specs()) <= RESERVED
    for spec in specs().values():
        assert set(spec.options) <= set(OPTIONS)


@pytest.mark.parametrize("verb", FIRST_VERBS)
def test_the_examples_of_help_are_commands(verb: str) -> None:
    for example in specs()[verb].examples:
        command = _parse(example)
        assert isinstance(command, Command), command
        assert command.verb == verb


def test_several_commands_and_a_typo_in_one_comment() -> None:
    first, second, third = parse_body("/benchmark a\n\n/benchmark b pairs=x\r\n/benchmark plan c", specs())
    assert isinstance(first, Command)
    assert isinstance(second, Refusal)
    assert isinstance(third, Command)
    assert (first.line, second.line, third.line) == (1, 3, 4)


def test_a_quoted_command_is_none() -> None:
    assert parse_body("> /benchmark a\n\n`/benchmark b`\n\nI think /benchmark c was slow", specs()) == ()


def test_too_many_commands_get_one_refusal() -> None:
    parsed = parse_body("\n".join(f"/benchmark a{number}" for number in range(9)), specs())
    assert [type(item) for item in parsed] == [Command] * MOST_COMMANDS + [Refusal]
    assert parsed[-1].line == MOST_COMMANDS + 1


def test_another_prefix_stands_in_the_hints() -> None:
    (refusal,) = parse_body("/perf", specs(), prefix="/perf")
    assert isinstance(refusal, Refusal)
    assert "`/perf <targets>" in refusal.hint


@given(st.text(max_size=120), st.sampled_from(["", "plan ", "allow ", "a on=", "a --set.x "]))
def test_no_text_breaks_the_parser(text: str, start: str) -> None:
    parsed = _parse(start + text.replace("\n", " "))
    if isinstance(parsed, Refusal):
        assert parsed.sentence.endswith((".", "?"))
        assert re.fullmatch(r"[a-z_]+", parsed.code)
    else:
        again = parse(Line(1, render(parsed)), specs())
        assert isinstance(again, Command), again
        assert (again.verb, again.targets, again.options) == (parsed.verb, parsed.targets, parsed.options)


_word = st.text(min_size=1, max_size=12).filter(lambda text: text.strip() and "\n" not in text)
_options = st.fixed_dictionaries(
    {},
    optional={
        "on": st.lists(st.sampled_from(["a100x1", "v5e-4", "local"]), min_size=1, unique=True).map(",".join),
        "scenario": st.sampled_from(["all", "fast path", "tiling"]),
        "pairs": st.integers(1, 10).map(str),
        "set.batch": _word,
        "timeout": st.sampled_from(["90m", "6h", "1h30m"]),
        "sha": st.text("0123456789abcdef", min_size=7, max_size=40),
        "config": st.sampled_from(["base", "head"]),
    },
)


@given(st.sampled_from(["run", "plan"]), st.lists(_word, min_size=1, max_size=4), _options)
def test_a_command_that_is_written_down_reads_the_same(verb: str, targets: list[str], options: dict[str, str]) -> None:
    command = Command(verb=verb, targets=tuple(targets), options=options, line=1, text="")
    try:
        line = Line(1, render(command))
    except ValueError:
        assume(False)
    again = parse(line, specs())
    assert isinstance(again, Command), again
    assert (again.verb, again.targets, again.options) == (verb, tuple(targets), options)
