"""The `benchbot` command line: finds the sub-commands in `bot.cli` and hands over. Dispatch only.

A sub-command is a module with HELP, EXAMPLES, `add_arguments` and `run`; the other modules there are what these share.
Only the one that was called is imported, so that help does not wait for all that the others need.
"""

import argparse
import ast
import importlib
import os
import pkgutil
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec

from bot import cli


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(f"benchbot {version('benchbot')}")
        parser.exit()


def main(argv: Sequence[str] | None = None) -> int:
    """Run one sub-command; its exit status. argparse itself exits with 2 for a wrong call."""
    words = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(
        prog="benchbot",
        description="Comment /benchmark on a pull request; get trained numbers, TensorBoard and weights back.",
        epilog="`benchbot COMMAND --help` shows the options of one, with examples.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    chosen = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, sentence in subcommands().items():
        sub = chosen.add_parser(
            name,
            help=sentence,
            description=f"{sentence[0].upper()}{sentence[1:]}.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if words[:1] == [name]:
            module = importlib.import_module(f"bot.cli.{name}")
            sub.epilog = "\n".join(("examples:", *(f"  {example}" for example in module.EXAMPLES)))
            module.add_arguments(sub)
            sub.set_defaults(run=module.run)
    args = parser.parse_args(words)
    try:
        status: int = args.run(args)
        sys.stdout.flush()
    except BrokenPipeError:
        # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return status


def subcommands() -> Mapping[str, str]:
    """Every sub-command with its HELP, read from the source of its module without running it."""
    found = {}
    for module in pkgutil.iter_modules(cli.__path__):
        sentence = _help(f"bot.cli.{module.name}")
        if sentence is not None:
            found[module.name] = sentence
    return found


def _help(module: str) -> str | None:
    """The text of HELP; None where the module has none or has no `run`."""
    spec = find_spec(module)
    source = getattr(spec.loader, "get_source", lambda _: None)(module) if spec else None
    body = ast.parse(source or "").body
    if not any(isinstance(node, ast.FunctionDef) and node.name == "run" for node in body):
        return None
    for node in body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["HELP"]:
            return str(ast.literal_eval(node.value))
    return None


if __name__ == "__main__":
    sys.exit(main())
