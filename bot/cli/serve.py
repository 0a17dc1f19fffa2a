"""`benchbot serve`: the web server, and the workers beside it."""

import argparse
import asyncio
import contextlib

from bot.app import open_bot
from bot.cli.configured import log_to_stderr, settings_or_exit, until_stopped
from bot.settings import Settings

HELP = "receive webhooks, serve pages, and work"
EXAMPLES = ("benchbot serve", "benchbot serve --no-worker")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One choice: whether the workers run in this process."""
    parser.add_argument("--no-worker", action="store_true", help="serve only; `benchbot work` runs elsewhere")


def run(args: argparse.Namespace) -> int:
    """0 after an ordinary stop."""
    settings = settings_or_exit(needs_github=True)
    log_to_stderr()
    asyncio.run(serve(settings, work=not args.no_worker))
    return 0


async def serve(settings: Settings, *, work: bool) -> None:
    """Serve until the process is asked to stop."""
    async with open_bot(settings) as bot, bot.serving():
        print(f"benchbot serves {settings.base_url}", flush=True)
        async with bot.working() if work else contextlib.nullcontext():
            await until_stopped()
