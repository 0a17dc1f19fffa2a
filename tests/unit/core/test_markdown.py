"""What counts as a command in a comment, and what is only shown there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.markdown import MAX_CHARACTERS, Line, command_lines, new_lines


def _texts(body: str) -> list[str]:
    return [line.text for line in command_lines(body)]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("if it fails use `/benchmark resnet50`", id="inline code"),
        pytest.param("```\n/benchmark resnet50\n```", id="fenced"),
        pytest.param("~~~sh\n/benchmark resnet50\n~~~", id="fenced with tildes"),
        pytest.param("```\n/benchmark resnet50", id="fence never closed"),
        pytest.param("see:\n\n    /benchmark resnet50\n", id="indented by four"),
        pytest.param("\t/benchmark resnet50", id="indented by a tab"),
        pytest.param("`a\n/benchmark resnet50\n`", id="code span over lines"),
        pytest.param("> /benchmark resnet50", id="quote"),
        pytest.param("> said\n/benchmark resnet50", id="line that continues a quote"),
        pytest.param("> > /benchmark resnet50\n", id="quote in a quote"),
        pytest.param("> - a\n>\n>   /benchmark resnet50\n", id="list in a quote"),
        pytest.param("# /benchmark resnet50", id="heading"),
        pytest.param("/benchmark resnet50\n=====", id="underlined heading"),
        pytest.param("<!--\n/benchmark resnet50\n-->", id="HTML comment"),
        pytest.param("<!--\n\n/benchmark resnet50\n\n-->", id="HTML comment with blank lines"),
        pytest.param("a <!-- b\n/benchmark resnet50\n--> c", id="HTML comment in a paragraph"),
        pytest.param("<details><summary>x</summary>\n\n/benchmark resnet50\n\n</details>", id="details"),
        pytest.param("<details/>\n\n/benchmark resnet50", id="details left open"),
        pytest.param("<DETAILS open>\n\n- a\n\n/benchmark resnet50\n", id="details with a list"),
        pytest.param("<blockquote>\n\n/benchmark resnet50\n\n</blockquote>", id="quote in HTML"),
        pytest.param("<pre>\n/benchmark resnet50\n</pre>", id="pre"),
        pytest.param("a <code>\n/benchmark resnet50\n</code>", id="code in HTML"),
        pytest.param("[see\n/benchmark resnet50](https://example.org)", id="text of a link"),
        pytest.param("[see\n/benchmark resnet50][a]\n\n[a]: https://example.org", id="text of a reference"),
        pytest.param("![see\n/benchmark resnet50](https://example.org/a.png)", id="text of an image"),
        pytest.param('[a](https://example.org "see\n/benchmark resnet50\n")', id="title of a link"),
        pytest.param("| a |\n|---|\n| /benchmark resnet50 |", id="table"),
        pytest.param("I think /benchmark resnet50 was slow", id="in a sentence"),
        pytest.param("see /benchmarks/resnet50.py", id="path"),
        pytest.param("/benchmarks/resnet50.py", id="path at the start"),
        pytest.param("/benchmarking", id="longer word"),
        pytest.param("/benchmark-all", id="another command"),
        pytest.param("/bench resnet50", id="another prefix"),
        pytest.param("**/benchmark resnet50**", id="bold"),
        pytest.param("- /benchmark resnet50", id="item of a list"),
        pytest.param("", id="empty"),
    ],
)
def test_a_command_that_is_only_shown_is_ignored(body: str) -> None:
    assert _texts(body) == []
    assert _texts(f"{body}\n\n</details></blockquote>\n\nthanks") == []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param("/benchmark resnet50", [(1, "/benchmark resnet50")], id="alone"),
        pytest.param("/benchmark", [(1, "/benchmark")], id="nothing after it"),
        pytest.param("/benchmark resnet50\r\n", [(1, "/benchmark resnet50")], id="CRLF"),
        pytest.param("/benchmark resnet50\r\nplease look at lr", [(1, "/benchmark resnet50")], id="CRLF and prose"),
        pytest.param(
            "/benchmark resnet50\r\n/benchmark vit --seeds 3\r\n",
            [(1, "/benchmark resnet50"), (2, "/benchmark vit --seeds 3")],
            id="CRLF, two commands",
        ),
        pytest.param("looks good\n/benchmark vit", [(2, "/benchmark vit")], id="second line of a paragraph"),
        pytest.param("   /benchmark vit", [(1, "/benchmark vit")], id="three blanks"),
        pytest.param("a\n\u00a0/benchmark\u00a0vit", [(2, "/benchmark vit")], id="U+00A0"),
        pytest.param("\ufeff/benchmark vit\u200b", [(1, "/benchmark vit")], id="invisible characters"),
        pytest.param("/Benchmark vit", [(1, "/Benchmark vit")], id="a phone's capital"),
        pytest.param("> said\n\n/benchmark vit", [(3, "/benchmark vit")], id="below a quote"),
        pytest.param("> <details>\n\n/benchmark vit", [(3, "/benchmark vit")], id="below a quote with open HTML"),
        pytest.param("- a\n- b\n/benchmark vit", [(3, "/benchmark vit")], id="right below a list"),
        pytest.param("[a](b) c\n/benchmark vit", [(2, "/benchmark vit")], id="below a link"),
        pytest.param("[open\n/benchmark vit", [(2, "/benchmark vit")], id="below an open bracket"),
        pytest.param(
            "/benchmark bert* -bert_large_* set.a_b=1",
            [(1, "/benchmark bert* -bert_large_* set.a_b=1")],
            id="Markdown's own characters",
        ),
        pytest.param("<details>\n\nx\n\n</details>\n\n/benchmark vit", [(7, "/benchmark vit")], id="below details"),
        pytest.param("<!-- <details> -->\n\n/benchmark vit", [(3, "/benchmark vit")], id="below a commented tag"),
        pytest.param("```\nx\n```\n/benchmark vit", [(4, "/benchmark vit")], id="below a fence"),
    ],
)
def test_a_command_at_the_start_of_a_line_counts(body: str, expected: list[tuple[int, str]]) -> None:
    assert command_lines(body) == tuple(Line(number, text) for number, text in expected)


def test_only_the_configured_prefix_counts() -> None:
    assert command_lines("/bench a\n/benchmark b", prefix="/bench") == (Line(1, "/bench a"),)
    assert command_lines("@perf-bot a", prefix="@perf-bot") == (Line(1, "@perf-bot a"),)


@pytest.mark.parametrize("filler", [">", "[", "![", "- ", "`", "<!--", "<a ", "\\", "[\n", "<details>\n\n", "|"])
def test_a_hostile_text_below_the_command_changes_nothing(filler: str) -> None:
    body = "/benchmark vit\n\n" + filler * (20_000 // len(filler))
    assert _texts(body) == ["/benchmark vit"]


def test_what_is_longer_than_a_comment_can_be_is_not_read() -> None:
    assert _texts("/benchmark a\n" + "x" * 2 * MAX_CHARACTERS + "\n/benchmark b") == ["/benchmark a"]


@given(st.text(alphabet=st.sampled_from("/benchmark `>[]()<!-->\n\r\t\u00a0*_|#~d"), max_size=200))
def test_any_text_gives_lines_that_stand_in_it(body: str) -> None:
    source = body.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for line in command_lines("/benchmark x\n" + body):
        assert line.text.lower().startswith("/benchmark")
        assert line.number == 1 or source[line.number - 2].replace("\u00a0", " ").strip() == line.text


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param("looks good", "/benchmark a", ["/benchmark a"], id="added"),
        pytest.param("/benchmark a", "/benchmark a", [], id="unchanged"),
        pytest.param("/benchmark a", "hello\n\n/benchmark   a", [], id="moved, other blanks"),
        pytest.param("/benchmark a", "/benchmark a\n/benchmark a", ["/benchmark a"], id="once more"),
        pytest.param("/benchmark a\n/benchmark b", "/benchmark b", [], id="one taken away"),
        pytest.param("/benchmark a", "/benchmark b\n/benchmark a", ["/benchmark b"], id="another added"),
        pytest.param("`/benchmark a`", "/benchmark a", ["/benchmark a"], id="taken out of code"),
        pytest.param("/benchmark a", "> /benchmark a", [], id="put into a quote"),
    ],
)
def test_an_edit_gives_only_what_is_new(old: str, new: str, expected: list[str]) -> None:
    assert [line.text for line in new_lines(old, new)] == expected
