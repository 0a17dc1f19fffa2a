"""How much memory the devices hold while a command runs: asked of nvidia-smi, or of the kernel for AMD's cards.

What the devices held before is not counted. What is asked once a second cannot see a shorter peak; frameworks keep what
they have taken, so theirs stay. Whatever a tool may print, the answer is a number or a sentence that says why not.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from runners.agent import devices

# a call costs some hundredths of a second of one core
EVERY_S = 1.0
_PATIENCE_S = 5.0
_MOST_BYTES = 64 * 1024
_MIB = 2**20
_USED = "card[0-9]*/device/mem_info_vram_used"
_QUERY = ("--query-gpu=index,memory.used", "--format=csv,noheader,nounits")
_LINE = re.compile(r"\s*(\d{1,4})\s*,\s*(\d{1,9})\s*", re.ASCII)
# an answer now and then may be lost; more than this share and the peak may have been missed
_MOST_LOST = 0.5


class Peak(NamedTuple):
    """The most bytes that one device held beyond what it held before; None with a sentence about why."""

    most_bytes: int | None
    trouble: str = ""


class LostError(Exception):
    """One answer that is none; the text is for people."""


class DeviceMemory:
    """Looks at the devices from its creation until `peak` is asked for."""

    def __init__(self) -> None:
        self._ask = _source()
        self._before: Mapping[str, int] = {}
        self._most = 0
        self._answers = 0
        self._lost = 0
        self._trouble = ""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        if self._ask is None:
            self._trouble = "this machine has no device whose memory can be asked for"
            return
        try:
            self._before = self._ask()
        except LostError as error:
            self._trouble = str(error)
            return
        self._thread.start()

    def peak(self) -> Peak:
        """Stop looking, and say what was seen. No process of ours is left."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._answers and self._lost <= _MOST_LOST * (self._answers + self._lost):
            return Peak(self._most)
        return Peak(None, self._trouble or "the command ended before the devices could be asked")

    def _watch(self) -> None:
        while not self._over.is_set() and self._ask is not None:
            try:
                now = self._ask()
            except LostError as error:
                self._trouble = str(error)
                self._lost += 1
            else:
                self._answers += 1
                # a device that was not there before held nothing of which we know
                beyond = [held - self._before.get(name, held) for name, held in now.items()]
                self._most = max([self._most, *beyond])
            self._over.wait(EVERY_S)


def _source() -> Callable[[], Mapping[str, int]] | None:
    if devices.has("nvidia-smi"):
        return lambda: read(_answer("nvidia-smi", *_QUERY))
    return _cards if any(devices.DRM.glob(_USED)) else None


def _cards() -> Mapping[str, int]:
    """What the kernel says of AMD's cards. Raises LostError."""
    found = {}
    for path in devices.DRM.glob(_USED):
        try:
            text = path.read_text().strip()
        except OSError as error:
            raise LostError(f"the kernel does not say what a card holds: {error.strerror}") from None
        if not re.fullmatch("[0-9]{1,17}", text):
            raise LostError("the kernel does not say what a card holds")
        found[str(path)] = int(text)
    return found


def read(text: str) -> Mapping[str, int]:
    """Bytes in use by device. Raises LostError for anything but one line a device, `index, MiB`."""
    found = {}
    for line in filter(str.strip, text.splitlines()):
        match = _LINE.fullmatch(line)
        if match is None:
            raise LostError(f"nvidia-smi says: {_plain(line)}")
        found[match.group(1)] = int(match.group(2)) * _MIB
    if not found:
        raise LostError("nvidia-smi says nothing")
    return found


def _plain(text: str) -> str:
    return "".join(letter for letter in text if letter.isprintable()).strip()[:200]


def _answer(tool: str, *words: str) -> str:
    """What a tool prints, within its time and up to a length. Raises LostError."""
    program = shutil.which(tool, path=devices.tool_path()) or tool
    environment = {"PATH": devices.tool_path(), "LANG": "C", "HOME": "/"}
    try:
        process = subprocess.Popen(
            (program, *words),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
    except OSError as error:
        raise LostError(f"{tool} cannot be started: {error.strerror}") from None
    try:
        said = _until_its_end(process, tool)
    finally:
        process.kill()
        if process.stdout is not None:
            process.stdout.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            # one that hangs inside a driver cannot even be killed
            process.wait(1.0)
    return said


def _until_its_end(process: subprocess.Popen[bytes], tool: str) -> str:
    pipe = process.stdout
    said = b""
    until = time.monotonic() + _PATIENCE_S
    while pipe is not None:
        ready, _, _ = select.select([pipe], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            raise LostError(f"{tool} did not answer within {_PATIENCE_S:g} s")
        data = os.read(pipe.fileno(), _MOST_BYTES)
        if not data:
            break
        said += data
        if len(said) > _MOST_BYTES:
            raise LostError(f"{tool} says too much")
    return said.decode("utf-8", "replace")
