"""The same report on a terminal, as data and as pages."""

import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from syrupy.assertion import SnapshotAssertion

from bot.core.money import Spent
from bot.core.nouns import Link
from bot.core.reasons import reason
from bot.report.check import render_check
from bot.report.comment import render_comment
from bot.report.data import request_data
from bot.report.page import (
    CostRow,
    CostsPage,
    FileEntry,
    IndexPage,
    IndexRow,
    Moment,
    RequestPage,
    RunFiles,
    RunPage,
    render_costs,
    render_error,
    render_index,
    render_request,
    render_run,
)
from bot.report.terminal import render_terminal
from tests.unit.report.situations import (
    ACCURACY,
    FOUR_RUNS,
    HEAD,
    benchmark,
    comparison,
    failing,
    many,
    report,
    situations,
)
from tests.unit.report.test_text import HOSTILE

SITUATIONS = situations()
TAGS = {
    "html",
    "head",
    "meta",
    "title",
    "link",
    "body",
    "a",
    "header",
    "main",
    "h1",
    "h2",
    "h3",
    "p",
    "code",
    "pre",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "ul",
    "ol",
    "li",
    "div",
    "span",
    "section",
    "nav",
    "figure",
    "figcaption",
    "img",
    "details",
    "summary",
    "dl",
    "dt",
    "dd",
    "script",
    "progress",
    "meter",
    "time",
    "br",
    "small",
    "b",
    "strong",
    "article",
    "footer",
    "em",
    "sub",
    "noscript",
    "output",
    "svg",
    "path",
    "button",
}


