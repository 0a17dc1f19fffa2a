"""Real files and series of other projects, read where they lie beside the project; they are never copied into it."""

import os
from pathlib import Path

import pytest

_PROJECT = Path(__file__).resolve().parents[2]


def case_file(name: str) -> Path:
    """Path of a case file; the test is skipped on a laptop without the cases, and fails in CI."""
    folder = Path(os.environ.get("BENCHBOT_CASES", _PROJECT.parent / "shared" / "cases"))
    for path in (folder / "files" / name, folder / "series" / name):
        if path.exists():
            return path
    sentence = f"{name} is not under {folder}; set BENCHBOT_CASES to the folder of real cases"
    if os.environ.get("CI") == "true":
        pytest.fail(sentence)
    pytest.skip(sentence)
