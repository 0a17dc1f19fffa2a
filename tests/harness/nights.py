"""Nights of a story: a schedule on the default branch, merges, and what is remembered of them."""

from sqlalchemy import select

from bot.store.memory import SampleRow, Series
from tests.harness.land import CONFIG
from tests.harness.world import World

NIGHTLY = b'schedules:\n  nightly: {cron: "30 2 * * *", timezone: Europe/Berlin, benchmarks: resnet50, seeds: 2}\n'
DAY_S = 24 * 3600.0


async def merges(world: World, files: dict[str, bytes]) -> str:
    """Somebody pushes to the default branch, and the bot hears of it. The new tip."""
    sha = await world.sandbox.push(world.repository, "maya", "main", files)
    await world.settle()
    return sha


async def schedule(world: World, text: bytes = NIGHTLY, config: bytes = CONFIG) -> str:
    """The configuration gets a schedule. The new tip."""
    return await merges(world, {".github/benchmark.yml": config + text})


async def night(world: World, days: float = 1) -> None:
    """The clock goes on, and whatever is due happens."""
    world.clock.now += days * DAY_S
    await world.settle()


async def samples(world: World, metric: str = "") -> list[tuple[str, str, float]]:
    """Name, commit and value of all samples in the order in which they came, or of one metric."""
    async with world.services.database.read() as tx:
        rows = await tx.execute(select(Series.name, SampleRow.sha, SampleRow.value).join(Series).order_by(SampleRow.id))
        return [(name, sha, value) for name, sha, value in rows if metric in ("", name)]
