"""`benchbot agent`: this computer as a host of a bot's pool; the same loop as `python3 agent.pyz --enrol ...`."""

import argparse

from runners.agent import hosting

HELP = "be a host of a bot's pool: enrol once, then work its leases"
EXAMPLES = (
    "benchbot agent --enrol https://bench.example.org --code CODE --labels xpu,max1100",
    "benchbot agent --enrol https://bench.example.org",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The bot, the code of the first time, the labels, a folder."""
    hosting.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """0 after an ordinary stop, 2 for a wrong call, 3 when the bot does not want this host."""
    return hosting.serve(args)
