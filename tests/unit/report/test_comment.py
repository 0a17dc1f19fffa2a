"""The results comment, the short notice and the reply: one snapshot per situation, and what holds in all of them."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from bot.core.markdown import command_lines
from bot.core.nouns import Link, Refusal, Report
from bot.core.reasons import reason
from bot.report.check import render_check
from bot.report.comment import LIMIT, Reply, render_comment, render_reply, short_notice
from tests.unit.report.reading import read
from tests.unit.report.situations import (
    ACCURACY,
    BASE,
    CONFIG,
    FOUR_RUNS,
    HEAD,
    SAME_ACCURACY,
    WORSE_ACCURACY,
    benchmark,
    failing,
    many,
    report,
    situations,
)
from tests.unit.report.test_text import HOSTILE

MARKER = "<!-- benchbot:req1:results -->"
SITUATIONS = situations()
ALLOWED = {
    "h3", "p", "code", "a", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "strong",
    "img", "details", "summary",
    "pre", "sub", "blockquote", "br", "em",
}  # fmt: skip


def words_of_others(body: str) -> list[str]:
    """What GitHub would bring to life, our own commits and the commands to copy left aside."""
    own = body.split("<summary>Reproduce", maxsplit=1)[0]
    return [found for found in read(own).alive if not any(sha.startswith(found) for sha in (HEAD, BASE, CONFIG))]


@pytest.mark.parametrize("name", SITUATIONS)
def test_comment(name: str, snapshot: SnapshotAssertion) -> None:
    body = render_comment(SITUATIONS[name], marker=MARKER)
    assert body == snapshot(name=name)
    assert body.startswith(MARKER)
    assert len(body) <= LIMIT
    assert command_lines(body) == ()


@pytest.mark.parametrize(
    "name", ["regression", "user_error", "cancelled", "over_budget", "three_benchmarks", "no_change"]
)
def test_notice(name: str, snapshot: SnapshotAssertion) -> None:
    notice = short_notice(SITUATIONS[name])
    assert notice == snapshot(name=name)
    assert HEAD[:7] in notice


@pytest.mark.parametrize("name", SITUATIONS)
def test_every_situation_names_its_commit_and_keeps_its_tables(name: str) -> None:
    body = render_comment(SITUATIONS[name], marker=MARKER)
    seen = read(body)
    assert HEAD[:7] in seen.text
    assert set(seen.tags) <= ALLOWED
    assert seen.tags.count("details") == body.count("</details>")
    assert set(seen.rows) <= {4, 5, 6, 8}


def test_all_three_benchmarks_are_in_the_table_when_two_gave_nothing() -> None:
    body = render_comment(SITUATIONS["three_benchmarks"], marker=MARKER)
    for name, word in (("first", "not measured"), ("second", "failed"), ("third", "no change")):
        assert any(f"| `{name}`" in line and line.rstrip("| ").endswith(word) for line in body.split("\n"))


def test_a_mention_in_a_name_or_log_reaches_nobody() -> None:
    body = render_comment(SITUATIONS["hostile_names"], marker=MARKER)
    assert "@alice" not in body
    assert "@org" not in body
    assert "<script" not in body
    assert read(body).tags.count("img") == 1


def test_a_result_of_an_older_head_says_so_before_anything_else() -> None:
    lines = render_comment(replace(SITUATIONS["regression"], outdated_by="f" * 40), marker=MARKER).split("\n")
    assert lines[0] == MARKER
    assert lines[1].startswith("> **Outdated.**")
    assert "`fffffff`" in lines[1]
    assert f"`{HEAD[:7]}`" in lines[1]


@pytest.mark.parametrize("count", [1, 40, 400])
def test_what_does_not_fit_is_counted(count: int) -> None:
    body = render_comment(many(count), marker=MARKER)
    assert len(body) <= LIMIT
    seen = read(body)
    assert seen.tags.count("details") == body.count("</details>")
    assert ("more rows on" in body) == (count > 1)


def test_the_worst_rows_are_those_that_are_kept() -> None:
    good = [benchmark(f"good-{n}", comparisons=(SAME_ACCURACY,)) for n in range(500)]
    bad = benchmark("bad", verdict="regression", comparisons=(WORSE_ACCURACY,))
    body = render_comment(report(*good, bad, verdict="regression"), marker=MARKER)
    assert "| `bad` · `accuracy` ↑ |" in body


@settings(max_examples=60)
@given(HOSTILE, HOSTILE, HOSTILE, st.sampled_from(["done", "running", "queued", "cancelled"]))
def test_nothing_that_people_wrote_comes_alive(name: str, words: str, log: str, state: str) -> None:
    odd = replace(
        WORSE_ACCURACY, metric=replace(ACCURACY, name=name, unit=words), sentence=f"regression: {name} {words}"
    )
    broken = failing("user_error", log, benchmark=words, lease_id="second", notes=(log,), hardware=name)
    first = benchmark(
        name, verdict="regression", comparisons=(odd,), scenario=words, init=log, phase=log, machine=words
    )
    said = report(
        first, broken, state=state, command=f"/benchmark {name}", requester=words, baseline=name, notes=(words,)
    )
    for body in (render_comment(said, marker=MARKER), short_notice(said)):
        seen = read(body)
        assert set(seen.tags) <= ALLOWED
        assert words_of_others(body) == []
        assert len(body) <= LIMIT
        assert command_lines(body) == ()
        assert set(seen.rows) <= {4, 5, 6, 8}


def test_a_long_request_of_hostile_names_still_fits() -> None:
    name = "<|`@é" * 200
    odd = replace(WORSE_ACCURACY, metric=replace(ACCURACY, name=name, unit=name), sentence=name)
    many_odd = [benchmark(name, lease_id=str(n), verdict="regression", comparisons=(odd,) * 5) for n in range(80)]
    said = report(*many_odd, command=name, requester=name, baseline=name, notes=(name,) * 50, reproduce=name * 9)
    assert len(render_comment(said, marker=MARKER)) <= LIMIT


# ---- replies --------------------------------------------------------------------------------------------------------

TYPO = Reply(
    line=1,
    typed="/benchmark resnt50 --seeds three",
    refusal=Refusal(
        code="unknown_target", sentence="There is no benchmark `resnt50`.", hint="Did you mean `resnet50`?", line=1
    ),
)
ACCEPTED = Reply(line=2, typed="/benchmark vit seeds=3", request_id="req2")
ANSWER = Reply(line=3, typed="/benchmark list", text="| Benchmark | Hardware |\n|---|---|\n| `vit` | `local` |")


@pytest.mark.parametrize(
    ("name", "items"),
    [
        ("refused", (TYPO,)),
        ("answered", (ANSWER,)),
        ("joint", (TYPO, ACCEPTED, ANSWER)),
        ("done_without_words", (Reply(line=1, typed="/benchmark cancel"),)),
    ],
)
def test_reply(name: str, items: tuple[Reply, ...], snapshot: SnapshotAssertion) -> None:
    body = render_reply(items)
    assert body == snapshot(name=name)
    assert command_lines(body) == ()


@given(HOSTILE, HOSTILE, HOSTILE)
def test_a_refusal_quotes_without_harm(typed: str, sentence: str, hint: str) -> None:
    refused = Reply(line=1, typed=typed, refusal=Refusal(code="x", sentence=sentence, hint=hint))
    seen = read(render_reply((refused, ACCEPTED)))
    assert set(seen.tags) <= {"p", "code"}
    assert seen.alive == []


def test_a_reply_fits() -> None:
    assert len(render_reply((replace(ANSWER, text="word\n\n" * 30_000),))) <= LIMIT


def test_next_commands_of_the_request_come_first() -> None:
    said: Report = replace(SITUATIONS["no_change"], next_commands=("/benchmark resnet50 seeds=5",))
    assert "Next: `/benchmark resnet50 seeds=5`</sub>" in render_comment(said, marker=MARKER)


# ---- limits ---------------------------------------------------------------------------------------------------------


def everything_long(count: int) -> Report:
    """A report in which each text is long and each character of it takes as much room as it can."""
    name = "<|`@é\U0001f680" * 200
    links = tuple(Link(name=name, url=f"https://bench.example/{'<' * 300}") for _ in range(50))
    odd = replace(WORSE_ACCURACY, metric=replace(ACCURACY, name=name, unit=name), sentence=name)
    why = reason("user_error", name)
    runs = tuple(
        replace(one, state="failed", reason=why, log_tail=name * 9, imported=name, links=links) for one in FOUR_RUNS
    )
    each = [
        benchmark(
            name,
            lease_id=f"{at}{name}",
            hardware=f"{at}{name}",
            verdict="regression",
            comparisons=(odd,) * 5,
            reason=why,
            runs=runs,
            notes=(name,),
            phase=name,
            machine=name,
        )
        for at in range(count)
    ]
    texts = {"command": f"/benchmark {name}", "requester": name, "baseline": name, "reproduce": name * 9}
    return report(
        *each, **texts, notes=(name,) * 50, links=links, next_commands=(name,) * 9, outdated_by=HEAD, reason=why
    )


@pytest.mark.parametrize("state", ["done", "running", "queued", "cancelled"])
@pytest.mark.parametrize("count", [0, 1, 60])
def test_the_longest_of_everything_fits(count: int, state: str) -> None:
    said = replace(everything_long(count), state=state)  # type: ignore[arg-type]  # one of the four states
    body = render_comment(said, marker=MARKER)
    assert len(body) <= LIMIT < 65_536
    assert "the rest did not fit" not in body
    seen = read(body)
    assert seen.tags.count("details") == body.count("</details>")
    assert set(seen.rows) <= {4, 5, 6, 8}
    assert len(short_notice(said)) <= LIMIT
    check = render_check(said)
    assert len(check.summary.encode()) <= 65_535
    assert len(check.text.encode()) <= 65_535
    assert "the rest did not fit" not in check.summary + check.text


def test_a_smaller_limit_holds_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.report.comment.LIMIT", 500)
    body = render_comment(SITUATIONS["regression"], marker=MARKER)
    assert len(body) <= 500
    assert body.startswith(f"{MARKER}\n### 🔴 1 regression")
    monkeypatch.setattr("bot.report.check.BODY", 400)
    assert len(render_check(SITUATIONS["regression"]).summary.encode()) <= 400


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_verdict_comes_first_then_what_needs_you_then_one_table_then_folds(name: str) -> None:
    said = SITUATIONS[name]
    lines = render_comment(said, marker=MARKER).split("\n")
    assert next(line for line in lines[1:] if line and not line.startswith("> **Outdated.**")).startswith("### ")
    order = [at for at, line in enumerate(lines) if line == "**Needs you**"]
    order += [at for at, line in enumerate(lines) if line.startswith("| Benchmark")][:1]
    order += [at for at, line in enumerate(lines) if line.startswith("<details>")][:1]
    order += [at for at, line in enumerate(lines) if line.startswith("<sub>Next:")]
    assert order == sorted(order)
    assert len([line for line in lines if line.startswith("<sub>Next:")]) == 1
