"""`benchbot migrate`: bring the database to the tables of this version."""

import argparse
import asyncio

from bot.cli.configured import settings_or_exit
from bot.store.database import Database
from bot.store.migrate import migrate

HELP = "create or update the tables of the database"
EXAMPLES = ("benchbot migrate",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Nothing to choose: the database is named in benchbot.toml or DATABASE_URL."""


def run(_: argparse.Namespace) -> int:
    """0 when the tables are up to date."""
    settings = settings_or_exit()
    settings.data_folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    async def bring_up() -> None:
        database = Database(settings.database_url)
        try:
            await migrate(database)
        finally:
            await database.close()

    asyncio.run(bring_up())
    print("The tables are up to date.")
    return 0
