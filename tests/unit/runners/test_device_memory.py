"""The memory of devices while a command runs, against an nvidia-smi that answers well, badly, late or too much."""

import time
from pathlib import Path

import pytest

from runners.agent import device_memory, devices, processes
from runners.agent.device_memory import DeviceMemory, Peak, read
from tests.unit.runners.conftest import Scene

MIB = 2**20


@pytest.fixture
def shims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for nvidia-smi; nothing else of this computer is seen."""
    folder = tmp_path / "shims"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setattr(devices, "_PLACES", "")
    monkeypatch.setattr(devices, "DRM", tmp_path / "drm")
    monkeypatch.setattr(device_memory, "EVERY_S", 0.01)
    monkeypatch.setattr(device_memory, "_PATIENCE_S", 0.3)
    return folder


def smi(folder: Path, script: str) -> None:
    """An nvidia-smi that runs a shell script; `$n` counts its calls from 1 on."""
    count = folder / "count"
    (folder / "nvidia-smi").write_text(f"#!/bin/sh\necho x >> {count}\nn=$(wc -l < {count})\n{script}\n")
    (folder / "nvidia-smi").chmod(0o755)


def _watched(shims: Path, calls: int) -> Peak:
    memory = DeviceMemory()
    until = time.monotonic() + 20
    while (shims / "count").exists() and len((shims / "count").read_text()) < 2 * calls and time.monotonic() < until:
        time.sleep(0.01)
    return memory.peak()


def test_the_most_that_one_device_held_beyond_what_it_held_before(shims: Path) -> None:
    smi(shims, 'case $n in 1) echo "0, 100"; echo "1, 7";; 3) echo "0, 500"; echo "1, 900";; *) echo "0, 130";; esac')
    assert _watched(shims, 6) == Peak(893 * MIB)
    assert processes.descendants([]) == []


def test_a_machine_without_devices(shims: Path) -> None:
    peak = DeviceMemory().peak()
    assert peak == Peak(None, "this machine has no device whose memory can be asked for")


def test_cards_of_amd_are_told_by_the_kernel(shims: Path, tmp_path: Path) -> None:
    card = tmp_path / "drm" / "card0" / "device"
    card.mkdir(parents=True)
    (card / "mem_info_vram_used").write_text("1000\n")
    memory = DeviceMemory()
    (card / "new").write_text("9000\n")
    (card / "new").rename(card / "mem_info_vram_used")
    time.sleep(0.1)
    assert memory.peak() == Peak(8000)
    (card / "mem_info_vram_used").write_text("busy")
    assert DeviceMemory().peak() == Peak(None, "the kernel does not say what a card holds")


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ('echo "0, [N/A]"', "nvidia-smi says: 0, [N/A]"),
        ("echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18", "version mismatch"),
        ("printf '0, 1\\033[31m\\n'", "nvidia-smi says: 0, 1[31m"),
        ("exit 0", "nvidia-smi says nothing"),
        ("exec sleep 60", "nvidia-smi did not answer within 0.3 s"),
        ("exec yes 0, 1", "nvidia-smi says too much"),
        ('[ "$n" = 1 ] && echo "0, 5" || echo "Unknown Error"', "nvidia-smi says: Unknown Error"),
    ],
)
def test_a_tool_that_says_anything_else_is_a_sentence(shims: Path, script: str, said: str) -> None:
    smi(shims, script)
    peak = _watched(shims, 3 if "$n" in script else 1)
    assert peak.most_bytes is None
    assert said in peak.trouble


def test_an_answer_that_is_lost_now_and_then_does_no_harm(shims: Path) -> None:
    smi(shims, '[ $n = 3 ] && echo oops || echo "0, $n"')
    peak = _watched(shims, 8)
    assert peak.most_bytes is not None
    assert peak.most_bytes >= 6 * MIB


@pytest.mark.parametrize("line", ["", "0", "0, -1", "0, 1, 2", "0, 1e9", "0, 99999999999", "x, 1", "٠, ١"])
def test_numbers_are_plain_and_short(line: str) -> None:
    with pytest.raises(device_memory.LostError):
        read(line)


async def test_the_agent_tells_what_a_run_took_and_what_came_before_it(scene: Scene) -> None:
    tools = scene.folder / "tools"
    tools.mkdir()
    smi(tools, 'echo "0, $((n * 10))"')
    scene.path = f"{tools}:{scene.path}"
    scene.plan(scene.run("r1", "sleep 0.4"), scene.run("r2", "exit 3", "base"), setup="sleep 0.2")
    await scene.finish()
    ended = scene.server.ended()
    assert (ended["r1"]["exit"], ended["r2"]["exit"]) == (0, 3)
    assert ended["r1"]["peak_device_bytes"] == 10 * MIB
    assert ended["r1"]["device_trouble"] == ""
    phases = ended["r1"]["phases"]
    assert sorted(phases) == ["checkout", "inputs", "run", "setup"]
    assert 0.4 <= phases["run"] == ended["r1"]["seconds"]
    assert phases["setup"] >= 0.2
    assert 0.0 < phases["checkout"] < 60
    assert phases["inputs"] < 0.2
    # the watching of the devices is none of what the command left running
    assert "left behind" not in scene.server.text("r1", "log.txt")


async def test_the_agent_says_why_it_knows_no_device_memory(scene: Scene) -> None:
    tools = scene.folder / "tools"
    tools.mkdir()
    smi(tools, "echo '0, [N/A]'")
    scene.path = f"{tools}:{scene.path}"
    scene.plan(scene.run("r1", "true"))
    await scene.finish()
    ended = scene.server.ended()["r1"]
    assert (ended["peak_device_bytes"], ended["device_trouble"]) == (None, "nvidia-smi says: 0, [N/A]")
