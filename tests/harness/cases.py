"""Real files and series of other projects, read where they lie beside the project; they are never copied into it."""

import os
from pathlib import Path

import pytest

_PROJECT = Path(__file__).resolve().parents[2]


def case_file(name: str) -> Path:
    """Path of a case file; the test is skipped where the collection, which is no part of the project, does not lie."""
    folder = Path(os.environ.get("BENCHBOT_CASES", _PROJECT.parent / "shared" / "cases"))
    for path in (folder / "files" / name, folder / "series" / name):
        if path.exists():
            return path
    pytest.skip(f"{name} is not under {folder}; set BENCHBOT_CASES to the folder of real cases")
