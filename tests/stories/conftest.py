"""Prints a story when that was asked for: `make story NAME=regression_caught`."""

from collections.abc import Callable

import pytest

from tests.harness.world import World


@pytest.fixture
def story_out(request: pytest.FixtureRequest) -> Callable[[World], None]:
    """Prints the conversation of a story that was told."""

    def out(world: World) -> None:
        if request.config.getoption("--story"):
            print("\n" + "\n\n".join(world.told))

    return out
