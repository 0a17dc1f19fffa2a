"""Values of options: what is kept, what is refused, and what is not there yet."""

import pytest

from bot.commands import specs
from bot.core.grammar import parse
from bot.core.markdown import Line
from bot.core.nouns import Command, Refusal
from bot.core.options import NOT_YET, OPTIONS, Option, OptionError, not_yet


def _kept(name: str, text: str) -> str:
    check = OPTIONS[name].check
    assert check is not None
    return check(text)


def _parsed(words: str) -> Command | Refusal:
    return parse(Line(1, f"/benchmark a {words}"), specs())


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("base", "base"),
        ("self", "self"),
        ("merge-base", "merge-base"),
        ("release", "release"),
        ("tag:v1.2.0", "tag:v1.2.0"),
        ("branch:feature/new-loss", "branch:feature/new-loss"),
        ("sha:3F2A9C1D7E", "sha:3f2a9c1d7e"),
    ],
)
def test_baselines_that_can_be_compared_with(typed: str, kept: str) -> None:
    parsed = _parsed(f"vs={typed}")
    assert isinstance(parsed, Command), parsed
    assert parsed.options == {"vs": kept}


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("vs=accepted", "`vs=accepted`"),
        ("vs=version:1.2", "`vs=version`"),
        ("vs=base,release", "vs= with several baselines"),
        ("wheel=https://example.org/a.whl", "`wheel`"),
    ],
)
def test_what_is_not_there_yet_says_so(typed: str, told: str) -> None:
    parsed = _parsed(typed)
    assert isinstance(parsed, Refusal), parsed
    assert parsed.code == "not_available"
    assert told in parsed.sentence
    assert "is not available in this version." in parsed.sentence
    assert parsed.hint == "`/benchmark help run` shows what is."


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("vs", "latest"),
        ("vs", "tag:"),
        ("vs", "tag:a..b"),
        ("vs", "tag:-x"),
        ("vs", "branch:a b"),
        ("vs", "branch:--upload-pack=x"),
        ("vs", "sha:xyz"),
        ("vs", "sha:123456"),
        ("vs", "base:main"),
        ("pairs", "0"),
        ("pairs", "11"),
        ("pairs", "2.0"),
        ("pairs", "٣"),
        ("seeds", "6"),
        ("seeds", "three"),
        ("timeout", "90"),
        ("timeout", "-5m"),
        ("timeout", "31d"),
        ("budget", "0usd"),
        ("budget", "20eur"),
        ("config", "other"),
        ("wheel", "http://example.org/a.whl"),
        ("wheel", "https://example.org/a.zip"),
        ("sha", "123"),
        ("sha", "g" * 10),
        ("sha", "a" * 41),
        ("on", "a,,b"),
        ("scenario", ","),
    ],
)
def test_values_that_an_option_cannot_have(name: str, text: str) -> None:
    with pytest.raises(OptionError):
        _kept(name, text)


@pytest.mark.parametrize(
    ("name", "text", "kept"),
    [
        ("on", "a, b,a", "a,b"),
        ("pairs", "10", "10"),
        ("seeds", "AUTO", "auto"),
        ("timeout", "1H30M", "1h30m"),
        ("budget", "$20", "20usd"),
        ("budget", "20.50 USD", "20.5usd"),
        ("sha", "ABCDEF1", "abcdef1"),
        ("config", "head", "head"),
    ],
)
def test_values_are_kept_in_one_form(name: str, text: str, kept: str) -> None:
    assert _kept(name, text) == kept
    # a form that is kept is read as itself
    assert _kept(name, kept) == kept


def test_what_is_not_there_yet_names_real_options() -> None:
    for item in NOT_YET:
        name, _, value = item.partition("=")
        assert name in OPTIONS
        typed = "base,release" if value == "several" else value or True
        assert not_yet(name, typed) is not None


@pytest.mark.parametrize("option", OPTIONS.values(), ids=lambda option: option.name)
def test_an_option_s_form_begins_with_its_name(option: Option) -> None:
    assert option.form.startswith(option.name)
    assert ("=" in option.form) == (option.check is not None)
