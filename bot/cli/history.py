"""`benchbot history`: the samples of a repository's default branch, to take them out and to bring others in."""

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from bot.cli.configured import settings_or_exit
from bot.cli.examine import is_made, shown_url
from bot.core.records import SampleLine
from bot.report.samples import BadLine, read, to_csv, to_jsonl
from bot.settings import Settings
from bot.store.bringing import Unknown, bring_in, lines_of, repository_named
from bot.store.database import Database

HELP = "take the numbers of a repository's history out, or bring numbers from elsewhere in"
EXAMPLES = (
    "benchbot history export acme/vision > history.jsonl",
    "benchbot history export acme/vision --format csv > history.csv",
    "benchbot history import acme/vision history.csv",
)
FORMATS = {"jsonl": to_jsonl, "csv": to_csv}
SHOWN = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to do with which repository."""
    parser.add_argument("what", choices=("export", "import"))
    parser.add_argument("repository", metavar="REPOSITORY", help="its name, such as acme/vision, or its id at GitHub")
    columns = "JSON lines or CSV with benchmark, metric, commit, value and perhaps scenario, init, hardware, seed, "
    parser.add_argument("file", metavar="FILE", nargs="?", help=f"{columns}machine, at; - is standard input")
    parser.add_argument("--format", choices=FORMATS, default="jsonl", help="of what is exported (default: jsonl)")


def run(args: argparse.Namespace) -> int:
    """0; 1 when lines were left out; 2 for a wrong call; 3 when the database cannot be read."""
    settings = settings_or_exit()
    if not is_made(settings):
        print(f"benchbot history: there is no database at {shown_url(settings)} yet", file=sys.stderr)
        return 3
    try:
        if args.what == "export":
            print(FORMATS[args.format](asyncio.run(_export(settings, args.repository))), end="")
            return 0
        return asyncio.run(_import(settings, args.repository, _text(args.file)))
    except DBAPIError as error:
        said = str(error.orig).splitlines()[0][:200]
        print(f"benchbot history: the database cannot be used ({said}); `benchbot migrate`?", file=sys.stderr)
        return 3
    except (Unknown, OSError, UnicodeDecodeError) as error:
        print(f"benchbot history: {error}", file=sys.stderr)
        return 2


def _text(file: str | None) -> str:
    if file is None:
        raise Unknown("import needs a file; - is standard input")
    return sys.stdin.read() if file == "-" else Path(file).read_text()


async def _export(settings: Settings, name: str) -> Sequence[SampleLine]:
    database = Database(settings.database_url)
    try:
        async with database.read() as tx:
            return await lines_of(tx, await repository_named(tx, name))
    finally:
        await database.close()


async def _import(settings: Settings, name: str, text: str) -> int:
    database = Database(settings.database_url)
    found = list(enumerate(read(text), 1))
    bad = [one for _, one in found if isinstance(one, BadLine)]
    try:
        async with database.read() as tx:
            repository = await repository_named(tx, name)
        good = [one for _, one in found if isinstance(one, SampleLine)]
        brought = await bring_in(database, repository, good, settings.hardware, time.time())
    finally:
        await database.close()
    print(f"{brought.added} samples brought in, {brought.known} were there already.")
    if brought.elsewhere:
        print(f"{brought.elsewhere} of them belong to commits that are not known to be on the default branch.")
    said = [f"line {one.number}: {one.sentence}" for one in bad] + list(brought.refused)
    for sentence in said[:SHOWN]:
        print(f"left out: {sentence}", file=sys.stderr)
    if len(said) > SHOWN:
        print(f"and {len(said) - SHOWN} more", file=sys.stderr)
    return 1 if said else 0
