"""Scalars of many alike records at once.

Trainings write the same few records again and again: only wall time, step and value change. One record of each kind is
parsed by protobuf, which tells the tag, and its fields tell where the value stands; others count as the same kind only
if every other byte is the same. What fits no kind, or a rare one, is left for protobuf.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray
from tensorboard.compat.proto import event_pb2

from bot.measure.readers.checksums import LONGEST, Bytes, Checksums, Offsets, joined, parts, stored
from bot.measure.readers.framing import Batch
from bot.measure.readers.scalars import scalar_of

FEWEST = 16
"""Records of one kind below which protobuf is as fast."""

_TRIES = 8
_MOST_KINDS = 20_000
# keys of the fields that an event begins with: wall time (double), step (varint; none for step 0)
_WALL_TIME, _STEP = 0x09, 0x10
_STEP_AT = 9
_MOST_STEP_BYTES = 8
_CONTINUED = 0x80
_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5


class Layout(NamedTuple):
    """Where the step of a record ends, and where its value starts and ends."""

    step_end: int
    start: int
    end: int


class Kind(NamedTuple):
    """What the first record of its kind says for all: tag, plugin if it tells one, whether the value is a tensor."""

    tag: str
    plugin: str
    is_tensor: bool
    first: Bytes


class Found(NamedTuple):
    """The points of one kind in a batch, by ascending number of record: int64[n], int64[n], float64[n], float64[n]."""

    kind: Kind
    at: Offsets
    steps: NDArray[np.int64]
    wall_times: NDArray[np.float64]
    values: NDArray[np.float64]


class Taken(NamedTuple):
    """What a batch holds: points, numbers of records for protobuf to check and to read, numbers of damaged records."""

    found: list[Found]
    left: Offsets
    bad: Offsets


class _Rows(NamedTuple):
    """Records of one length, one a row: their numbers in the batch, their bytes, what each adds to its checksum."""

    at: Offsets
    data: Bytes
    added: Checksums

    def where(self, which: NDArray[np.bool_]) -> "_Rows":
        return _Rows(self.at[which], self.data[which], self.added[which])


@dataclass(slots=True)
class Columns:
    """Takes batches, and knows the kinds that it has seen."""

    _kinds: dict[tuple[Layout, int, int], Kind | None] = field(default_factory=dict)

    def take(self, batch: Batch) -> Taken:
        """Every record of the batch is in exactly one part of the answer."""
        found: list[Found] = []
        left: list[Offsets] = []
        bad: list[Offsets] = []
        for group, step_end in _groups(batch):
            if not step_end or len(group) < FEWEST:
                left.append(group)
                continue
            rows, damaged = _checked(batch, group)
            bad.append(damaged)
            for _ in range(_TRIES):
                if len(rows.at) < FEWEST:
                    break
                layout = _layout(rows.data[0].tobytes(), step_end)
                same = self._same(rows, layout, found) if layout else np.zeros(len(rows.at), dtype=np.bool_)
                if not same[0]:
                    left.append(rows.at[:1])
                    same[0] = True
                rows = rows.where(~same)
            left.append(rows.at)
        return Taken(found, _sorted(left), _sorted(bad))

    def _same(self, rows: _Rows, layout: Layout, found: list[Found]) -> NDArray[np.bool_]:
        """Which rows are of a kind that has this layout; their points are added to `found`."""
        # what stays the same within a kind: the key of the step, what is between step and value, what is behind it
        same = (
            slice(0, 1),
            slice(_STEP_AT, _STEP_AT + 1),
            slice(layout.step_end, layout.start),
            slice(layout.end, None),
        )
        sums = np.zeros(len(rows.at), dtype=np.uint32)
        for part in same:
            sums ^= np.bitwise_xor.reduce(rows.added[:, part], axis=1)
        different, first, which = np.unique(sums, return_index=True, return_inverse=True)
        kinds = [self._kind(layout, int(one), rows.data[row]) for one, row in zip(different, first, strict=True)]
        model = np.stack(
            [rows.data[row] if kind is None else kind.first for kind, row in zip(kinds, first, strict=True)]
        )
        fits = np.array([kind is not None for kind in kinds])[which]
        for part in same:
            fits &= (rows.data[:, part] == model[which, part]).all(axis=1)
        order = np.flatnonzero(fits)
        order = order[np.argsort(which[order], kind="stable")]
        steps, wall_times, values = _numbers(rows.data[order], layout)
        ends = np.cumsum(np.bincount(which[order], minlength=len(kinds)))
        for kind, start, end in zip(kinds, [0, *ends[:-1].tolist()], ends.tolist(), strict=True):
            if kind is not None and end > start:
                mine = slice(start, end)
                found.append(Found(kind, rows.at[order[mine]], steps[mine], wall_times[mine], values[mine]))
        return fits

    def _kind(self, layout: Layout, sum_: int, row: Bytes) -> Kind | None:
        key = (layout, len(row), sum_)
        if key not in self._kinds:
            if len(self._kinds) >= _MOST_KINDS:
                self._kinds.clear()
            self._kinds[key] = _learn(layout, row)
        return self._kinds[key]


def _groups(batch: Batch) -> Iterator[tuple[Offsets, int]]:
    """Numbers of records of one length whose steps end at one place; 0 where the columns cannot help."""
    if not len(batch.starts):
        return
    data, starts = batch.data, batch.starts
    fits = (batch.lengths > _STEP_AT + _MOST_STEP_BYTES + 1) & (batch.lengths <= LONGEST)
    fits &= data[starts] == _WALL_TIME
    at = np.where(fits, starts + _STEP_AT, 0)
    going_on = fits & (data[at] == _STEP)
    ends = np.where(fits, _STEP_AT + going_on, 0)
    for place in range(1, _MOST_STEP_BYTES + 1):
        ends += going_on
        going_on &= data[at + place] >= _CONTINUED
        if not going_on.any():
            break
    ends[going_on] = 0
    keys = np.where(ends > 0, batch.lengths * 32 + ends, 0)
    if (keys == keys[0]).all():
        yield np.arange(len(keys)), int(ends[0])
        return
    order = np.argsort(keys, kind="stable")
    borders = np.flatnonzero(np.diff(keys[order])) + 1
    for group in np.split(order, borders):
        yield group, int(ends[group[0]])


def _checked(batch: Batch, group: Offsets) -> tuple[_Rows, Offsets]:
    """The intact records of a group, and the numbers of the damaged ones."""
    starts, length = batch.starts[group], int(batch.lengths[group[0]])
    data = batch.data[starts[:, None] + np.arange(length)]
    rows = _Rows(group, data, parts(data))
    right = joined(rows.added) == stored(batch.data, starts + length)
    return (rows, group[:0]) if right.all() else (rows.where(right), group[~right])


def _numbers(rows: Bytes, layout: Layout) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Steps, wall times and values of rows with one layout."""
    steps = np.zeros(len(rows), dtype=np.int64)
    for place in range(layout.step_end - 1, _STEP_AT, -1):
        steps = steps << 7 | (rows[:, place] & 0x7F)
    wall_times = np.ascontiguousarray(rows[:, 1:_STEP_AT]).view("<f8")[:, 0]
    kind = "<f4" if layout.end - layout.start == 4 else "<f8"
    values = np.ascontiguousarray(rows[:, layout.start : layout.end]).view(kind)[:, 0].astype(np.float64)
    return steps, wall_times, values


