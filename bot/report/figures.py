"""Curves of head and base in one picture: for each metric the median over the runs and the spread round it.

Curves of many steps are put together from stretches: the line is the mean of each stretch, the band reaches from the
lowest value in it to the highest, so that noise stays readable and no spike is lost.

Draws with matplotlib's objects only and changes none of its settings, so that nothing is shared between two pictures
that are drawn at once; the same curves give the same bytes.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font
from numpy.typing import NDArray

from bot.measure.curves import spread
from bot.report.text import plain, shorten

Floats = NDArray[np.float64]

# seen on a white and on a dark page, and told apart by people who see no red or green
HEAD_COLOUR, BASE_COLOUR, INK = "#e8710a", "#4a8fe0", "#808890"
COLUMNS, PANEL_INCHES, DPI = 2, (4.6, 2.9), 150
PANELS = 6
POINTS = 100
FONT = "DejaVu Sans"
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
    for dpi in (DPI, 100, 75, 50):
        image = _png(drawn, dpi)
        if len(image) <= LIMIT:
            return image
    return _png(drawn, 30)


def _draw(panels: Sequence[Panel]) -> Figure:
    rows = max(1, -(-len(panels) // COLUMNS))
    figure = Figure(figsize=(PANEL_INCHES[0] * COLUMNS, PANEL_INCHES[1] * rows), layout="tight")
    figure.patch.set_alpha(0.0)
    if not panels:
        figure.text(0.5, 0.5, "no curves", color=INK, family=FONT, ha="center", va="center")
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
    unit = f" ({_safe(panel.unit, 12)})" if panel.unit else ""
    title = f"{_safe(panel.label, 34)}{unit}"
    axes.set_title(title, color=INK, family=FONT, fontsize=10, loc="left", pad=18, parse_math=False)
    axes.set_xlabel("step", color=INK, family=FONT, fontsize=8)
    axes.tick_params(colors=INK, labelsize=8, labelfontfamily=FONT)
    axes.ticklabel_format(useMathText=False)
    for axis in (axes.xaxis, axes.yaxis):
        axis.get_offset_text().set(family=FONT, size=8, color=INK)
    axes.grid(True, color=INK, alpha=0.25, linewidth=0.6)
    for spine in axes.spines.values():
        spine.set_color(INK)
        spine.set_alpha(0.5)
    if panel.head or panel.base:
        # above the picture, where no curve can run through it
        place = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "ncols": 2, "borderaxespad": 0.1}
        axes.legend(
            prop={"family": FONT, "size": 8},
            labelcolor=INK,
            frameon=False,
            handlelength=1.2,
            columnspacing=1.0,
            **place,
        )
    else:
        axes.set_xticks([])
        axes.set_yticks([])
        axes.text(0.5, 0.5, "no curve", color=INK, family=FONT, ha="center", va="center", transform=axes.transAxes)


def _side(axes: Axes, traces: Sequence[Trace], colour: str, name: str) -> None:
    """The median of the runs as a line, their lowest and highest as a band, and a cross where a run is not finite."""
    if not traces:
        return
    traces = [_drawable(trace) for trace in traces]
    label = f"{name} ({len(traces)} {'run' if len(traces) == 1 else 'runs'})"
    drawn = spread([(trace.steps, trace.values) for trace in traces], POINTS)
    at, centre, low, high = drawn.at, drawn.centre, drawn.low, drawn.high
    if not len(at):
        axes.plot([], [], color=colour, label=label)
    else:
        marker = "o" if len(at) == 1 else None
        axes.plot(at, centre, color=colour, linewidth=1.6, alpha=0.9, label=label, marker=marker, markersize=4)
        if (high > low).any():
            axes.fill_between(at, low, high, color=colour, alpha=0.2, linewidth=0)
    for trace in traces:
        _broken(axes, trace, colour)


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
    axes.annotate("NaN", at, color=colour, family=FONT, fontsize=8, xytext=(5, -12), textcoords="offset points")


def _safe(text: str, most: int) -> str:
    """A label without what matplotlib would read as mathematics, and without letters its font lacks."""
    shown = shorten(plain(text), characters=most)
    known = _letters()
    return "".join(character if ord(character) in known else "?" for character in shown) or "(no name)"


@cache
def _letters() -> frozenset[int]:
    """What the font can draw, by code point."""
    return frozenset(get_font(findfont(FONT)).get_charmap())


def _png(figure: Figure, dpi: int) -> bytes:
    image = io.BytesIO()
    FigureCanvasAgg(figure).print_figure(image, dpi=dpi, format="png", metadata={"Software": None})
    return image.getvalue()
