"""A story's world with one more cloud: its backend, one hardware that it gives, and a repository that allows it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from bot.core.nouns import Hardware
from bot.sandbox import bare
from tests.harness.world import StandIn, World


@asynccontextmanager
async def cloud_with(world: World, hardware: Hardware, cloud: StandIn | None = None) -> AsyncIterator[None]:
    """Restarts the bot with the hardware, and lets every benchmark of the repository run on it."""
    if cloud is not None:
        world.clouds[hardware.backend] = cloud
    settings = world.services.settings
    world.settings = replace(settings, hardware={**settings.hardware, hardware.name: hardware})
    await world.close_bot()
    await world.open_bot()
    old = (await bare.blob(world.repository.folder, "main", ".github/benchmark.yml"))[1]
    new = f"    timeout: 1h\n    hardware: [local, {hardware.name}]".encode()
    await world.sandbox.push(
        world.repository, "maya", "main", {".github/benchmark.yml": old.replace(b"    timeout: 1h", new)}
    )
    yield
