"""Curves of head and base in one picture: for each metric the median over the runs and the spread round it.

Curves of many steps are put together from stretches: the line is the mean of each stretch, the band reaches from the
lowest value in it to the highest, so that noise stays readable and no spike is lost.

Draws with matplotlib's objects only, so that nothing is shared between two pictures; the same curves give the same
bytes.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from bot.report.text import plain, shorten

Floats = NDArray[np.float64]

# seen on a white and on a dark page, and told apart by people who see no red or green
HEAD_COLOUR, BASE_COLOUR, INK = "#e8710a", "#4a8fe0", "#808890"
COLUMNS, PANEL_INCHES, DPI = 2, (4.6, 2.9), 150
PANELS = 6
# points of a line, and steps at which curves of different runs are brought together
POINTS, STEPS = 100, 20_000
LIMIT = 200_000
LARGEST = 1e100


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One run's curve: `steps` int64[n] or float64[n], `values` float64[n]; values may be NaN or infinite."""

    steps: NDArray[np.int64] | Floats
    values: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One small picture: the curves of one tag, one per run. `label` and `unit` may be any text."""

    label: str
    unit: str = ""
    head: tuple[Trace, ...] = ()
    base: tuple[Trace, ...] = ()


def curves_png(panels: Sequence[Panel]) -> bytes:
    """One PNG of at most 200 kB with up to six panels; an empty list gives a picture that says so."""
    drawn = _draw(panels[:PANELS])
    image = _png(drawn, DPI)
    for dpi in (100, 75, 50, 30):
        if len(image) <= LIMIT:
            break
        image = _png(drawn, dpi)
    return image


def _draw(panels: Sequence[Panel]) -> Figure:
    rows = max(1, -(-len(panels) // COLUMNS))
    figure = Figure(figsize=(PANEL_INCHES[0] * COLUMNS, PANEL_INCHES[1] * rows), layout="tight")
    figure.patch.set_alpha(0.0)
    if not panels:
        figure.text(0.5, 0.5, "no curves", color=INK, ha="center", va="center")
    grid = figure.add_gridspec(rows, COLUMNS)
    for position, panel in enumerate(panels):
        row, column = divmod(position, COLUMNS)
        # the last one without a neighbour takes the whole width
        alone = position == len(panels) - 1 and column == 0
        _panel(figure.add_subplot(grid[row, :] if alone else grid[row, column]), panel)
    return figure


def _panel(axes: Axes, panel: Panel) -> None:
    axes.patch.set_alpha(0.0)
    _side(axes, panel.base, BASE_COLOUR, "base")
    _side(axes, panel.head, HEAD_COLOUR, "head")
    # curves of a metric in points may be fractions: they are drawn as they were written
    unit = f" ({_safe(panel.unit, 12)})" if panel.unit not in ("", "pp") else ""
    title = f"{_safe(panel.label, 34)}{unit}"
    axes.set_title(title, color=INK, fontsize=10, loc="left", pad=18, parse_math=False)
    axes.set_xlabel("step", color=INK, fontsize=8)
    axes.tick_params(colors=INK, labelsize=8)
    axes.ticklabel_format(useMathText=False)
    axes.grid(True, color=INK, alpha=0.25, linewidth=0.6)
    for spine in axes.spines.values():
        spine.set_color(INK)
        spine.set_alpha(0.5)
    if panel.head or panel.base:
        # above the picture, where no curve can run through it
        place = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "ncols": 2, "borderaxespad": 0.1}
        axes.legend(fontsize=8, labelcolor=INK, frameon=False, handlelength=1.2, columnspacing=1.0, **place)
    else:
        axes.set_xticks([])
        axes.set_yticks([])
        axes.text(0.5, 0.5, "no curve", color=INK, ha="center", va="center", transform=axes.transAxes)


def _side(axes: Axes, traces: Sequence[Trace], colour: str, name: str) -> None:
    """The median of the runs as a line, their lowest and highest as a band, and a cross where a run is not finite."""
    if not traces:
        return
    traces = [_drawable(trace) for trace in traces]
    steps, finite = _aligned(traces)
    seen = np.isfinite(finite).any(axis=0)
    label = f"{name} ({len(traces)} {'run' if len(traces) == 1 else 'runs'})"
    if not seen.any():
        axes.plot([], [], color=colour, label=label)
    else:
        at, centre, low, high = _stretches(steps[seen], finite[:, seen])
        marker = "o" if len(at) == 1 else None
        axes.plot(at, centre, color=colour, linewidth=1.6, alpha=0.9, label=label, marker=marker, markersize=4)
        if (high > low).any():
            axes.fill_between(at, low, high, color=colour, alpha=0.2, linewidth=0)
    for trace in traces:
        _broken(axes, trace, colour)


def _stretches(steps: Floats, values: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Where to draw, the centre, the lowest and the highest value there: each float64[n], at most POINTS of them.

    `values` is float64[runs, steps]; every step has at least one value.
    """
    centre, low, high = np.nanmedian(values, axis=0), np.nanmin(values, axis=0), np.nanmax(values, axis=0)
    if len(steps) <= POINTS:
        return steps, centre, low, high
    first = np.linspace(0, len(steps), POINTS, endpoint=False).astype(np.int64)
    count = np.diff(first, append=len(steps))
    at, middle = (np.add.reduceat(of, first) / count for of in (steps, centre))
    at[[0, -1]] = steps[[0, -1]]
    return at, middle, np.minimum.reduceat(low, first), np.maximum.reduceat(high, first)


