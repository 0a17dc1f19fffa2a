"""The same report on a terminal, as data, as pages and as a picture."""

import io
import json
import re
from html.parser import HTMLParser

import matplotlib.image
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from bot.core.nouns import Link
from bot.report.data import request_data
from bot.report.figures import LIMIT, Panel, Trace, curves_png
from bot.report.page import (
    FileEntry,
    IndexPage,
    IndexRow,
    Moment,
    RequestPage,
    RunFiles,
    RunPage,
    render_error,
    render_index,
    render_request,
    render_run,
)
from bot.report.terminal import render_terminal
from tests.unit.report.situations import FOUR_RUNS, HEAD, benchmark, failing, report, situations
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
    _harmless(render_error(404, words))


def test_only_addresses_of_the_web_become_links() -> None:
    said = report(benchmark(), links=(Link(name="results", url="javascript:alert(1)"),))
    assert "javascript:" not in render_request(RequestPage(report=said))


def test_an_empty_list_says_so() -> None:
    html = render_index(IndexPage(rows=()))
    _harmless(html)
    assert "benchmark" in html


# ---- pictures


def _trace(values: list[float]) -> Trace:
    return Trace(steps=np.arange(len(values), dtype=np.int64), values=np.array(values, dtype=np.float64))


def _pixels(png: bytes) -> tuple[int, ...]:
    return tuple(matplotlib.image.imread(io.BytesIO(png)).shape)


def test_the_picture_is_of_these_curves() -> None:
    one = Panel(label="loss", head=(_trace([3.0, 2.0, 1.0]),), base=(_trace([3.0, 2.5, 2.0]),))
    other = Panel(label="loss", head=(_trace([3.0, 2.0, 2.0]),), base=(_trace([3.0, 2.5, 2.0]),))
    assert curves_png([one]) == curves_png([one])
    assert curves_png([one]) != curves_png([other])
    assert _pixels(curves_png([one] * 4))[0] > _pixels(curves_png([one]))[0]
    assert _pixels(curves_png([]))[0] > 0


@given(
    st.lists(st.lists(st.floats(), max_size=40), max_size=3),
    st.lists(st.lists(st.floats(), max_size=40), max_size=3),
    HOSTILE,
)
@settings(deadline=None, max_examples=25)
def test_whatever_was_written_there_is_a_picture(head: list[list[float]], base: list[list[float]], label: str) -> None:
    panel = Panel(label=label, unit=label, head=tuple(map(_trace, head)), base=tuple(map(_trace, base)))
    png = curves_png([panel])
    assert png.startswith(b"\x89PNG")
    assert len(png) <= LIMIT


def test_a_long_training_is_a_small_picture() -> None:
    noise = np.random.default_rng(1).normal(size=200_000).tolist()
    panels = [Panel(label=f"m{at}", head=(_trace(noise),), base=(_trace(noise[::-1]),)) for at in range(4)]
    assert len(curves_png(panels)) <= LIMIT
