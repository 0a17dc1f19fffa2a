"""TensorBoard's view of the folders of one request to us.

The folders come with the request, through SHOWN, and not with an experiment's name: whatever a browser writes into an
address, a parameter or a blob's key, nothing else can be reached.
"""

import base64
import binascii
import json
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from tensorboard import errors
from tensorboard.compat.proto import summary_pb2
from tensorboard.data import provider as api
from tensorboard.util import tensor_util

from bot.web.tensorboard.contents import Line, RunContents
from bot.web.tensorboard.index import Entry, Point, values_of

SHOWN: ContextVar[Mapping[str, RunContents]] = ContextVar("shown")
"""The runs that the request at hand may see, by the name that TensorBoard shows."""

SCALARS = "scalars"
MOST_ELEMENTS = 1 << 20

T = TypeVar("T")
Nested = dict[str, dict[str, T]]


class FolderProvider(api.DataProvider):  # type: ignore[misc] # tensorboard has no types
    """Answers from SHOWN. The experiment's name is not looked at."""

    def __str__(self) -> str:
        return "run folders"

    def list_plugins(self, ctx: Any = None, *, experiment_id: str) -> set[str]:
        runs = SHOWN.get().values()
        found = {entry.label.plugin for run in runs for entry in run.entries.values()}
        return found | {SCALARS} if any(run.lines for run in runs) else found

    def list_runs(self, ctx: Any = None, *, experiment_id: str) -> list[Any]:
        return [api.Run(run_id=name, run_name=name, start_time=run.start_time) for name, run in SHOWN.get().items()]

    def list_scalars(
        self, ctx: Any = None, *, experiment_id: str, plugin_name: str, run_tag_filter: Any = None
    ) -> Nested[Any]:
        return _nested(_lines(plugin_name, run_tag_filter), _scalar_series)

    def read_scalars(
        self,
        ctx: Any = None,
        *,
        experiment_id: str,
        plugin_name: str,
        downsample: int | None = None,
        run_tag_filter: Any = None,
    ) -> Nested[list[Any]]:
        return _nested(_lines(plugin_name, run_tag_filter), lambda line: _scalars(line, downsample))

    def read_last_scalars(
        self, ctx: Any = None, *, experiment_id: str, plugin_name: str, run_tag_filter: Any = None
    ) -> Nested[Any]:
        return _nested(_lines(plugin_name, run_tag_filter), lambda line: _scalars(line, 1)[0])

    def list_tensors(
        self, ctx: Any = None, *, experiment_id: str, plugin_name: str, run_tag_filter: Any = None
    ) -> Nested[Any]:
        found = _entries(plugin_name, summary_pb2.DATA_CLASS_TENSOR, run_tag_filter)
        return _nested(found, lambda entry: api.TensorTimeSeries(**_series(entry)))

    def read_tensors(
        self,
        ctx: Any = None,
        *,
        experiment_id: str,
        plugin_name: str,
        downsample: int | None = None,
        run_tag_filter: Any = None,
    ) -> Nested[list[Any]]:
        found = _entries(plugin_name, summary_pb2.DATA_CLASS_TENSOR, run_tag_filter)
        return {run: {tag: _tensors(tag, entry, downsample)} for run, tag, entry in found} if False else _merge(
            (run, tag, _tensors(tag, entry, downsample)) for run, tag, entry in found
        )

    def list_blob_sequences(
        self, ctx: Any = None, *, experiment_id: str, plugin_name: str, run_tag_filter: Any = None
    ) -> Nested[Any]:
        found = _entries(plugin_name, summary_pb2.DATA_CLASS_BLOB_SEQUENCE, run_tag_filter)
        return _nested(found, _blob_series)