def _drawable(trace: Trace) -> Trace:
    """Values beyond what axes can be scaled to are shown like those that are no numbers."""
    return Trace(steps=trace.steps, values=np.where(np.abs(trace.values) < LARGEST, trace.values, np.nan))


def _broken(axes: Axes, trace: Trace, colour: str) -> None:
    """A cross at the first step where a run stops being a number, at the height of its last number."""
    bad = np.flatnonzero(~np.isfinite(trace.values))
    if not len(bad):
        return
    before = trace.values[: bad[0]]
    height = float(before[-1]) if len(before) else 0.0
    at = (float(trace.steps[bad[0]]), height)
    axes.plot(*at, color=colour, marker="x", markersize=8, markeredgewidth=2)
    axes.annotate("NaN", at, color=colour, fontsize=8, xytext=(5, -12), textcoords="offset points")


def _aligned(traces: Sequence[Trace]) -> tuple[Floats, Floats]:
    """Common steps float64[n] and the value of every run there, float64[runs, n]; NaN outside of a run's own steps."""
    steps = np.unique(np.concatenate([trace.steps for trace in traces])).astype(np.float64)
    if len(steps) > STEPS:
        steps = steps[np.unique(np.linspace(0, len(steps) - 1, STEPS).astype(np.int64))]
    values = np.full((len(traces), len(steps)), np.nan)
    for row, trace in enumerate(traces):
        order = np.argsort(trace.steps, kind="stable")
        own, written = trace.steps[order], trace.values[order]
        kept = np.isfinite(written)
        if kept.any():
            values[row] = np.interp(steps, own[kept], written[kept], left=np.nan, right=np.nan)
    return steps, values


def _safe(text: str, most: int) -> str:
    """A label without what matplotlib would read as mathematics, and without letters its font lacks."""
    shown = shorten(plain(text), characters=most)
    return "".join(character if ord(character) < 0x2E80 else "?" for character in shown) or "(no name)"


def _png(figure: Figure, dpi: int) -> bytes:
    image = io.BytesIO()
    with matplotlib.rc_context({"font.family": "DejaVu Sans", "axes.formatter.use_mathtext": False}):
        FigureCanvasAgg(figure).print_figure(image, dpi=dpi, format="png", metadata={"Software": None})
    return image.getvalue()
