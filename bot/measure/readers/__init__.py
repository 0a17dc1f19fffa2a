"""Reads the log folder of a run: every file that a module beside this one knows, to curves by run directory and tag.

A reader is one module with `fits(name) -> bool` (which files it reads) and `read(path) -> FileContents`.
"""

import importlib
import os
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

from bot.measure.readers.merging import FileContents, merge
from bot.measure.reading import ROOT, Curve, Health, Reading, describe

__all__ = ["Reading", "describe", "read_folder"]

MOST_FILES = 10_000
MOST_NOTES = 20
Read = Callable[[Path], FileContents]


def read_folder(folder: Path) -> Reading:
    """All curves below a folder, links not followed. A file that cannot be read is a note, never an error."""
    found: dict[str, list[FileContents]] = {}
    notes: list[str] = []
    count = 0
    for path in files_of(folder):
        read = reader_of(path.name)
        if read is None:
            continue
        count += 1
        if count > MOST_FILES:
            notes.append(f"There are more than {MOST_FILES} files with values; the rest was left out.")
            break
        try:
            contents = read(path)
        except OSError as error:
            notes.append(f"{_short(path, folder)} cannot be read: {error.strerror or 'input error'}.")
            continue
        contents.close()
        notes += [f"{_short(path, folder)}: {note}" for note in contents.notes]
        found.setdefault(run_of(path, folder), []).append(contents)
    return join(found, notes)


def join(found: Mapping[str, Sequence[FileContents]], notes: Sequence[str]) -> Reading:
    """The files of each run directory, oldest first, to curves; `notes` come before what is noticed now."""
    curves: dict[tuple[str, str], Curve] = {}
    dropped = 0
    said = list(notes)
    for run, files in found.items():
        merged = merge(run, files)
        curves |= {(curve.run, curve.tag): curve for curve in merged.curves}
        dropped += merged.dropped
        said += merged.notes
    contents = [each for files in found.values() for each in files]
    health = Health(
        files=len(contents),
        records=sum(each.records for each in contents),
        bad_records=sum(each.bad_records for each in contents),
        tail_bytes=sum(each.tail_bytes for each in contents),
        dropped_by_resume=dropped,
        non_finite=sum(curve.non_finite for curve in curves.values()),
    )
    return Reading(curves=curves, health=health, notes=tuple(said[:MOST_NOTES]))


def reader_of(name: str) -> Read | None:
    """What reads a file of this name; None for files that hold no values."""
    return next((read for fits, read in _readers() if fits(name)), None)


@cache
def _readers() -> tuple[tuple[Callable[[str], bool], Read], ...]:
    found: list[tuple[Callable[[str], bool], Read]] = []
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name):
        loaded = importlib.import_module(f"{__name__}.{module.name}")
        if hasattr(loaded, "read"):
            found.append((loaded.fits, loaded.read))
    return tuple(found)


def files_of(folder: Path) -> list[Path]:
    """Regular files below a folder, in each directory by name, which for event files is the order of their start."""
    found = []
    for place, folders, names in os.walk(folder):
        folders.sort()
        found += [Path(place, name) for name in names]
    regular = (path for path in found if path.is_file() and not path.is_symlink())
    return sorted(regular, key=lambda path: (str(path.parent), path.name))


def run_of(path: Path, folder: Path) -> str:
    """The run directory of a file: its folder relative to `folder`, "." for that itself."""
    relative = path.parent.relative_to(folder).as_posix()
    return ROOT if relative == "." else relative


def _short(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix()[:200]
