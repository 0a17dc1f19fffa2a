"""The `benchbot` command line: finds the sub-commands in `bot.cli` and hands over. Dispatch only."""

import argparse
import importlib
import pkgutil
import sys
from importlib.metadata import version
from types import ModuleType

from bot import cli


def main(argv: list[str] | None = None) -> int:
    """Run one sub-command; its exit status. argparse itself exits with 2 for a wrong call."""
    words = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(
        prog="benchbot",
        description="Comment /benchmark on a pull request; get trained numbers, TensorBoard and weights back.",
        epilog="`benchbot COMMAND --help` shows the options of one, with examples.",
    )
    parser.add_argument("--version", action="version", version=f"benchbot {version('benchbot')}")
    chosen = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, module in subcommands().items():
        epilog = "examples:\n" + "\n".join(f"  {example}" for example in module.EXAMPLES)
        sub = chosen.add_parser(
            name,
            help=module.HELP,
            description=module.HELP[0].upper() + module.HELP[1:] + ".",
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(sub)
        sub.set_defaults(run=module.run)
    args = parser.parse_args(words)
    status: int = args.run(args)
    return status


def subcommands() -> dict[str, ModuleType]:
    """Modules of `bot.cli` that say what they are for; the others are what these share."""
    found = {}
    for module in pkgutil.iter_modules(cli.__path__):
        loaded = importlib.import_module(f"bot.cli.{module.name}")
        if hasattr(loaded, "HELP"):
            found[module.name] = loaded
    return found


if __name__ == "__main__":
    sys.exit(main())
