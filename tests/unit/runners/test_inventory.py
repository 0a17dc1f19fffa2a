"""What is installed in the environment of a side, asked of its own Python."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from runners.agent import inventory
from tests.unit.runners.conftest import Scene

TEXT = Path(inventory.__file__).read_text()


def _distribution(site: Path, name: str, version: str, **files: str) -> None:
    folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    for file, text in files.items():
        (folder / file.replace("__", ".")).write_text(text)


def _module(site: Path, name: str, **files: str) -> None:
    (site / name).mkdir(parents=True, exist_ok=True)
    (site / name / "__init__.py").write_text("raise SystemExit('it was imported')")
    for path, text in files.items():
        file = site / name / f"{path.replace('__', '/')}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def _told(site: Path) -> dict[str, Any]:
    # -P: the folder that the tests run in may hold a distribution of its own
    words = [sys.executable, "-P", "-S", "-c", TEXT]
    said = subprocess.run(words, env={"PYTHONPATH": str(site)}, capture_output=True, check=True, text=True).stdout
    found: dict[str, Any] = json.loads(said.splitlines()[-1])
    return found


def test_frameworks_are_told_without_importing_them(tmp_path: Path) -> None:
    _distribution(tmp_path, "torch", "2.13.0")
    _module(tmp_path, "torch", version="__version__ = '2.13.0'\ncuda: Optional[str] = '12.8'\nhip = None\n")
    _distribution(tmp_path, "tensorflow-cpu", "2.21.0")
    info = "build_info = collections.OrderedDict([('cuda_version', '12.5.1'), ('is_cuda_build', True)])"
    _module(tmp_path, "tensorflow", python__platform__build_info=info)
    _module(tmp_path, "keras")
    _distribution(tmp_path, "nvidia-cuda-runtime-cu12", "12.8.90")
    told = _told(tmp_path)
    assert told["frameworks"] == {"torch": "2.13.0", "tensorflow": "2.21.0", "keras": "unknown"}
    assert told["cuda"] == {"torch": "12.8", "tensorflow": "12.5.1", "runtime": "12.8.90"}
    assert told["python"] == sys.version.split()[0]


def test_a_build_without_cuda_says_none(tmp_path: Path) -> None:
    _module(tmp_path, "torch", version="cuda = None\n")
    _module(tmp_path, "tensorflow")
    assert _told(tmp_path)["cuda"] == {}


def test_packages_are_told_in_order_with_where_they_come_from(tmp_path: Path) -> None:
    _distribution(tmp_path, "Zope.Thing_x", "1")
    _distribution(tmp_path, "own", "0.1", direct_url__json='{"url": "file:///checkout"}')
    git = {"url": "https://me:secret@example.org/r.git?token=x", "vcs_info": {"vcs": "git", "commit_id": "abc"}}
    _distribution(tmp_path, "from-git", "3", direct_url__json=json.dumps(git))
    _distribution(tmp_path, "broken", "4", direct_url__json="[")
    assert _told(tmp_path)["packages"] == [
        "broken==4",
        "from-git==3 @ https://example.org/r.git@abc",
        "own==0.1",
        "zope-thing-x==1",
    ]


async def test_the_agent_tells_it_for_each_side(scene: Scene) -> None:
    install = "pip install --no-build-isolation --no-deps -e ."
    scene.plan(scene.run("r1", "true"), setup=install)
    await scene.finish("--base-environment", sys.prefix)
    environment = scene.server.ended()["r1"]["environment"]
    assert environment["python"] == sys.version.split()[0]
    assert "digits==1.0" in environment["packages"]
    assert [line for line in environment["packages"] if line.startswith("pytest==")]
    assert environment["driver"] == ""
