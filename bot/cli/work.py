"""`benchbot work`: the workers without the web server."""

import argparse
import asyncio

from bot.app import open_bot
from bot.cli.configured import log_to_stderr, settings_or_exit, until_stopped

HELP = "run the workers only, beside `benchbot serve --no-worker`"
EXAMPLES = ("benchbot work",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Nothing to choose."""


def run(_: argparse.Namespace) -> int:
    """0 after an ordinary stop."""
    settings = settings_or_exit(needs_github=True)
    log_to_stderr()

    async def work() -> None:
        async with open_bot(settings) as bot, bot.working():
            print("benchbot works", flush=True)
            await until_stopped()

    asyncio.run(work())
    return 0
