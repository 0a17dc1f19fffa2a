"""Our provider beside TensorBoard's own, behind the same application: the same questions get the same answers."""

import json
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import numpy as np
import pytest
from tensorboard.backend import application
from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
from torch.utils.tensorboard import SummaryWriter
from werkzeug.test import Client
from werkzeug.wrappers import Response

from bot.web.tensorboard import bridge
from bot.web.tensorboard.calls import Call
from bot.web.tensorboard.contents import read_contents
from bot.web.tensorboard.stock import PLUGINS, WEB_FILES

Ask = Callable[[str], Any]
RUNS = ("base/1 seed 1", "head/1 seed 1")
STEPS = 300


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a script writes that uses everything: as torch's own writer writes it."""
    folder = tmp_path_factory.mktemp("logs")
    random = np.random.default_rng(5)
    for run in RUNS:
        with SummaryWriter(str(folder / run)) as writer:
            for step in range(STEPS):
                writer.add_scalar("train/loss", 3 / (1 + step), step)
                writer.add_scalar("train/lr", float("nan") if step == 7 else 0.1, step, new_style=True)
                if step % 30 == 0:
                    writer.add_histogram("weights", random.normal(size=200), step)
                    writer.add_image("samples", random.random((3, 8, 8)), step)
                    writer.add_text("notes", f"**step** {step} <script>", step)
            writer.add_hparams({"lr": 0.1, "model": "vit"}, {"accuracy": 0.9}, run_name="tuned")
    return folder


@pytest.fixture(scope="module")
def stock(folder: Path) -> Ask:
    """TensorBoard as it comes."""
    sizes = {"scalars": 1_000, "images": 100, "histograms": 100, "text": 100}
    multiplexer = plugin_event_multiplexer.EventMultiplexer(
        size_guidance={"tensors": 1_000, "scalars": 1_000}, tensor_size_guidance=sizes
    )
    multiplexer.AddRunsFromDirectory(str(folder))
    multiplexer.Reload()
    flags = Namespace(logdir=str(folder), logdir_spec="", path_prefix="", samples_per_plugin=sizes, window_title="")
    provider = data_provider.MultiplexerDataProvider(multiplexer, str(folder))
    app = application.TensorBoardWSGIApp(
        flags, PLUGINS, data_provider=provider, assets_zip_provider=lambda: WEB_FILES.open("rb")
    )
    client = Client(app, Response)
    return lambda path: _read(client.get(f"/data{path}").get_data())


@pytest.fixture(scope="module")
def ours(folder: Path) -> Ask:
    shown = dict(read_contents(folder))

    def ask(path: str) -> Any:
        place, _, query = path.partition("?")
        call = Call(
            method="GET",
            root="/runs/x/tensorboard",
            path=f"/data{place}",
            query=query,
            experiment="x",
            accept_encoding="",
            content_type="",
            body=b"",
        )
        found = bridge.answer(call, shown)
        assert found.status == 200, (path, found.body)
        return _read(found.body)

    return ask


def _read(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body


def _both(ours: Ask, stock: Ask, path: str) -> Any:
    mine, its = ours(path), stock(path)
    assert mine == its, path
    return mine


def _of(plugin: str, what: str, run: str, tag: str, **more: str) -> str:
    return f"/plugin/{plugin}/{what}?{urlencode({'run': run, 'tag': tag, **more}, quote_via=quote)}"


def test_runs_and_what_each_of_them_has(ours: Ask, stock: Ask) -> None:
    assert sorted(ours("/runs")) == sorted(stock("/runs"))
    assert set(RUNS) < set(ours("/runs"))
    for plugin in ("scalars", "images", "histograms", "distributions", "text"):
        tags = _both(ours, stock, f"/plugin/{plugin}/tags")
        assert set(RUNS) <= set(tags), plugin
    _both(ours, stock, "/plugin/timeseries/tags")


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("tag", ["train/loss", "train/lr"])
def test_scalars(ours: Ask, stock: Ask, run: str, tag: str) -> None:
    """Step, wall time and value of every point; what is no number is told as such."""
    points = _both(ours, stock, _of("scalars", "scalars", run, tag))
    assert len(points) == STEPS


def test_histograms_and_distributions(ours: Ask, stock: Ask) -> None:
    for plugin in ("histograms", "distributions"):
        found = _both(ours, stock, _of(plugin, plugin, RUNS[0], "weights"))
        assert len(found) == STEPS // 30


def test_texts_come_as_harmless_html(ours: Ask, stock: Ask) -> None:
    tag = stock("/plugin/text/tags")[RUNS[1]][0]
    found = _both(ours, stock, _of("text", "text", RUNS[1], tag))
    assert len(found) == STEPS // 30
    assert "<script" not in found[0]["text"]


def test_images_byte_for_byte(ours: Ask, stock: Ask) -> None:
    listed = [ask(_of("images", "images", RUNS[0], "samples", sample="0")) for ask in (ours, stock)]
    shapes = [[{key: one[key] for key in ("wall_time", "step")} for one in found] for found in listed]
    assert shapes[0] == shapes[1]
    assert len(shapes[0]) == STEPS // 30
    pictures = [
        [ask(f"/plugin/images/individualImage?{one['query']}") for one in found]
        for ask, found in zip((ours, stock), listed, strict=True)
    ]
    assert pictures[0] == pictures[1]
    assert pictures[0][0].startswith(b"\x89PNG")


def test_hyperparameters(ours: Ask, stock: Ask) -> None:
    request = quote(json.dumps({"experimentName": ""}))
    found = [ask(f"/plugin/hparams/experiment?request={request}") for ask in (ours, stock)]
    for each in found:
        each.pop("timeCreatedSecs", None)
        each.pop("description", None)
        each["hparamInfos"].sort(key=lambda one: one["name"])
    assert found[0] == found[1]
    assert [one["name"] for one in found[0]["hparamInfos"]] == ["lr", "model"]


def test_what_stands_behind_damage_is_shown_all_the_same(folder: Path, tmp_path: Path) -> None:
    """A length that was damaged costs its record; histograms and images behind it are there."""
    (written,) = (folder / RUNS[0]).glob("events*")
    data = bytearray(written.read_bytes())
    place = 0
    for _ in range(20):
        place += 16 + int.from_bytes(data[place : place + 8], "little")
    data[place + 1] ^= 0x40
    (tmp_path / "events.out.tfevents.1").write_bytes(data)
    (run,) = read_contents(tmp_path).values()
    assert len(run.entries["weights"].points) in (STEPS // 30 - 1, STEPS // 30)
    assert len(run.entries["samples"].points) in (STEPS // 30 - 1, STEPS // 30)
    assert len(run.lines["train/loss"].curve) in (STEPS - 1, STEPS)
