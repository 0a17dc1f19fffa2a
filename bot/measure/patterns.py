"""A tag with `*` that fits several curves: one metric for each of them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from bot.measure.metrics import Metric
from bot.measure.reading import Curve, Reading

MOST = 50
"""Metrics that one pattern may become."""

_LONGEST_PART = 60
_ODD = re.compile(r"[^A-Za-z0-9_./+=@ -]")


def stars(pattern: str, name: str) -> tuple[str, ...] | None:
    """What each `*` of a pattern stands for in a name, the first ones as short as can be; None if it does not fit."""
    first, *rest = pattern.split("*")
    if not rest:
        return () if pattern == name else None
    last = rest.pop()
    if not name.startswith(first) or not name.endswith(last) or len(name) < len(first) + len(last):
        return None
    at, end, found = len(first), len(name) - len(last), []
    for piece in rest:
        there = name.find(piece, at, end)
        if there < 0:
            return None
        found.append(name[at:there])
        at = there + len(piece)
    return (*found, name[at:end])


def fitting(tag: str, reading: Reading) -> list[Curve]:
    """The curves that a tag names: as it stands, else as a pattern for `tag` and `run/tag`."""
    exact = [curve for _, curve in sorted(reading.curves.items()) if tag in (curve.tag, curve.path)]
    return exact or _matching(tag, reading)


def _matching(pattern: str, reading: Reading) -> list[Curve]:
    curves = [curve for _, curve in sorted(reading.curves.items())] if "*" in pattern else []
    return [curve for curve in curves if any(stars(pattern, name) is not None for name in (curve.tag, curve.path))]


def are_one(curves: Sequence[Curve]) -> bool:
    """Whether they hold the same, as what the processes of one distributed training write."""
    first = curves[0] if curves else None
    return all(
        first is not None
        and np.array_equal(first.steps, other.steps)
        and np.array_equal(first.values, other.values, equal_nan=True)
        for other in curves[1:]
    )


def expand(metric: Metric, base: Sequence[Reading], head: Sequence[Reading]) -> tuple[tuple[Metric, ...], str]:
    """The metrics that a metric stands for in these runs of both sides, by name, and a sentence where that is not all.

    A pattern that leaves one curve in every run stays one metric. Else there is one for each that any run of any side
    has, called `name[part]` after what the stars stand for; those of the base first where there are too many, so that
    no new tag of a pull request can push out what the base is judged by.
    """
    tag = metric.tag or ""
    runs = [_matching(tag, reading) for reading in (*base, *head)]
    if all(are_one(curves) for curves in runs):
        return (metric,), ""
    names = _names(tag, runs)
    of_base = dict.fromkeys(names[curve.path] for curves in runs[: len(base)] for curve in curves)
    kept = sorted(of_base)[:MOST]
    kept += sorted(set(names.values()) - set(kept))[: MOST - len(kept)]
    parts = _parts(tag, sorted(kept))
    found = [replace(metric, name=f"{metric.name}[{part}]", tag=name) for name, part in parts.items()]
    left = len(set(names.values())) - len(kept)
    said = f"{metric.name}: `{tag[:100]}` fits {left + MOST} curves; {MOST} are compared, those of the base first."
    return tuple(sorted(found, key=lambda one: one.name)), said if left else ""


def settled(metrics: Iterable[Metric], compared: Iterable[Metric]) -> tuple[Metric, ...]:
    """Declared metrics, each pattern in the form in which it was compared."""
    compared = tuple(compared)
    found: list[Metric] = []
    for metric in metrics:
        several = [one for one in compared if one.name.startswith(f"{metric.name}[")]
        found += several or [metric]
    return tuple(found)


def declared(name: str) -> str:
    """The name in the configuration of what `expand` has named; names there hold no bracket."""
    return name.partition("[")[0]


def _names(pattern: str, runs: Sequence[Sequence[Curve]]) -> Mapping[str, str]:
    """What each curve is looked up by, by path: its tag where that fits and is only one in every run, else its path."""
    several: set[str] = set()
    for curves in runs:
        by_tag: dict[str, list[Curve]] = {}
        for curve in curves:
            by_tag.setdefault(curve.tag, []).append(curve)
        several |= {name for name, same in by_tag.items() if not are_one(same)}
    return {
        curve.path: curve.tag if stars(pattern, curve.tag) is not None and curve.tag not in several else curve.path
        for curves in runs
        for curve in curves
    }


def _parts(pattern: str, names: Iterable[str]) -> Mapping[str, str]:
    """What stands in the brackets, by name: short, harmless, and each only once."""
    found: dict[str, str] = {}
    for name in names:
        told = stars(pattern, name)
        part = _ODD.sub("_", ",".join(told) if told is not None else name)
        part = part if len(part) <= _LONGEST_PART else f"{part[: _LONGEST_PART - 1]}…"
        again = 2
        unique = part
        while unique in found.values():
            unique = f"{part} {again}"
            again += 1
        found[name] = unique
    return found
