"""Which accelerators this computer has, and whether they are well: asked of each vendor's tool, else of the kernel.

A tool that fails, hangs or says what cannot be understood is a device that is not well: it must not look like a
computer without one.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_DEV = Path("/dev")
DRM = Path("/sys/class/drm")
_NODES = ("dri/renderD*", "kfd", "accel[0-9]*", "accel/accel*", "vfio/[0-9]*")
_PATIENCE_S = 30.0
_VENDORS = {"cuda": "nvidia", "rocm": "amd", "xpu": "intel", "tpu": "google"}
_KINDS = {"0x1002": "amd", "0x8086": "intel"}
# where Intel's processors have the graphics that nobody trains on
_INTEGRATED = "0000:00:02.0"
_PLACES = ":/usr/local/bin:/opt/rocm/bin:/usr/sbin"
# what nvidia-smi writes instead of a value, where that is a failure and not a value that this model lacks
_NVIDIA_TROUBLE = re.compile(r"unknown error|\berr!|reset required|requires reset|is lost|insufficient|\bfail", re.I)
_NVIDIA_FIELDS = ("name", "memory.total", "driver_version", "ecc.errors.uncorrected.volatile.total")


@dataclass(frozen=True)
class Device:
    """One accelerator. `trouble` is empty while it is well; what is not known is empty or 0."""

    vendor: str
    name: str
    memory_mb: int = 0
    driver: str = ""
    trouble: str = ""


class _ToolError(Exception):
    """A tool that did not do what it is for; the text is for people."""


def probe() -> list[Device]:
    """All accelerators, by vendor."""
    return [*_nvidia(), *_amd(), *_intel(), *_tpu()]


def groups() -> list[int]:
    """Groups that may open this computer's accelerators, such as `render`: a lease's own user needs them."""
    found = set()
    for pattern in _NODES:
        for path in _DEV.glob(pattern):
            info = path.stat()
            # the group of root would open far more
            if info.st_gid and info.st_mode & 0o060 == 0o060 and not path.is_dir():
                found.add(info.st_gid)
    return sorted(found)


def lack(kind: str, count: int) -> str:
    """What is wrong when fewer than `count` devices of a kind (cuda, rocm, xpu, tpu) are well; empty if nothing is.

    A computer that shows none at all, neither ill ones, has no tool to ask: then the frameworks must tell.
    """
    found = [device for device in probe() if device.vendor == _VENDORS.get(kind)]
    troubles = [device.trouble for device in found if device.trouble]
    if not found or len(found) - len(troubles) >= count:
        return ""
    told = f": {'; '.join(dict.fromkeys(troubles))}" if troubles else ""
    return f"{len(found) - len(troubles)} of {count} {kind} devices are well{told}"


def _nvidia() -> Iterator[Device]:
    if not has("nvidia-smi"):
        return
    try:
        text = _say("nvidia-smi", f"--query-gpu={','.join(_NVIDIA_FIELDS)}", "--format=csv,noheader,nounits")
    except _ToolError as error:
        yield Device("nvidia", "GPU", trouble=str(error))
        return
    for line in filter(str.strip, text.splitlines()):
        if "no devices were found" in line.lower():
            continue
        fields = [field.strip() for field in line.split(",")]
        # it may well end with 0 and print a failure in place of a device, or of one of its values
        if len(fields) != len(_NVIDIA_FIELDS) or _NVIDIA_TROUBLE.search(line):
            yield Device("nvidia", "GPU", trouble=f"nvidia-smi says: {line.strip()[:200]}")
            continue
        name, memory, driver, errors = fields
        trouble = f"{errors} memory errors that could not be corrected" if _number(errors) else ""
        yield Device("nvidia", name, _number(memory), driver, trouble)


def _amd() -> Iterator[Device]:
    tools = (("amd-smi", _amd_smi), ("rocm-smi", _rocm_smi))
    yield from _by_tools("amd", [(tool, read) for tool, read in tools if has(tool)])


def _amd_smi() -> Iterator[Device]:
    said = _json("amd-smi", "static", "--asic", "--vram", "--driver", "--json")
    listed = said.get("gpu_data", []) if isinstance(said, dict) else said
    for gpu in listed:
        size = gpu["vram"]["size"]
        memory = _number(str(size["value"] if isinstance(size, dict) else size))
        yield Device("amd", str(gpu["asic"]["market_name"]), memory, str(gpu.get("driver", {}).get("version", "")))


def _rocm_smi() -> Iterator[Device]:
    said = _json("rocm-smi", "--showproductname", "--showmeminfo", "vram", "--showdriverversion", "--json")
    driver = str(said.get("system", {}).get("Driver version", ""))
    for key, card in said.items():
        if not key.startswith("card"):
            continue
        # the spelling of its keys has changed from one version to the next
        about = {name.lower(): str(value) for name, value in card.items()}
        name = about.get("card series", about.get("card model", "GPU"))
        yield Device("amd", name, _number(about.get("vram total memory (b)", "")) // 2**20, driver)


def _intel() -> Iterator[Device]:
    yield from _by_tools("intel", [("xpu-smi", _xpu_smi)] if has("xpu-smi") else [])


def _xpu_smi() -> Iterator[Device]:
    ill = {}
    for each in _json("xpu-smi", "health", "-l", "-j")["device_list"]:
        parts = {key: part["status"] for key, part in each.items() if isinstance(part, dict) and "status" in part}
        ill[each["device_id"]] = ", ".join(f"{key} {said}" for key, said in parts.items() if _is_ill(str(said)))
    for each in _json("xpu-smi", "discovery", "-j")["device_list"]:
        number = each["device_id"]
        more = _json("xpu-smi", "discovery", "-d", str(number), "-j")
        memory = _number(str(more.get("memory_physical_size_byte", ""))) // 2**20
        name, driver = str(each["device_name"]), str(more.get("driver_version", ""))
        yield Device("intel", name, memory, driver, ill.get(number, ""))


def _is_ill(status: str) -> bool:
    return status.lower() in ("warning", "critical")


def _tpu() -> Iterator[Device]:
    for path in sorted(_DEV.glob("accel[0-9]*")):
        if not path.is_dir():
            yield Device("google", "TPU chip")


def _by_tools(vendor: str, tools: list[Any]) -> Iterator[Device]:
    """What the first tool says that works; without any tool, what the kernel knows of this vendor's cards."""
    failed = ""
    for tool, read in tools:
        try:
            yield from list(read())
        except _ToolError as error:
            failed = str(error)
        except (KeyError, TypeError, ValueError, AttributeError):
            failed = f"what {tool} says cannot be understood"
        else:
            return
    if failed:
        yield Device(vendor, "GPU", trouble=failed)
    else:
        yield from _cards(vendor)


