"""The probe of devices, against tools that print what real ones do, in good and in bad times."""

import json
import os
from pathlib import Path

import pytest

from runners.agent import devices
from runners.agent.devices import Device, probe


@pytest.fixture
def shims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for tools; nothing else of this computer is seen."""
    folder = tmp_path / "shims"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setattr(devices, "_PLACES", "")
    monkeypatch.setattr(devices, "_DEV", tmp_path / "dev")
    monkeypatch.setattr(devices, "DRM", tmp_path / "drm")
    return folder


def tool(shims: Path, name: str, script: str) -> None:
    """A tool that runs a shell script."""
    (shims / name).write_text(f"#!/bin/sh\n{script}\n")
    (shims / name).chmod(0o755)


def prints(shims: Path, name: str, text: str, status: int = 0) -> None:
    """A tool that prints a text."""
    tool(shims, name, f"cat <<'END'\n{text}\nEND\nexit {status}")


def test_a_computer_without_any(shims: Path) -> None:
    assert probe() == []


H100 = "NVIDIA H100 80GB HBM3, 81559, 580.95.05, 0"


def test_nvidia(shims: Path) -> None:
    prints(shims, "nvidia-smi", f"{H100}\nNVIDIA GeForce RTX 3090, 24576, 580.95.05, [N/A]")
    assert probe() == [
        Device("nvidia", "NVIDIA H100 80GB HBM3", 81559, "580.95.05"),
        Device("nvidia", "NVIDIA GeForce RTX 3090", 24576, "580.95.05"),
    ]


@pytest.mark.parametrize(
    ("text", "status", "names", "said"),
    [
        # a failure that ends with 0
        (
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that it runs.",
            0,
            ["GPU"],
            "couldn't communicate",
        ),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", 9, ["GPU"], "status 9"),
        ("Failed to initialize NVML: Driver/library version mismatch", 18, ["GPU"], "version mismatch"),
        (
            f"{H100}\nUnable to determine the device handle for GPU1: 0000:3B:00.0: Unknown Error",
            0,
            ["NVIDIA H100 80GB HBM3", "GPU"],
            "Unknown Error",
        ),
        ("NVIDIA A100-SXM4-40GB, [Unknown Error], 580.95.05, 0", 0, ["GPU"], "Unknown Error"),
        ("NVIDIA A100-SXM4-40GB, 40960, 580.95.05, [GPU requires reset]", 0, ["GPU"], "requires reset"),
        ("NVIDIA A100-SXM4-40GB, 40960, 580.95.05, 3", 0, ["NVIDIA A100-SXM4-40GB"], "3 memory errors"),
        ("GPU is lost.  Reboot the system to recover this GPU", 15, ["GPU"], "GPU is lost"),
    ],
)
def test_nvidia_in_bad_times(shims: Path, text: str, status: int, names: list[str], said: str) -> None:
    prints(shims, "nvidia-smi", text, status)
    found = probe()
    assert [device.name for device in found] == names
    assert said in found[-1].trouble


@pytest.mark.parametrize("status", [0, 6])
def test_the_tool_of_a_computer_without_its_device(shims: Path, status: int) -> None:
    prints(shims, "nvidia-smi", "No devices were found", status)
    assert probe() == []


def test_a_tool_that_hangs(shims: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_PATIENCE_S", 0.05)
    tool(shims, "nvidia-smi", "exec sleep 60")
    (found,) = probe()
    assert "did not answer" in found.trouble


def test_a_tool_that_cannot_be_started(shims: Path) -> None:
    (shims / "nvidia-smi").write_text("#!/nowhere/sh\n")
    (shims / "nvidia-smi").chmod(0o755)
    (found,) = probe()
    assert "cannot be started" in found.trouble


ROCM = {
    "card0": {"Card Series": "AMD Instinct MI210", "VRAM Total Memory (B)": "68702699520", "GUID": "1"},
    "card1": {"Card series": "AMD Instinct MI210", "VRAM Total Memory (B)": "68702699520"},
    "system": {"Driver version": "6.12.12"},
}


def test_amd_by_rocm_smi(shims: Path) -> None:
    prints(shims, "rocm-smi", f"WARNING: AMD GPU device(s) is/are in a low-power state.\n{json.dumps(ROCM)}")
    assert probe() == [Device("amd", "AMD Instinct MI210", 65520, "6.12.12")] * 2


@pytest.mark.parametrize("wrapped", [False, True])
def test_amd_by_amd_smi(shims: Path, wrapped: bool) -> None:
    gpu = {
        "gpu": 0,
        "asic": {"market_name": "AMD Instinct MI300X", "vendor_id": "0x1002"},
        "vram": {"type": "HBM", "size": {"value": 196592, "unit": "MB"}},
        "driver": {"name": "amdgpu", "version": "6.16.6"},
    }
    prints(shims, "amd-smi", json.dumps({"gpu_data": [gpu]} if wrapped else [gpu]))
    assert probe() == [Device("amd", "AMD Instinct MI300X", 196592, "6.16.6")]


def test_amd_with_one_tool_that_fails(shims: Path) -> None:
    """The other one is asked; what both say wrong is no computer without a device."""
    prints(shims, "amd-smi", "Traceback (most recent call last):\nAmdSmiLibraryException: error code 34", 1)
    prints(shims, "rocm-smi", json.dumps(ROCM))
    assert len(probe()) == 2
    prints(shims, "rocm-smi", "ERROR: GPU[0] : Unable to open drm", 0)
    (found,) = probe()
    assert "cannot be understood" in found.trouble


def xpu_smi(shims: Path, memory_status: str) -> None:
    """Two GPUs, of which the second one's memory has a status."""
    listed = [{"device_id": at, "device_name": "Intel(R) Data Center GPU Max 1100"} for at in (0, 1)]
    parts = ("OK", "OK", "OK", memory_status)
    health = [
        {"device_id": at, "memory": {"status": status}, "power": {"status": "Unknown", "throttle_threshold": -1}}
        for at, status in enumerate(parts[2:])
    ]
    more = {"driver_version": "I915_24.9.4", "memory_physical_size_byte": "51539607552"}
    tool(
        shims,
        "xpu-smi",
        f"""case "$*" in
"discovery -j") echo '{json.dumps({"device_list": listed})}';;
"health -l -j") echo '{json.dumps({"device_list": health})}';;
"discovery -d "*) echo '{json.dumps(more)}';;
*) exit 1;;
esac""",
    )


