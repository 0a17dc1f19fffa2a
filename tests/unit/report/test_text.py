"""Text of people and scripts is harmless wherever it gets into Markdown, and never longer than allowed."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bot.report.text import (
    ELLIPSIS,
    Markdown,
    block,
    code,
    commit,
    finalize,
    fold_end,
    inline,
    link,
    plain,
    quiet,
    safe_url,
    sentence,
    shorten,
    typed,
)
from tests.unit.report.reading import read

_BITS = (
    "@alice", "@org/team", "#123", "org/repo#1", "GH-12", "org/repo@deadbeef", "deadbeefcafe",
    "https://e.vil/x", "www.e.vil",
    "mailto:a@b.c", "|", "`", "``", "\\", "\n", "\r\n", "<b>", "</details>", "<!--", "![x](y)",
    "[x](y)", "**", "__", "_", "~~",
    "&lt;", "&#64;", "$x$", ":rocket:", "- ", "1. ", "# ", "> ", "---", "===", "    ",
    "/benchmark all", "\u202e", "\x00", "\u200b",
    "\ud800", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "é", "a", " ",
)  # fmt: skip
HOSTILE = st.lists(st.sampled_from(_BITS) | st.text(max_size=8), max_size=12).map("".join)
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"


@given(HOSTILE, HOSTILE, HOSTILE)
@example("", "", "@`0`")
@example("", "", "`@`maya")
def test_a_table_keeps_its_shape_and_says_nothing_to_anybody(one: str, two: str, three: str) -> None:
    row = f"| {inline(one)} | {code(two)} | {sentence(three)} | {link(one, 'https://bench.example/x')} |"
    seen = read(f"| a | b | c | d |\n|---|---|---|---|\n{row}\n")
    assert seen.rows == [4, 4]
    assert set(seen.tags) <= {"table", "thead", "tbody", "tr", "th", "td", "code", "a"}
    assert seen.attributes == [("href", "https://bench.example/x")]
    assert seen.alive == []


@given(HOSTILE)
def test_a_line_of_its_own_stays_a_plain_paragraph(text: str) -> None:
    seen = read(inline(text))
    assert set(seen.tags) <= {"p"}
    assert seen.alive == []


@given(HOSTILE)
def test_what_is_harmless_can_still_be_read(text: str) -> None:
    assert read(inline(text)).text.strip().replace("\u200b", "") == plain(text).strip()


@given(HOSTILE, HOSTILE)
def test_a_log_cannot_leave_its_block(text: str, after: str) -> None:
    seen = read(f"<details>\n\n{block(text)}\n\n</details>\n\nafter {inline(after)}")
    assert set(seen.tags) <= {"details", "pre", "code", "p"}
    assert seen.alive == []


@given(st.text(st.characters(), max_size=80) | HOSTILE, st.integers(0, 60), st.integers(0, 120))
def test_limits_hold_in_characters_and_in_bytes(text: str, characters: int, size: int) -> None:
    cut = shorten(text, characters=characters, size=size)
    assert len(cut) <= characters
    assert len(cut.encode("utf-8", "replace")) <= size
    assert cut in (text, "") or (cut.endswith(ELLIPSIS) and text.startswith(cut[:-1]))


@pytest.mark.parametrize("characters", range(1, 12))
def test_what_is_seen_as_one_is_never_cut_in_two(characters: int) -> None:
    cut = shorten(f"ab{FAMILY}cd{FAMILY}", characters=characters)
    assert cut in (ELLIPSIS, f"a{ELLIPSIS}", f"ab{ELLIPSIS}", f"ab{FAMILY}{ELLIPSIS}", f"ab{FAMILY}c{ELLIPSIS}")


@pytest.mark.parametrize(
    ("whole", "characters", "cut"),
    [
        ("x\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7y", 5, f"x\U0001f1e9\U0001f1ea{ELLIPSIS}"),
        ("xe\u0301\u0302yz", 3, f"x{ELLIPSIS}"),
        ("x\U0001f44b\U0001f3fdyz", 3, f"x{ELLIPSIS}"),
        ("x\u1112\u1161\u11abyz", 4, f"x{ELLIPSIS}"),
        ("words apart", 7, f"words{ELLIPSIS}"),
    ],
)
def test_flags_accents_tones_and_syllables_stay_whole(whole: str, characters: int, cut: str) -> None:
    assert shorten(whole, characters=characters) == cut


def test_twenty_thousand_rockets_are_cut_by_bytes() -> None:
    cut = shorten("\U0001f680" * 20_000, size=65_535)
    assert len(cut.encode()) <= 65_535
    assert set(cut) == {"\U0001f680", ELLIPSIS}


@pytest.mark.parametrize("text", ["fix @org/gpu-team lr", "ask @alice, see #123, org/repo@deadbeef", "GH-7 closes #1"])
def test_mentions_and_references_are_dead_in_code_as_well(text: str) -> None:
    for shown in (inline(text), code(text), block(text), sentence(f"`{text}`")):
        assert read(shown).alive == []


@pytest.mark.parametrize(
    ("name", "shown"),
    [("loss|val", "loss|val"), ("a`b", "a`b"), ("x\ny", "x y"), ("", "(empty)"), ("m" * 300, "m" * 99 + ELLIPSIS)],
)
def test_odd_names_are_readable_in_code(name: str, shown: str) -> None:
    seen = read(f"| a |\n|---|\n| {code(name)} |")
    assert seen.rows == [1, 1]
    assert shown in seen.words


def test_invisible_and_controlling_characters_go() -> None:
    assert plain("a\u202eb\x07c\u200dd\te\u2028f\ud800") == "abcd e f\ufffd"
    assert plain(f"x{FAMILY}") == f"x{FAMILY}"
    assert plain("a\tb\r\nc", lines=True) == "a    b\nc"


def test_our_own_markdown_passes_and_all_else_is_escaped() -> None:
    assert finalize(Markdown("**x**")) == "**x**"
    assert finalize("**x**") == "&#42;&#42;x&#42;&#42;"
    assert finalize(7) == 7


def test_a_commit_of_ours_can_be_copied() -> None:
    assert commit("abc1234def") == "`abc1234`"
    assert "\u200b" not in typed("git checkout abc1234def56789 # see @alice")
    assert read(typed("a\n```\n<b>")).tags == ["pre", "code"]
    assert commit("not hex") == "`not hex`"


@pytest.mark.parametrize(
    "address",
    ["javascript:alert(1)", "//e.vil/x", "data:text/html,x", "", "https:///x", "ftp://x/y", "https://x/" + "y" * 2000],
)
def test_only_addresses_of_the_web_become_links(address: str) -> None:
    assert safe_url(address) == ""
    assert link("name", address) == "name"


def test_an_address_cannot_end_its_link() -> None:
    seen = read(link("x", "https://bench.example/a b)<>|\"'`/c"))
    assert seen.tags == ["p", "a"]
    assert seen.attributes == [("href", "https://bench.example/a%20b%29%3C%3E%7C%22%27%60/c")]


def test_a_sentence_keeps_names_as_code() -> None:
    assert sentence("use `a|b` not `c") == "use <code>a&#124;b</code> not &#96;c"


def test_long_logs_keep_their_end() -> None:
    shown = block("\n".join(f"line {n}" for n in range(100)), last_lines=3)
    assert shown == "```text\nline 97\nline 98\nline 99\n```"
    assert len(block("x" * 90_000 + "\n" + "y " * 9_000, characters=500)) < 700


def test_a_log_of_long_lines_loses_the_oldest_first() -> None:
    shown = block("\n".join(f"{n}:{'y' * 250}" for n in range(30)))
    assert len(shown) < 4_100
    assert "29:y" in shown
    assert "\n14:y" not in shown


def test_a_reply_that_is_too_long_ends_between_paragraphs() -> None:
    assert fold_end("short", 100) == "short"
    assert fold_end("one\n\ntwo\n\n" + "x" * 100, 40) == "one\n\ntwo\n\n… the rest did not fit."


@given(HOSTILE)
def test_taking_apart_changes_nothing_that_is_seen(text: str) -> None:
    bare = plain(text, lines=True)
    assert quiet(bare).replace("\u200b", "") == bare
    assert not any(unicodedata.category(c) in ("Cc", "Cs") and c != "\n" for c in bare)