class _Page(HTMLParser):
    """Collects what a browser would act on."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.scripts: list[str] = []
        self.handlers: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            if name.startswith("on") or name == "style":
                self.handlers.append(f"{tag} {name}")
            if name in ("href", "src"):
                self.addresses.append(value or "")
            if tag == "script" and name == "src":
                self.scripts.append(value or "")


def _harmless(html: str) -> _Page:
    page = _Page()
    page.feed(html)
    assert page.tags <= TAGS, page.tags - TAGS
    assert page.handlers == []
    assert all(script.startswith("/static/") for script in page.scripts)
    assert all(re.match(r"(https?://|/|#|$)", address) for address in page.addresses), page.addresses
    return page


# ---- terminal and data


@pytest.mark.parametrize("name", SITUATIONS)
def test_terminal(name: str, snapshot: SnapshotAssertion) -> None:
    said = render_terminal(SITUATIONS[name])
    assert said == snapshot(name=name)
    assert said.endswith("\n")
    assert "\x1b" not in said


def test_colour_only_when_asked_for() -> None:
    assert "\x1b[31m" in render_terminal(SITUATIONS["regression"], colour=True)


@given(HOSTILE, HOSTILE)
@settings(deadline=None)
def test_no_control_character_reaches_the_terminal(name: str, words: str) -> None:
    said = render_terminal(report(failing("user_error", words, benchmark=name, notes=(words,)), notes=(words,)))
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", said)


@pytest.mark.parametrize("name", SITUATIONS)
def test_data_is_json(name: str) -> None:
    said = SITUATIONS[name]
    data = json.loads(json.dumps(request_data(said, comment="x"), allow_nan=False))
    assert data["verdict"] == said.verdict
    assert data["head_sha"] == HEAD
    assert data["comment"] == "x"
    assert [each["benchmark"] for each in data["benchmarks"]] == [each.benchmark for each in said.benchmarks]


def test_simulated_hardware_is_called_so_everywhere() -> None:
    said = report(benchmark(hardware="tpu-sim", simulated="tpu"))
    page = render_request(RequestPage(report=said, pull_url="https://github.com/acme/digits/pull/7"))
    for text in (render_terminal(said), page, render_comment(said, marker=""), render_check(said).summary):
        assert "simulated TPU: a CPU in its place, not comparable with a real one" in text
    (told,) = json.loads(json.dumps(request_data(said, comment="")))["benchmarks"]
    assert (told["hardware"], told["simulated"]) == ("tpu-sim", "tpu")


def test_numbers_that_json_lacks_are_words() -> None:
    odd = comparison(
        ACCURACY, (math.nan, math.inf), (-math.inf, 76.0), head_centre=math.nan, interval=(-math.inf, 1.0), p=0.5
    )
    said = request_data(report(benchmark(comparisons=(odd,), reason=reason("oom")), number=0))
    (found,) = json.loads(json.dumps(said, allow_nan=False))["benchmarks"]
    (metric,) = found["metrics"]
    assert metric["head_values"] == ["NaN", "Infinity"]
    assert metric["base_values"] == ["-Infinity", 76.0]
    assert (metric["head"], metric["interval"], metric["p"]) == ("NaN", ["-Infinity", 1.0], 0.5)
    assert found["reason"] == {"code": "oom", "fault": "user", "sentence": "The training command ran out of memory."}
    assert said["pull_request"] is None


# ---- pages


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_page_of_a_request(name: str) -> None:
    said = SITUATIONS[name]
    files = tuple(
        RunFiles(
            run=run,
            benchmark="digits-resnet",
            url=f"/runs/{run.id}",
            files=(
                FileEntry(path="checkpoints/best.pt", url=f"/runs/{run.id}/files/checkpoints/best.pt", size=30_500),
            ),
        )
        for run in FOUR_RUNS
    )
    page = RequestPage(
        report=said,
        pull_url="https://github.com/acme/digits/pull/7",
        files=files,
        timeline=(Moment(at=said.created_at, sentence="Asked for by maya."),),
    )
    html = render_request(page)
    _harmless(html)
    assert HEAD[:7] in html
    assert "Asked for by maya." in html
    if said.verdict is not None and said.benchmarks:
        assert said.verdict in html


@given(HOSTILE, HOSTILE)
@settings(deadline=None, max_examples=60)
def test_no_page_runs_what_people_wrote(name: str, words: str) -> None:
    odd = benchmark(name, scenario=words, init=name, hardware=words, notes=(words,), machine=name)
    broken = failing("user_error", words, benchmark=name, lease_id="second")
    said = report(odd, broken, command=words, requester=name, baseline=words, notes=(name,), reproduce=words)
    _harmless(render_request(RequestPage(report=said, timeline=(Moment(at=0.0, sentence=words),))))
    run = FOUR_RUNS[0]
    entry = FileEntry(path=words, url="/runs/x/files/y", size=1)
    _harmless(
        render_run(
            RunPage(report=said, benchmark=odd, run=run, url="/runs/x", request_url="/requests/x", files=(entry,))
        )
    )
    row = IndexRow(
        url="/requests/x",
        full_name=name,
        number=1,
        command=words,
        requester=name,
        head_sha=HEAD,
        state="done",
        verdict="no change",
        created_at=0.0,
    )
    _harmless(render_index(IndexPage(rows=(row,))))
    cost = CostRow(
        url=name,
        full_name=name,
        number=1,
        command=words,
        requester=name,
        created_at=0.0,
        state="queued",
        estimate_usd=None,
        reserved_usd=1.0,
        spent_usd=0.0,
    )
    spent = Spent(name=name, usd=1.0, seconds=60.0, machines=1)
    _harmless(render_costs(CostsPage(month="2026-12", months=(spent,), shares={"hardware": (spent,)}, rows=(cost,))))
    _harmless(render_error(404, words))


def test_only_addresses_of_the_web_become_links() -> None:
    said = report(benchmark(), links=(Link(name="results", url="javascript:alert(1)"),))
    assert "javascript:" not in render_request(RequestPage(report=said))


def test_costs_of_nothing_say_so() -> None:
    month = Spent(name="2026-12", usd=0.0, seconds=0.0, machines=0)
    html = render_costs(CostsPage(month="2026-12", months=(month,), shares={"hardware": ()}, rows=()))
    _harmless(html)
    assert "No machine was there." in html
    assert "Nothing has been asked for yet." in html
    assert "?month=" not in html


def test_an_empty_list_says_so() -> None:
    html = render_index(IndexPage(rows=()))
    _harmless(html)
    assert "benchmark" in html


def test_long_lists_are_folded_and_nothing_is_lost() -> None:
    said = many(40)
    html = render_request(RequestPage(report=said))
    _harmless(html)
    opened = html[: html.index("<summary>")]
    assert opened.count("Next:") == 5
    assert html.count("<summary>45 more</summary>") == 1
    assert html.count("<summary>37 more</summary>") == 1
    assert html.count('class="curves"') == 40
    for each in said.benchmarks:
        assert html.count(each.benchmark) >= 3


def test_a_failed_run_tells_why_and_a_queued_one_has_no_tensorboard() -> None:
    broken = failing("oom")
    page = RunPage(
        report=report(broken), benchmark=broken, run=broken.runs[0], url="/runs/a", request_url="/requests/b"
    )
    html = render_run(page)
    _harmless(html)
    assert "ran out of memory" in html
    assert "TensorBoard" not in html
    assert 'data-final="yes"' in html
    assert HEAD in html


@pytest.mark.parametrize(
    ("status", "title"), [(404, "Not found"), (500, "Something went wrong"), (418, "Not possible")]
)
def test_an_error_has_a_title_and_a_way_on(status: int, title: str) -> None:
    html = render_error(status, "This is why.")
    page = _harmless(html)
    assert f"<h1>{title}</h1>" in html
    assert "This is why." in html
    assert "/" in page.addresses


def test_the_list_reloads_only_while_something_goes_on() -> None:
    row = IndexRow(
        url="/requests/x",
        full_name="acme/digits",
        number=7,
        command="",
        requester="mia",
        head_sha=HEAD,
        state="running",
        verdict="running",
        created_at=0.0,
    )
    assert "data-refresh" in render_index(IndexPage(rows=(row,)))
    ended = replace(row, state="done", verdict="no change")
    html = render_index(IndexPage(rows=(ended,)))
    assert "data-refresh" not in html
    assert "approval" in html
    assert "1970-01-01 00:00 UTC" in html


def test_what_nobody_sees_is_not_on_a_page() -> None:
    said = report(
        failing("user_error", "a\x00\x1b[31mb\u202ec\r\nd", benchmark="re\u202esnet\u200b"), notes=("n\u2066n",)
    )
    html = render_request(RequestPage(report=said))
    assert not re.search("[\x00-\x08\x0b-\x1f\u200b\u202e\u2066]", html)
    assert "resnet" in html
    assert '<pre tabindex="0">a[31mbc\nd</pre>' in html