def test_intel(shims: Path) -> None:
    xpu_smi(shims, "OK")
    assert probe() == [Device("intel", "Intel(R) Data Center GPU Max 1100", 49152, "I915_24.9.4")] * 2
    xpu_smi(shims, "Critical")
    assert [device.trouble for device in probe()] == ["", "memory Critical"]


def test_intel_whose_daemon_is_not_there(shims: Path) -> None:
    prints(shims, "xpu-smi", "Error: XPUM Service Status Error", 1)
    (found,) = probe()
    assert "Service Status Error" in found.trouble


def card(folder: Path, name: str, vendor: str, memory: str = "", driver: str = "") -> None:
    """A card as the kernel shows it."""
    (folder / name).mkdir(parents=True)
    place = folder / f"0000:{'00:02.0' if name == 'card3' else f'3{name[-1]}:00.0'}"
    place.mkdir(exist_ok=True)
    os.symlink(place, folder / name / "device")
    (place / "vendor").write_text(f"{vendor}\n")
    (place / "device").write_text("0x0bda\n")
    if memory:
        (folder / name / "lmem_total_bytes").write_text(f"{memory}\n")
    if driver:
        (folder / driver).mkdir(exist_ok=True)
        os.symlink(folder / driver, place / "driver")


def test_what_the_kernel_knows_without_any_tool(shims: Path, tmp_path: Path) -> None:
    card(tmp_path / "drm", "card0", "0x8086", "51539607552", "i915")
    card(tmp_path / "drm", "card0-DP-1", "0x8086")
    card(tmp_path / "drm", "card1", "0x1002")
    card(tmp_path / "drm", "card2", "0x10de", driver="nouveau")
    card(tmp_path / "drm", "card3", "0x8086", driver="i915")
    assert probe() == [
        Device("amd", "GPU 0x0bda", trouble="no driver has taken it"),
        Device("intel", "GPU 0x0bda", 49152, "i915"),
    ]


def test_tpu_chips(shims: Path, tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "accel").mkdir()
    for name in ("accel0", "accel1", "accel2", "accel3"):
        (tmp_path / "dev" / name).touch()
    assert probe() == [Device("google", "TPU chip")] * 4


def test_groups_that_open_devices(shims: Path, tmp_path: Path) -> None:
    """Those of the nodes that can be opened by a group, never root's."""
    (tmp_path / "dev" / "dri").mkdir(parents=True)
    for name, mode in (("dri/renderD128", 0o660), ("dri/renderD129", 0o600), ("dri/card0", 0o660), ("kfd", 0o666)):
        (tmp_path / "dev" / name).touch()
        (tmp_path / "dev" / name).chmod(mode)
    if os.geteuid() != 0:
        pytest.skip("files of another group can only be had as root")
    assert devices.groups() == []
    for name, group in (("dri/renderD128", 992), ("dri/renderD129", 993), ("dri/card0", 44)):
        os.chown(tmp_path / "dev" / name, 0, group)
    assert devices.groups() == [992]
