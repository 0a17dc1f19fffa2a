"""What all tests share."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--story` prints what was said in each story."""
    parser.addoption("--story", action="store_true", help="print stories as conversations")
