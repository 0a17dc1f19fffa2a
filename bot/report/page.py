"""The pages of the web application, each from one dataclass. What people wrote is escaped by the templates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from bot.core.environments import Environment
from bot.core.money import Spent
from bot.core.nouns import BenchmarkReport, Link, Report, RunReport
from bot.core.quantities import moment
from bot.measure.outside import Outside
from bot.report import findings, values, view
from bot.report.cells import NOTHING
from bot.report.masking import mask
from bot.report.text import plain, safe_url
from bot.report.values import counted, duration, size
from templates import load

FINAL = ("done", "failed", "cancelled")
# a request of many benchmarks has as many pictures: the rest is folded, and so not fetched before it is asked for
OPEN_CURVES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """A file to download: `path` below the run's folder, `size` in bytes, `sha256` empty while it is not confirmed.

    `removed_at` is when retention took it away.
    """

    path: str
    url: str
    size: int
    sha256: str = ""
    removed_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFiles:
    """The files of one run of a request."""

    run: RunReport
    benchmark: str
    url: str
    files: tuple[FileEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Something that happened: when, in seconds since the epoch, and a plain sentence."""

    at: float
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestPage:
    """The page of a request. `pull_url` leads to the pull request, empty where there is none."""

    report: Report
    pull_url: str = ""
    files: tuple[RunFiles, ...] = ()
    timeline: tuple[Moment, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    """The page of a run at `url`, below which `log` and `events` are served; `request_url` leads back."""

    report: Report
    benchmark: BenchmarkReport
    run: RunReport
    url: str
    request_url: str
    tensorboard_url: str = ""
    files: tuple[FileEntry, ...] = ()
    environment: Environment | None = None  # what it ran in


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRow:
    """A request in the list: `verdict` is its verdict, or its state while it has none."""

    url: str
    full_name: str
    number: int
    command: str
    requester: str
    head_sha: str
    state: str
    verdict: str
    created_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexPage:
    """The recent requests, newest first."""

    rows: tuple[IndexRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRow:
    """A request with its money: the most that it may cost (None: not known), what is reserved, what was spent."""

    url: str
    full_name: str
    number: int
    command: str
    requester: str
    created_at: float
    state: str
    estimate_usd: float | None
    reserved_usd: float
    spent_usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CostsPage:
    """What machines have cost: month by month, and in one `month` by repository, person and hardware."""

    month: str
    months: tuple[Spent, ...]
    shares: Mapping[str, tuple[Spent, ...]]
    rows: tuple[CostRow, ...]


def render_request(page: RequestPage) -> str:
    """The page of a request as HTML: every table in full, curves, files, timeline, method, reproduction."""
    report = page.report
    rows = findings.rows(report)
    done = report.state == "done"
    return _render(
        "request.html",
        page=page,
        report=report,
        going=report.state in ("queued", "running"),
        headline=view.plain_headline(report),
        baseline=view.baseline(report),
        cost=view.cost(report),
        links=_web(report.links),
        needs=view.items(report),
        most_needs=findings.NEEDS,
        progress=view.progress(report),
        tables=view.tables(rows) if done else (),
        curves=[b for b in report.benchmarks if safe_url(b.curves_url)] if done else [],
        most_curves=OPEN_CURVES,
        failures=view.failures(report),
        runs=view.run_lines(report.benchmarks),
        facts=(*view.method(report), *view.environment(report)),
        notes=view.notes(report),
        commands=findings.next_commands(report),
    )


def render_run(page: RunPage) -> str:
    """The page of a run as HTML; its script fills log and curves in."""
    run = page.run
    facts = [
        ("Benchmark", findings.label(page.benchmark)),
        ("Hardware", page.benchmark.hardware),
        ("Side", f"{run.side}, seed {run.seed}"),
        ("Commit", run.commit),
        ("Time", duration(run.seconds) if run.seconds is not None else NOTHING),
    ]
    facts += _outside(run.outside)
    facts += [("Environment", _software(page.environment))] if page.environment else []
    facts += [("Not real", findings.simulated_note(page.benchmark))] if page.benchmark.simulated else []
    facts += [("Imported", run.imported)] if run.imported else []
    return _render("run.html", page=page, run=run, facts=facts, final=run.state in FINAL, links=_web(run.links))


def _outside(outside: Outside) -> list[tuple[str, str]]:
    """What the agent measured beside the time of the command."""
    phases = (("checkout", outside.checkout_s), ("setup", outside.setup_s), ("inputs", outside.inputs_s))
    before = ", ".join(f"{name} {duration(seconds)}" for name, seconds in phases if seconds is not None)
    device = f"not measured: {outside.device_trouble}" if outside.device_trouble else ""
    device = device if outside.peak_device_bytes is None else size(outside.peak_device_bytes)
    facts = [
        ("Before it", before),
        ("Exit status", "" if outside.exit_status is None else str(outside.exit_status)),
        ("Host memory", "" if outside.peak_rss_bytes is None else f"{size(outside.peak_rss_bytes)} at most"),
        ("Device memory", device),
    ]
    return [(name, said) for name, said in facts if said]


def _software(found: Environment) -> str:
    """`Python 3.11.7, torch 2.13.0 for CUDA 12.8, driver 580.95.05, 123 packages (sha256 4f3c...)`."""
    said = [f"Python {found.python}"] if found.python else []
    for name, version in found.frameworks.items():
        said.append(f"{name} {version}" + (f" for CUDA {found.cuda[name]}" if name in found.cuda else ""))
    said += [f"driver {found.driver}"] if found.driver else []
    said.append(f"{counted(len(found.packages), 'package')} (sha256 {found.packages_sha256[:12]})")
    return ", ".join(said)


def render_index(page: IndexPage) -> str:
    """The list of recent requests as HTML."""
    return _render("index.html", rows=page.rows, going=any(row.state in ("queued", "running") for row in page.rows))


def render_costs(page: CostsPage) -> str:
    """What machines have cost as HTML."""
    return _render("costs.html", page=page, most=max((month.usd for month in page.months), default=0.0))


def render_error(status: int, sentence: str) -> str:
    """A page for what could not be shown; `sentence` is for people."""
    titles = {
        404: "Not found",
        410: "Removed",
        503: "Not now",
        403: "Not allowed",
        400: "Not understood",
        500: "Something went wrong",
    }
    return _render("error.html", status=status, title=titles.get(status, "Not possible"), sentence=sentence)


def sentence_html(text: str) -> Markup:
    """A sentence of ours that holds names in backticks: they become code, all is escaped, secrets are masked."""
    parts = plain(mask(text), lines=True).split("`")
    if len(parts) % 2 == 0:
        parts[-2:] = ["`".join(parts[-2:])]
    shown = [Markup("<code>{}</code>").format(part) if at % 2 else escape(part) for at, part in enumerate(parts)]
    return Markup("").join(shown)


def _web(links: Sequence[Link]) -> tuple[Link, ...]:
    """The links whose address is one of the web."""
    return tuple(link for link in links if safe_url(link.url))


def _visible(value: object) -> object:
    """A value without the characters that nobody sees, or that turn the order of others around."""
    return plain(value, lines=True) if isinstance(value, str) and not isinstance(value, Markup) else value


def _render(name: str, **context: object) -> str:
    ours = {
        "sentence": sentence_html,
        "short": findings.short,
        "url": safe_url,
        "duration": duration,
        "moment": moment,
        "removed": values.removed,
        "size": size,
        "money": values.money,
        "web": _web,
    }
    return load("pages", name, finalize=_visible).render(ours | context)
