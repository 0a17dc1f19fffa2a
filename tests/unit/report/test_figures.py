"""The picture of curves: of these values and no others, the same each time, for whatever a script wrote."""

import io
import subprocess
import sys

import matplotlib
import matplotlib.image
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from bot.report.figures import LIMIT, PANELS, Panel, Trace, curves_png
from tests.unit.report.test_text import HOSTILE

ORANGE, BLUE = (0xE8, 0x71, 0x0A), (0x4A, 0x8F, 0xE0)


def _trace(values: list[float], first: int = 0) -> Trace:
    steps = np.arange(first, first + len(values), dtype=np.int64)
    return Trace(steps=steps, values=np.array(values, dtype=np.float64))


def _image(png: bytes) -> NDArray[np.float64]:
    """Red, green, blue and opacity from 0 to 255 of every pixel, float64[height, width, 4]."""
    return np.asarray(matplotlib.image.imread(io.BytesIO(png)), dtype=np.float64) * 255


def _pixels_of(png: bytes, colour: tuple[int, int, int]) -> NDArray[np.int64]:
    """Row and column of the pixels that are nearly of this colour, int64[n, 2]."""
    image = _image(png)
    near = np.abs(image[..., :3] - colour).max(axis=-1) < 20
    return np.argwhere(near & (image[..., 3] > 200))


def test_the_picture_is_of_these_curves() -> None:
    one = Panel(label="loss", head=(_trace([3.0, 2.0, 1.0]),), base=(_trace([3.0, 2.5, 2.0]),))
    other = Panel(label="loss", head=(_trace([3.0, 2.0, 2.0]),), base=(_trace([3.0, 2.5, 2.0]),))
    swapped = Panel(label="loss", head=one.base, base=one.head)
    assert curves_png([one]) == curves_png([one])
    assert len({curves_png([panel]) for panel in (one, other, swapped)}) == 3


def test_head_and_base_are_told_apart_and_lie_where_their_values_are() -> None:
    png = curves_png([Panel(label="accuracy", head=(_trace([1.0] * 50),), base=(_trace([2.0] * 50),))])
    head, base = _pixels_of(png, ORANGE), _pixels_of(png, BLUE)
    # counted from the top; what is highest up belongs to the legend
    assert len(head) > 100
    assert len(base) > 100
    assert np.median(base[:, 0]) < np.median(head[:, 0])
    only = _pixels_of(curves_png([Panel(label="accuracy", head=(_trace([1.0] * 50),))]), BLUE)
    assert len(only) == 0


def test_a_spike_between_many_steps_is_seen() -> None:
    flat = [1.0] * 50_000
    spiked = [*flat[:23_456], 9.0, *flat[23_457:]]
    assert curves_png([Panel(label="a", head=(_trace(flat),))]) != curves_png(
        [Panel(label="a", head=(_trace(spiked),))]
    )


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf"), 1e300])
def test_where_a_run_breaks_there_is_a_cross(bad: float) -> None:
    whole = Panel(label="loss", head=(_trace([3.0, 2.0, 1.0, 1.0]),))
    broken = Panel(label="loss", head=(_trace([3.0, 2.0, 1.0, bad]),))
    never = Panel(label="loss", head=(_trace([bad] * 4),))
    assert len({curves_png([panel]) for panel in (whole, broken, never)}) == 3


def test_every_panel_has_its_place_and_the_last_may_be_wide() -> None:
    panel = Panel(label="loss", head=(_trace([3.0, 2.0, 1.0]),))
    sizes = [_image(curves_png([panel] * count)).shape for count in range(PANELS + 3)]
    assert len({width for _, width, _ in sizes}) == 1
    heights = [height for height, _, _ in sizes]
    assert heights[1] == heights[2]
    assert heights[2] < heights[3] == heights[4] < heights[5] == heights[6]
    assert heights[PANELS + 2] == heights[PANELS]
    alone, pair = (_pixels_of(curves_png([panel] * count), ORANGE)[:, 1] for count in (1, 2))
    assert np.ptp(alone) > 0.5 * sizes[1][1]
    assert np.median(pair) < alone.max()


def test_no_curves_are_said_to_be_none() -> None:
    nothing = curves_png([])
    assert _image(nothing)[..., 3].max() > 0
    assert curves_png([Panel(label="loss")]) != nothing


def test_nothing_is_shared_between_two_pictures() -> None:
    panel = Panel(label="$x_1$", unit="s", head=(_trace([3.0, 2.0, 1.0]),))
    before = dict(matplotlib.rcParams)
    first = curves_png([panel])
    assert dict(matplotlib.rcParams) == before
    with matplotlib.rc_context({"font.family": "serif", "axes.formatter.use_mathtext": True}):
        assert curves_png([panel]) == first


def test_the_interactive_part_of_the_library_is_not_loaded() -> None:
    program = "import sys, bot.report.figures; print('matplotlib.pyplot' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"


@given(
    st.lists(st.lists(st.floats(), max_size=40), max_size=3),
    st.lists(st.lists(st.floats(), max_size=40), max_size=3),
    HOSTILE,
)
@example([], [], "\u07fb")
@settings(deadline=None, max_examples=25)
def test_whatever_was_written_there_is_a_picture(head: list[list[float]], base: list[list[float]], label: str) -> None:
    panel = Panel(label=label, unit=label, head=tuple(map(_trace, head)), base=tuple(map(_trace, base)))
    png = curves_png([panel])
    assert png.startswith(b"\x89PNG")
    assert len(png) <= LIMIT


def test_a_long_training_is_a_small_picture() -> None:
    noise = np.random.default_rng(1).normal(size=200_000).tolist()
    panels = [Panel(label=f"m{at}", head=(_trace(noise),), base=(_trace(noise[::-1]),)) for at in range(6)]
    assert len(curves_png(panels)) <= LIMIT


def test_a_picture_that_is_too_large_gets_fewer_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    panel = Panel(label="loss", head=(_trace([3.0, 2.0, 1.0]),))
    usual = curves_png([panel])
    monkeypatch.setattr("bot.report.figures.LIMIT", len(usual) - 1)
    assert _image(curves_png([panel])).shape[1] < _image(usual).shape[1]
    monkeypatch.setattr("bot.report.figures.LIMIT", 10)
    assert _image(curves_png([panel])).shape[1] == round(30 * 9.2)
