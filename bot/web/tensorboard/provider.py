"""TensorBoard's view of the folders of one request to us.

The folders come with the request, through SHOWN, and not with an experiment's name: whatever a browser writes into an
address, a parameter or a blob's key, nothing else can be reached.
"""

import base64
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np
from tensorboard import errors
from tensorboard.compat.proto import summary_pb2
from tensorboard.data import provider as api
from tensorboard.util import tensor_util

from bot.measure.curves import downsample as thinned
from bot.web.tensorboard.contents import Line, RunContents
from bot.web.tensorboard.index import Entry, Point, values_of

SHOWN: ContextVar[Mapping[str, RunContents]] = ContextVar("shown")
"""The runs that the request at hand may see, by the name that TensorBoard shows."""

MOST_ELEMENTS = 1 << 20

T = TypeVar("T")
Nested = dict[str, dict[str, T]]
Found = Iterator[tuple[str, str, T]]


class FolderProvider(api.DataProvider):  # type: ignore[misc] # tensorboard has no types
    """Answers from SHOWN: `{run: {tag: ...}}`, with what exists only. The experiment's name is not looked at."""

    def __str__(self) -> str:
        return "run folders"

    def list_plugins(self, ctx: Any = None, *, experiment_id: str) -> set[str]:
        runs = SHOWN.get().values()
        entries = {entry.label.plugin for run in runs for entry in run.entries.values()}
        return entries | {line.label.plugin for run in runs for line in run.lines.values()}

    def list_runs(self, ctx: Any = None, *, experiment_id: str) -> list[Any]:
        return [api.Run(run_id=name, run_name=name, start_time=run.start_time) for name, run in SHOWN.get().items()]

    def list_scalars(
        self, ctx: Any = None, *, experiment_id: str, plugin_name: str, run_tag_filter: Any = None
    ) -> Nested[Any]:
        found = _lines(plugin_name, run_tag_filter)
        return _nested((run, tag, api.ScalarTimeSeries(**_about_line(line))) for run, tag, line in found)

    def read_scalars(
        self,
        ctx: Any = None,
        *,
        experiment_id: str,
        plugin_name: str,
        downsample: int = 1000,
        run_tag_filter: Any = None,
    ) -> Nested[list[Any]]:
        found = _lines(plugin_name, run_tag_filter)
        return _nested((run, tag, _scalars(line, downsample)) for run, tag, line in found)

    def read_last_scalars(
        self, ctx: Any = None, *, experiment_id: str, plugin_name: str, run_tag_filter: Any = None
    ) -> Nested[Any]:
        found = _lines(plugin_name, run_tag_filter)
        return _nested((run, tag, _last_scalar(line)) for run, tag, line in found)

    def list_tensors(
        self, ctx: Any = None, *, experiment_id: str, plugin_name: str, run_tag_filter: Any = None
    ) -> Nested[Any]:
        found = _entries(plugin_name, summary_pb2.DATA_CLASS_TENSOR, run_tag_filter)
        return _nested((run, tag, api.TensorTimeSeries(**_about_entry(entry))) for run, tag, entry in found)

    def read_tensors(
        self,
        ctx: Any = None,
        *,
        experiment_id: str,
        plugin_name: str,
        downsample: int = 100,
        run_tag_filter: Any = None,
    ) -> Nested[list[Any]]:
        found = _entries(plugin_name, summary_pb2.DATA_CLASS_TENSOR, run_tag_filter)
        return _nested((run, tag, list(_tensors(tag, entry, downsample))) for run, tag, entry in found)

    def list_blob_sequences(
        self, ctx: Any = None, *, experiment_id: str, plugin_name: str, run_tag_filter: Any = None
    ) -> Nested[Any]:
        found = _entries(plugin_name, summary_pb2.DATA_CLASS_BLOB_SEQUENCE, run_tag_filter)
        return _nested(
            (
                run,
                tag,
                api.BlobSequenceTimeSeries(max_length=max(p.blobs for p in entry.points), **_about_entry(entry)),
            )
            for run, tag, entry in found
        )

    def read_blob_sequences(
        self,
        ctx: Any = None,
        *,
        experiment_id: str,
        plugin_name: str,
        downsample: int = 10,
        run_tag_filter: Any = None,
    ) -> Nested[list[Any]]:
        found = _entries(plugin_name, summary_pb2.DATA_CLASS_BLOB_SEQUENCE, run_tag_filter)
        return _nested((run, tag, list(_blob_sequences(run, tag, entry, downsample))) for run, tag, entry in found)

    def read_blob(self, ctx: Any = None, *, blob_key: str) -> bytes:
        """Raises NotFoundError also for keys that no answer of ours contained."""
        run, tag, step, index = _from_key(blob_key)
        shown = SHOWN.get().get(run)
        entry = shown.entries.get(tag) if shown else None
        if entry is not None and entry.label.data_class == summary_pb2.DATA_CLASS_BLOB_SEQUENCE:
            at_step = [point for point in entry.points if point.step == step][:1]
            for _, tensor in values_of(entry, tag, at_step):
                if index < len(tensor.string_val):
                    return bytes(tensor.string_val[index])
        raise errors.NotFoundError("There is no such blob.")


