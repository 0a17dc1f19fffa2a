"""The example of docs/backends/writing.md: its three files are run, and are as tidy as ours."""

import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from runners.backends.base import Backend

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/backends/writing.md").read_text()
FILES = dict(re.findall(r"^`([a-z/_]+\.py)`\n\n```python\n(.*?)```$", PAGE, re.MULTILINE | re.DOTALL))
TESTS = "tests/contracts/test_rack.py"
NAMES = re.findall(r"^async def (test_\w+)", FILES[TESTS], re.MULTILINE)


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The example's tests, imported with its other files in their places."""
    found: list[ModuleType] = []
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        dotted = name.removesuffix(".py").replace("/", ".")
        spec = spec_from_file_location(dotted, path)
        assert spec
        assert spec.loader
        module = module_from_spec(spec)
        monkeypatch.setitem(sys.modules, dotted, module)
        spec.loader.exec_module(module)
        found.append(module)
    return found[-1]


@pytest.mark.parametrize("name", NAMES)
async def test_the_example(name: str, example: ModuleType, tmp_path: Path) -> None:
    await getattr(example, name)(tmp_path)


def test_the_example_is_tidy() -> None:
    assert list(FILES) == ["runners/backends/rack.py", "tests/harness/rack.py", TESTS]
    for name, text in FILES.items():
        # the order of imports depends on which modules are ours, and these are not in their places
        for words in (("check", "--ignore", "I"), ("format", "--check")):
            command = [sys.executable, "-m", "ruff", *words, "--stdin-filename", name, "-"]
            done = subprocess.run(command, input=text, text=True, capture_output=True, cwd=ROOT, check=False)
            assert done.returncode == 0, done.stdout + done.stderr


def test_every_verb_stands_on_the_page() -> None:
    inner = ("check_offers", "check_machines", "clear", "isolates")
    for verb in [name for name in vars(Backend) if not name.startswith("_") and name not in ("name", "billed", *inner)]:
        assert f"| `{verb}(" in PAGE, verb
