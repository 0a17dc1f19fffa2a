"""Who may import whom: the table in pyproject.toml, as it is and nothing more."""

import ast
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLE: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["benchbot"]["imports"]
OURS = ("bot", "runners", "templates", "trainloop", "tests", "benchmarks")
PURE = ("bot.core", "bot.measure", "bot.report")
IMPURE = {"asyncio", "logging", "random", "secrets", "time", "socket", "subprocess", "aiohttp", "sqlalchemy"}


def _modules() -> list[tuple[str, Path]]:
    files = [path for name in ("bot", "runners", "templates") for path in (ROOT / name).rglob("*.py")]
    files = [path for path in files if "projects" not in path.parts]
    return [(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"), path) for path in files]


def _imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            # `from bot.web import live` imports the module bot.web.live
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def _part(module: str) -> str | None:
    """The longest listed part that a module belongs to."""
    parts = [part for part in TABLE if module == part or module.startswith(f"{part}.")]
    return max(parts, key=len, default=None)


def _below(module: str, part: str) -> bool:
    return module == part or module.startswith(f"{part}.")


def test_every_module_belongs_to_a_part() -> None:
    free = ("bot", "bot.app", "bot.cli", "bot.__main__")
    lost = [name for name, _ in _modules() if _part(name) is None and not any(_below(name, part) for part in free[1:])]
    assert lost == ["bot"]


@pytest.mark.parametrize("part", TABLE)
def test_a_part_imports_only_what_it_may(part: str) -> None:
    wrong = []
    for name, path in _modules():
        if _part(name) != part:
            continue
        for imported in _imports(path):
            if imported.split(".")[0] in OURS and not any(_below(imported, each) for each in (part, *TABLE[part])):
                wrong.append(f"{name} imports {imported}")
    assert wrong == []


def test_workers_and_web_never_see_each_other() -> None:
    assert not any(allowed.startswith("bot.web") for allowed in TABLE["bot.workers"])
    assert not any(allowed.startswith("bot.workers") for allowed in TABLE["bot.web"])
    assert not any(allowed.startswith("bot") for part in ("runners", "runners.agent") for allowed in TABLE[part])


def test_pure_parts_have_no_clock_no_chance_and_no_network() -> None:
    wrong = [
        f"{name} imports {imported}"
        for name, path in _modules()
        if name.startswith(PURE)
        for imported in _imports(path)
        if imported.split(".")[0] in IMPURE
    ]
    assert wrong == []


def test_the_agent_needs_nothing_but_python() -> None:
    wrong = []
    for name, path in _modules():
        if not (name.startswith("runners.agent") or name == "runners.protocol"):
            continue
        ast.parse(path.read_text(), feature_version=(3, 9))
        roots = {imported.split(".")[0] for imported in _imports(path)} - {"runners"}
        wrong += [f"{name} imports {root}" for root in roots if root not in sys.stdlib_module_names]
    assert wrong == []


def test_files_stay_small() -> None:
    long = {name: count for name, path in _modules() if (count := len(path.read_text().splitlines())) > 400}
    assert long == {}