def _nested(found: Iterable[tuple[str, str, T]]) -> Nested[T]:
    nested: Nested[T] = {}
    for run, tag, answer in found:
        nested.setdefault(run, {})[tag] = answer
    return nested


def _runs(wanted: Any) -> Iterator[tuple[str, RunContents]]:
    shown = SHOWN.get()
    names = shown if wanted is None or wanted.runs is None else [name for name in shown if name in wanted.runs]
    return ((name, shown[name]) for name in names)


def _tags(wanted: Any, existing: Mapping[str, T]) -> Iterator[tuple[str, T]]:
    tags = existing if wanted is None or wanted.tags is None else [tag for tag in wanted.tags if tag in existing]
    return ((tag, existing[tag]) for tag in tags)


def _lines(plugin: str, wanted: Any) -> Found[Line]:
    for name, run in _runs(wanted):
        yield from ((name, tag, line) for tag, line in _tags(wanted, run.lines) if line.label.plugin == plugin)


def _entries(plugin: str, data_class: int, wanted: Any) -> Found[Entry]:
    for name, run in _runs(wanted):
        for tag, entry in _tags(wanted, run.entries):
            if entry.label.plugin == plugin and entry.label.data_class == data_class:
                yield name, tag, entry


def _about_line(line: Line) -> dict[str, Any]:
    return {
        "max_step": line.max_step,
        "max_wall_time": line.max_wall_time,
        "plugin_content": line.label.content,
        "description": line.label.description,
        "display_name": line.label.display_name,
    }


def _about_entry(entry: Entry) -> dict[str, Any]:
    return {
        "max_step": max(point.step for point in entry.points),
        "max_wall_time": max(point.wall_time for point in entry.points),
        "plugin_content": entry.label.content,
        "description": entry.label.description,
        "display_name": entry.label.display_name,
    }


def _scalars(line: Line, most: int) -> list[Any]:
    curve = line.curve if len(line.curve) <= most else thinned(line.curve, most)
    columns = curve.steps.tolist(), curve.wall_times.tolist(), curve.values.tolist()
    return [api.ScalarDatum(step, wall_time, value) for step, wall_time, value in zip(*columns, strict=True)]


def _last_scalar(line: Line) -> Any:
    curve = line.curve
    return api.ScalarDatum(int(curve.steps[-1]), float(curve.wall_times[-1]), float(curve.values[-1]))


def _evenly(points: Sequence[Point], most: int) -> list[Point]:
    """At most `most` of the points, at even distances, the first and the last among them."""
    if len(points) <= most:
        return list(points)
    return [points[i] for i in np.linspace(len(points) - 1, 0, most).round().astype(int)[::-1]]


def _tensors(tag: str, entry: Entry, most: int) -> Iterator[Any]:
    for point, tensor in values_of(entry, tag, _evenly(entry.points, most)):
        shape = [dimension.size for dimension in tensor.tensor_shape.dim]
        # a shape may claim more than there is, and would be filled up
        if min(shape, default=1) < 0 or math.prod(shape) > MOST_ELEMENTS:
            continue
        try:
            array = tensor_util.make_ndarray(tensor)
        except (TypeError, ValueError):
            continue
        yield api.TensorDatum(step=point.step, wall_time=point.wall_time, numpy=array)


def _blob_sequences(run: str, tag: str, entry: Entry, most: int) -> Iterator[Any]:
    first = {point.step: point for point in reversed(entry.points)}
    for point in _evenly([first[step] for step in sorted(first)], most):
        blobs = tuple(api.BlobReference(_to_key(run, tag, point.step, index)) for index in range(point.blobs))
        yield api.BlobSequenceDatum(point.step, point.wall_time, blobs)


def _to_key(run: str, tag: str, step: int, index: int) -> str:
    plain = json.dumps([run, tag, step, index], separators=(",", ":"))
    return base64.urlsafe_b64encode(plain.encode()).decode().rstrip("=")


def _from_key(key: str) -> tuple[str, str, int, int]:
    try:
        match json.loads(base64.urlsafe_b64decode(key + "==")):
            case [str(run), str(tag), int(step), int(index)] if index >= 0:
                return run, tag, step, index
    except (ValueError, RecursionError):
        pass
    raise errors.NotFoundError("There is no such blob.")
