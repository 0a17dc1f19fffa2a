"""The `benchbot` command line as a whole: help, wrong calls, and what is imported."""

import importlib
import pkgutil
import subprocess
import sys
from importlib.metadata import version

import pytest

from bot import cli
from bot.__main__ import main, subcommands

MODULES = [module.name for module in pkgutil.iter_modules(cli.__path__)]


def _exits(*words: str) -> int:
    with pytest.raises(SystemExit) as exit_info:
        main(words)
    assert isinstance(exit_info.value.code, int)
    return exit_info.value.code


def test_the_commands_are_the_modules_that_can_be_run() -> None:
    found = subcommands()
    for name in MODULES:
        module = importlib.import_module(f"bot.cli.{name}")
        assert (name in found) == hasattr(module, "run")
        assert found.get(name) == getattr(module, "HELP", None)
    assert {"demo", "serve", "work", "migrate", "replay", "run", "plan", "metrics"} <= set(found)


@pytest.mark.parametrize("name", sorted(subcommands()))
def test_every_command_has_help_with_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _exits(name, "--help") == 0
    said = capsys.readouterr().out
    assert "examples:" in said
    assert f"\n  benchbot {name}" in said


@pytest.mark.parametrize(
    "words",
    [(), ("plann",), ("plan",), ("plan", "x", "--jason"), ("run",), ("metrics",), ("replay",), ("--json", "plan", "x")],
)
def test_a_wrong_call_ends_with_2_and_says_how(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert _exits(*words) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("usage: benchbot")


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert _exits("--version") == 0
    assert capsys.readouterr().out == f"benchbot {version('benchbot')}\n"


def test_help_lists_every_command_and_imports_none() -> None:
    code = (
        "import sys\n"
        "from bot.__main__ import main\n"
        "try:\n"
        "    main(['--help'])\n"
        "finally:\n"
        "    print([name for name in sys.modules if name.startswith(('bot.cli.', 'numpy', 'aiohttp', 'sqlalchemy'))])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.rstrip().endswith("[]")
    for name in subcommands():
        assert f"\n    {name} " in done.stdout