def _cards(vendor: str) -> Iterator[Device]:
    for path in sorted(DRM.glob("card[0-9]*")):
        place = path / "device"
        if "-" in path.name or _KINDS.get(_read(place / "vendor")) != vendor:
            continue
        if os.path.basename(os.path.realpath(place)) == _INTEGRATED:
            continue
        memory = (
            max(_number(_read(size)) for size in (place / "mem_info_vram_total", path / "lmem_total_bytes")) // 2**20
        )
        driver = os.path.basename(os.path.realpath(place / "driver")) if (place / "driver").exists() else ""
        trouble = "" if driver else "no driver has taken it"
        yield Device(vendor, f"GPU {_read(place / 'device')}".strip(), memory, driver, trouble)


def has(tool: str) -> bool:
    """Whether a vendor's tool is installed."""
    return shutil.which(tool, path=tool_path()) is not None


def tool_path() -> str:
    """Where vendors' tools may lie."""
    return os.environ.get("PATH", os.defpath) + _PLACES


def _say(tool: str, *words: str) -> str:
    """What a tool prints. Raises _ToolError."""
    environment: Mapping[str, str] = {"PATH": tool_path(), "LANG": "C", "HOME": "/"}
    program = shutil.which(tool, path=tool_path()) or tool
    try:
        process = subprocess.Popen(
            [program, *words],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except OSError as error:
        raise _ToolError(f"{tool} cannot be started: {error.strerror}") from None
    try:
        out, err = (said.decode("utf-8", "replace") for said in process.communicate(timeout=_PATIENCE_S))
    except subprocess.TimeoutExpired:
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            # one that hangs inside a driver cannot even be killed; we go on without it
            process.communicate(timeout=1.0)
        raise _ToolError(f"{tool} did not answer within {_PATIENCE_S:g} s") from None
    if process.returncode and "no devices were found" not in (out + err).lower():
        last = next((line.strip() for line in reversed((err + out).splitlines()) if line.strip()), "nothing")
        raise _ToolError(f"{tool} ended with status {process.returncode} and said: {last[:200]}")
    return out


def _json(tool: str, *words: str) -> Any:
    """The JSON in what a tool prints: warnings may stand before it. Raises _ToolError and ValueError."""
    text = _say(tool, *words)
    if "no device" in text.lower():
        return {"device_list": []}
    begins = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=0)
    return json.loads(text[begins:])


def _number(text: str) -> int:
    """The whole number that a text begins with, 0 without one."""
    found = re.match(r"\s*(\d+)", text)
    return int(found.group(1)) if found else 0


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
