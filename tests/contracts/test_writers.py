"""Event files of the writers that people train with: what was written is read, to the last bit.

A writer that is not installed is skipped; `pip install 'benchbot[test,writers]'` brings all of them.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util import tensor_util

from bot.measure.readers import Reading, read_folder

pytestmark = pytest.mark.filterwarnings("ignore")  # what the writers warn of is not ours

# no smaller number than that of full precision: some writers make 0 of those by themselves
VALUES = (0.1, -0.0, 1.2e-38, 3.4e38, math.inf, -math.inf, math.nan, 2.5, 1 / 3)
PICTURE = np.zeros((1, 4, 4, 3), "float32")
SINGLE = [float(np.float32(value)) for value in VALUES]


def _read(folder: Path) -> Reading:
    """What is in the folder: undamaged, and in step, time and value what TensorBoard itself reads."""
    reading = read_folder(folder)
    assert (reading.health.bad_records, reading.health.tail_bytes) == (0, 0)
    theirs: dict[tuple[str, str], list[tuple[int, float, float]]] = {}
    for run in {file.parent for file in folder.rglob("*tfevents*")}:
        events = EventAccumulator(str(run), size_guidance={"scalars": 0, "tensors": 0})
        events.Reload()
        name = run.relative_to(folder).as_posix()
        for tag in events.Tags()["scalars"]:
            theirs[name, tag] = [(one.step, one.wall_time, one.value) for one in events.Scalars(tag)]
        for tag in events.Tags()["tensors"]:
            if events.SummaryMetadata(tag).plugin_data.plugin_name == "scalars":
                theirs[name, tag] = [
                    (one.step, one.wall_time, float(tensor_util.make_ndarray(one.tensor_proto)))
                    for one in events.Tensors(tag)
                ]
    assert set(reading.curves) == set(theirs)
    for key, curve in reading.curves.items():
        steps, times, values = (np.array(column) for column in zip(*theirs[key], strict=True))
        assert np.array_equal(curve.steps, steps), key
        assert _bits(curve.wall_times) == _bits(times), key
        assert _same(curve.values, values), key
    return reading


def _bits(values: Any) -> bytes:
    return np.asarray(values, dtype=np.float64).tobytes()


def _same(ours: Any, theirs: Any) -> bool:
    """Equal to the last bit, and NaN where NaN is."""
    ours, theirs = (np.asarray(values, dtype=np.float64) for values in (ours, theirs))
    return np.array_equal(np.isnan(ours), np.isnan(theirs)) and _bits(ours[~np.isnan(ours)]) == _bits(
        theirs[~np.isnan(theirs)]
    )


def _holds(reading: Reading, run: str, tag: str, values: Sequence[float], steps: Sequence[int] | None = None) -> None:
    curve = reading.curves[run, tag]
    assert list(curve.steps) == list(range(len(values)) if steps is None else steps)
    assert _same(curve.values, values), curve.values


# ---- Keras ----------------------------------------------------------------------------------------------------------


def test_keras_while_it_fits(tmp_path: Path) -> None:
    """`train/` and `validation/`, with histograms and the graph beside them."""
    pytest.importorskip("tensorflow")
    keras = pytest.importorskip("keras")
    keras.utils.set_random_seed(7)
    inputs = np.random.default_rng(1).normal(size=(64, 4)).astype("float32")
    answers = (inputs.sum(1) > 0).astype("int32")
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(2, activation="softmax")])
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    callback = keras.callbacks.TensorBoard(str(tmp_path), histogram_freq=1, update_freq="epoch")
    told = model.fit(inputs, answers, 16, 4, 0, [callback], validation_data=(inputs[:16], answers[:16])).history
    reading = _read(tmp_path)
    for name in ("loss", "accuracy"):
        _holds(reading, "train", f"epoch_{name}", told[name])
        _holds(reading, "validation", f"epoch_{name}", told[f"val_{name}"])
    assert {run for run, _ in reading.curves} == {"train", "validation"}
    assert not [tag for _, tag in reading.curves if "kernel" in tag or "graph" in tag]


def test_tensorflows_own_writers(tmp_path: Path) -> None:
    """Tensors of TensorFlow 2, single values of TensorFlow 1, and a graph, text, an image and a histogram."""
    tf = pytest.importorskip("tensorflow")
    with tf.summary.create_file_writer(str(tmp_path / "new")).as_default():
        for step, value in enumerate(VALUES):
            tf.summary.scalar("loss", value, step)
            tf.summary.scalar("double", tf.constant(value, tf.float64), step)
        tf.summary.text("words", "hello", 1)
        tf.summary.image("picture", PICTURE, 1)
        tf.summary.histogram("weights", np.arange(9.0), 1)
    with tf.Graph().as_default():
        writer = tf.compat.v1.summary.FileWriter(str(tmp_path / "old"))
        for step, value in enumerate(VALUES):
            one = tf.compat.v1.Summary.Value(tag="loss", simple_value=value)
            writer.add_summary(tf.compat.v1.Summary(value=[one]), step)
        writer.close()
    reading = _read(tmp_path)
    # TensorFlow keeps single precision, whatever it is given
    for run, tag in (("new", "loss"), ("new", "double"), ("old", "loss")):
        _holds(reading, run, tag, SINGLE)
    assert len(reading.curves) == 3


# ---- JAX ------------------------------------------------------------------------------------------------------------


def test_clu_as_jax_projects_use_it(tmp_path: Path) -> None:
    """The default writer, which works in another thread, and all that it can write beside scalars."""
    pytest.importorskip("tensorflow")
    jax = pytest.importorskip("jax")
    metric_writers = pytest.importorskip("clu.metric_writers")
    writer = metric_writers.create_default_writer(str(tmp_path), asynchronous=True, collection="train")
    other = metric_writers.SummaryWriter(str(tmp_path))
    for step, value in enumerate(VALUES):
        writer.write_scalars(step, {"loss": jax.numpy.float32(value), "lr": value})
        other.write_scalars(10 * step, {"eval/accuracy": value})
    other.write_images(1, {"picture": PICTURE})
    other.write_texts(1, {"words": "hello"})
    other.write_histograms(1, {"weights": np.arange(9.0)})
    other.write_hparams({"lr": 0.1, "model": "vit"})
    writer.close()
    other.close()
    reading = _read(tmp_path)
    _holds(reading, "train", "loss", SINGLE)
    _holds(reading, "train", "lr", SINGLE)
    _holds(reading, ".", "eval/accuracy", SINGLE, [10 * step for step in range(len(VALUES))])
    assert len(reading.curves) == 3


def test_flax_and_its_writer(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow")
    pytest.importorskip("flax")
    tensorboard = pytest.importorskip("flax.metrics.tensorboard")
    jnp = pytest.importorskip("jax.numpy")
    writer = tensorboard.SummaryWriter(str(tmp_path))
    for step, value in enumerate(VALUES):
        writer.scalar("train/loss", jnp.float32(value), step)
        writer.scalar("train/half", jnp.bfloat16(value), step)
    writer.image("picture", PICTURE[0], 1)
    writer.text("words", "hello", 1)
    writer.histogram("weights", np.arange(9.0), 1)
    writer.hparams({"lr": 0.1})
    writer.close()
    reading = _read(tmp_path)
    _holds(reading, ".", "train/loss", SINGLE)
    _holds(reading, ".", "train/half", [float(jnp.bfloat16(value)) for value in VALUES])
    assert len(reading.curves) == 2


def test_arrays_of_jax_through_tensorboardx(tmp_path: Path) -> None:
    """The writer of JAX projects that do without TensorFlow."""
    jnp = pytest.importorskip("jax.numpy")
    writer = pytest.importorskip("tensorboardX").SummaryWriter(str(tmp_path))
    for step, value in enumerate(VALUES):
        writer.add_scalar("loss", jnp.float32(value), step)
        writer.add_scalar("half", jnp.bfloat16(value), step)
    writer.close()
    reading = _read(tmp_path)
    _holds(reading, ".", "loss", SINGLE)
    _holds(reading, ".", "half", [float(jnp.bfloat16(value)) for value in VALUES])


# ---- PyTorch --------------------------------------------------------------------------------------------------------


def test_torch_and_the_folders_that_it_makes(tmp_path: Path) -> None:
    """`add_scalars` makes a folder for each name, `add_hparams` one called after the time."""
    writer = pytest.importorskip("torch.utils.tensorboard").SummaryWriter(str(tmp_path))
    for step, value in enumerate(VALUES):
        writer.add_scalar("loss", value, step)
        writer.add_scalar("new", value, step, new_style=True)
        writer.add_scalar("double", value, step, new_style=True, double_precision=True)
        writer.add_scalars("accuracy", {"train": value, "val": -value}, step)
    writer.add_hparams({"lr": 0.1}, {"hparam/accuracy": 0.9})
    writer.close()
    reading = _read(tmp_path)
    _holds(reading, ".", "loss", SINGLE)
    _holds(reading, ".", "new", SINGLE)
    _holds(reading, ".", "double", VALUES)
    _holds(reading, "accuracy_train", "accuracy", SINGLE)
    _holds(reading, "accuracy_val", "accuracy", [-value for value in SINGLE])
    (trial,) = [run for run, tag in reading.curves if tag == "hparam/accuracy"]
    assert float(trial) > 1.7e9
