"""`benchbot export ID`: the results of a run or a request as records for other programs."""

import argparse
import asyncio
import sys
import time

from aiohttp import ClientSession
from sqlalchemy.exc import DBAPIError

from bot.app import build_bucket
from bot.artifacts.base import BucketAway
from bot.artifacts.local import LocalStore
from bot.cli.configured import settings_or_exit
from bot.cli.examine import is_made, shown_url
from bot.report.record import Record, look, record, to_csv, to_json, to_model_index
from bot.services import Services
from bot.settings import Settings
from bot.store.database import Database
from bot.store.records import facts_of
from runners.protocol import LOG_FOLDER

HELP = "the results of a run or of a request as JSON, CSV or the index of a model card"
EXAMPLES = (
    "benchbot export 4kq7zj2mwyx6b3tn5hvcrf2dqe",
    "benchbot export https://bench.example/requests/4kq7zj2mwyx6b3tn5hvcrf2dqe --format csv",
)
FORMATS = {"json": to_json, "csv": to_csv, "yaml": to_model_index}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to export, and how."""
    parser.add_argument("name", metavar="ID", help="the id of a run or of a request, or the address of its page")
    how = "json: all that is known (default); csv: a row a run; yaml: the model-index of a model card"
    parser.add_argument("--format", choices=FORMATS, default="json", help=how)


def run(args: argparse.Namespace) -> int:
    """0, 2 when there is nothing of that id, 3 when the database or the bucket cannot be read."""
    settings = settings_or_exit()
    name = args.name.strip().rstrip("/").rpartition("/")[2]
    if not is_made(settings):
        print(f"benchbot export: there is no database at {shown_url(settings)} yet", file=sys.stderr)
        return 3
    try:
        records = asyncio.run(_records(settings, name))
    except DBAPIError as error:
        said = str(error.orig).splitlines()[0][:200]
        print(f"benchbot export: the database cannot be read ({said}); `benchbot migrate`?", file=sys.stderr)
        return 3
    except BucketAway as away:
        print(f"benchbot export: the bucket with the logs cannot be reached: {away}", file=sys.stderr)
        return 3
    if not records:
        print(f"benchbot export: there is no run and no request {name}", file=sys.stderr)
        return 2
    print(FORMATS[args.format](records).rstrip("\n"))
    return 0


async def _records(settings: Settings, name: str) -> list[Record]:
    database = Database(settings.database_url)
    try:
        async with ClientSession() as session:
            services = Services(
                settings=settings,
                database=database,
                github=None,
                backends={},
                artifacts=LocalStore(settings.data_folder / "artifacts"),
                bucket=build_bucket(settings, session),
                clock=time.time,
            )
            async with database.read() as tx:
                facts = await facts_of(tx, name)
            found = []
            for one in facts:
                folder = await services.logs_of(one.run_id)
                seen = await asyncio.to_thread(look, folder / LOG_FOLDER, await services.weights_of(one.run_id))
                found.append(record(one, seen))
            return found
    finally:
        await database.close()
