"""What all tests share."""

import os

import pytest
from hypothesis import settings

# the same examples in every run of CI; elsewhere new ones each time, which is how new faults are found
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("laptop", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "laptop")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--story` prints what was said in each story."""
    parser.addoption("--story", action="store_true", help="print stories as conversations")
