"""Frameworks that do not see the machine's devices: found before anything is measured, never a silent CPU."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from runners.agent import frameworks
from runners.agent.work import DeviceWork
from tests.unit.runners.conftest import Scene

# what a framework needs of its own to be asked
TORCH = """
class cuda:
    is_available = staticmethod(lambda: {count} > 0)
    device_count = staticmethod(lambda: {count})
class xpu:
    device_count = staticmethod(lambda: {count})
class version:
    cuda, hip, xpu = {cuda!r}, None, "2025"
"""
JAX = """
default_backend = lambda: {platform!r}
local_device_count = lambda: {count}
"""


def _asked(folder: Path, kind: str, **modules: str) -> bytes:
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    # -S: what is installed here must not be found
    words = [sys.executable, "-S", "-c", frameworks.ASK, kind]
    return subprocess.run(words, env={"PYTHONPATH": str(folder)}, capture_output=True, check=True).stdout


@pytest.mark.parametrize(
    ("kind", "modules", "sentence", "unhealthy"),
    [
        ("cuda", {"torch": TORCH.format(count=2, cuda="12.9")}, "", False),
        ("cuda", {"torch": TORCH.format(count=1, cuda="12.9")}, "torch sees 1 of 2 cuda devices", True),
        ("cuda", {"torch": TORCH.format(count=0, cuda=None)}, "torch is installed without support for cuda", False),
        ("rocm", {"torch": TORCH.format(count=2, cuda="12.9")}, "torch is installed without support for rocm", False),
        ("xpu", {"torch": TORCH.format(count=2, cuda=None)}, "", False),
        ("tpu", {"torch": TORCH.format(count=0, cuda=None)}, "", False),
        ("tpu", {"jax": JAX.format(platform="tpu", count=2)}, "", False),
        ("cuda", {"jax": JAX.format(platform="cpu", count=1)}, "jax sees 0 of 2 cuda devices (cpu)", True),
        ("tpu", {"jax": "raise RuntimeError('the TPU is in use')"}, "RuntimeError: the TPU is in use", True),
        ("cuda", {}, "", False),
    ],
)
def test_what_a_framework_sees(
    tmp_path: Path, kind: str, modules: dict[str, str], sentence: str, unhealthy: bool
) -> None:
    blind = frameworks.judge(_asked(tmp_path, kind, **modules), DeviceWork(kind, 2))
    assert (blind.unhealthy if blind else False) == unhealthy
    assert sentence in blind.sentence if blind else sentence == ""


def test_a_script_that_prints_something_first(tmp_path: Path) -> None:
    said = _asked(tmp_path, "cuda", torch="print('a banner')\n" + TORCH.format(count=2, cuda="12.9"))
    assert said.startswith(b"a banner")
    assert json.loads(said.splitlines()[-1]) == {"torch": {"built": True, "count": 2}}
    assert frameworks.judge(b"", DeviceWork("cuda", 2)) is None


async def test_nothing_is_measured_on_a_machine_without_its_devices(scene: Scene) -> None:
    setup = 'cp torch_for_tests.py "$(python -c \'import sysconfig; print(sysconfig.get_path("purelib"))\')/torch.py"'
    scene.head = scene.repository.commit({"torch_for_tests.py": TORCH.format(count=0, cuda="12.9")})
    scene.base = scene.head
    devices = {"kind": "cuda", "count": 1}
    scene.plan(scene.run("r1", "echo never"), setup=setup, setup_inputs=[], devices=devices)
    await scene.finish()
    assert scene.server.finished == {"outcome": "device_unhealthy", "sentence": "torch sees 0 of 1 cuda devices"}
    assert scene.server.ended() == {}


async def test_a_device_that_falls_ill_in_a_training(scene: Scene) -> None:
    """The vendor's tool says so after the run: its numbers are not taken, and the next run is not begun."""
    programs = scene.folder / "programs"
    programs.mkdir()
    ill = f"[ -e {scene.folder}/ill ] && echo 'Unable to determine the device handle: GPU is lost'"
    (programs / "nvidia-smi").write_text(f"#!/bin/sh\n{ill} || echo 'NVIDIA L4, 23034, 580.1, 0'\n")
    (programs / "nvidia-smi").chmod(0o755)
    scene.path = f"{programs}:/usr/bin:/bin"
    devices = {"kind": "cuda", "count": 1}
    runs = (scene.run("r1", "echo fine"), scene.run("r2", f"touch {scene.folder}/ill"), scene.run("r3", "echo never"))
    scene.plan(*runs, setup="", setup_inputs=[], devices=devices)
    await scene.finish()
    assert scene.server.finished
    assert scene.server.finished["outcome"] == "device_unhealthy"
    assert "0 of 1 cuda devices are well" in scene.server.finished["sentence"]
    assert "GPU is lost" in scene.server.finished["sentence"]
    assert "r3" not in scene.server.ended()