def _learn(layout: Layout, row: Bytes) -> Kind | None:
    """The kind of a record, if protobuf finds the same numbers in it as we do and nothing else."""
    try:
        event = event_pb2.Event.FromString(row.tobytes())
    except DecodeError:
        return None
    if len(event.summary.value) != 1:
        return None
    value = event.summary.value[0]
    is_tensor = value.WhichOneof("value") == "tensor"
    number = scalar_of(value)
    if number is None:
        return None
    (step,), (wall_time,), (ours,) = _numbers(row[None, :], layout)
    if step != event.step or not np.array_equal([wall_time, ours], [event.wall_time, number], equal_nan=True):
        return None
    return Kind(value.tag, value.metadata.plugin_data.plugin_name, is_tensor, row.copy())


def _layout(row: bytes, step_end: int) -> Layout | None:
    """Where the value of a record stands, if the record is an event with one value in its summary."""
    summary = _only(row, step_end, len(row), 5)
    value = summary and _only(row, *summary, 1)
    if not value:
        return None
    found = None
    for number, wire, start, end in _fields(row, *value):
        if (number, wire) == (2, _FIXED_32) and found is None:
            found = (start, end)
        elif (number, wire) == (8, _BYTES) and found is None:
            found = _in_tensor(row, start, end)
            if found is None:
                return None
        elif number not in (1, 9) or wire != _BYTES:
            return None
    return Layout(step_end, *found) if found else None


def _in_tensor(row: bytes, start: int, end: int) -> tuple[int, int] | None:
    """Where the one float or double of a tensor stands."""
    found = None
    for number, wire, start_, end_ in _fields(row, start, end):
        size = end_ - start_
        if number in (4, 5, 6) and wire != _VARINT and found is None and size in (4, 8):
            found = (start_, end_)
        elif number not in (1, 2):
            return None
    return found


def _only(row: bytes, start: int, end: int, wanted: int) -> tuple[int, int] | None:
    """The one field there is, if it is the wanted one."""
    fields = list(_fields(row, start, end))
    return fields[0][2:] if len(fields) == 1 and fields[0][:2] == (wanted, _BYTES) else None


def _fields(row: bytes, place: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Number, wire type, start and end of each field. Field 0 stands for what is no field."""
    while place < end:
        key, place = _varint(row, place, end)
        wire, start = key & 7, place
        if wire == _BYTES:
            size, start = _varint(row, place, end)
            place = start + size
        elif wire == _VARINT:
            _, place = _varint(row, place, end)
        else:
            place += {_FIXED_64: 8, _FIXED_32: 4}.get(wire, end)
        if place > end:
            yield 0, 0, end, end
            return
        yield key >> 3, wire, start, place


def _varint(row: bytes, place: int, end: int) -> tuple[int, int]:
    """The number there, and the place behind it; behind `end` if it does not end before."""
    number = shift = 0
    while place < end:
        byte = row[place]
        number |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < _CONTINUED:
            return number, place
    return 0, end + 1


def _sorted(some: list[Offsets]) -> Offsets:
    return np.sort(np.concatenate(some)) if some else np.empty(0, dtype=np.int64)
