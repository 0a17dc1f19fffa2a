"""One training command: what it is given, and why it ended."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from runners import protocol
from runners.agent.commands import Ended, execute, shell_words
from runners.agent.device_memory import DeviceMemory
from runners.agent.host import Host, memory_kills
from runners.agent.logs import LogCleaner, LogKeeper
from runners.agent.sides import Side
from runners.agent.work import RunWork

_OUT_OF_MEMORY = re.compile(
    r"\b(OutOfMemoryError|MemoryError|OutOfMemory|std::bad_alloc)\b|out of memory|RESOURCE_EXHAUSTED"
    r"|Cannot allocate memory",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Result:
    """How a run ended, in the words of `protocol.EVENT_RUN_ENDED`."""

    exit: int | None
    seconds: float
    reason: str
    sentence: str
    imported: str = ""
    peak_rss_bytes: int = 0
    log_tail: str = ""
    peak_device_bytes: int | None = None
    device_trouble: str = ""
    phases: Mapping[str, float] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Attempt:
    """A run about to be made: on which side, with which inputs by name, and where its logs/ and checkpoints/ go.

    One that `resumes` has the checkpoints of an earlier machine there already; `together` are the variables for several
    devices or hosts. `before` are seconds by phase, of what has come before it.
    """

    run: RunWork
    side: Side
    inputs: Mapping[str, Path]
    outputs: Path
    resumes: bool = False
    together: Mapping[str, str] = field(default_factory=dict)
    before: Mapping[str, float] = field(default_factory=dict)


def train(host: Host, attempt: Attempt, log: LogKeeper) -> Result:
    """Run the command to its end."""
    run, side = attempt.run, attempt.side
    try:
        line = _line(run, attempt.inputs)
    except protocol.PlaceholderError as error:
        return Result(None, 0.0, "user_error", f"the command cannot be filled in: {error}", side.imported)
    command = host.command(shell_words(line), side.tree, _variables(host, attempt), run.timeout_s)
    cleaner = LogCleaner(host.masked)
    kills = memory_kills()
    memory = DeviceMemory()

    def sweep() -> int:
        # the watching of the devices is not to be taken for something that the command left behind
        memory.peak()
        return host.sweep()

    try:
        ended = execute(command, host.stop, lambda data: log.add(cleaner.feed(data)), sweep)
    except OSError as error:
        memory.peak()
        return Result(None, 0.0, "agent_error", f"the command could not be started: {error.strerror}", side.imported)
    log.add(cleaner.feed(b"", final=True))
    tail = log.last_lines()
    if ended.left_behind:
        log.add([f"[benchbot] {ended.left_behind} processes that the command left behind were ended"])
    reason, sentence = judge(ended, tail, memory_kills() > kills, run.timeout_s)
    peak, trouble = memory.peak()
    result = Result(ended.exit, ended.seconds, reason, sentence, side.imported, ended.peak_rss_bytes, tail)
    return replace(
        result, peak_device_bytes=peak, device_trouble=trouble, phases={**attempt.before, "run": ended.seconds}
    )


def _line(run: RunWork, inputs: Mapping[str, Path]) -> str:
    words = {**run.words, **{f"inputs.{name}": str(path) for name, path in inputs.items()}}
    # what the repository wrote as args may name inputs and parameters itself
    raw = {name: protocol.fill(text, words) for name, text in run.raw.items()}
    return protocol.fill(run.command, words, raw)


def _variables(host: Host, attempt: Attempt) -> dict[str, str]:
    inputs = {re.sub("[^A-Z0-9]", "_", name.upper()): str(path) for name, path in attempt.inputs.items()}
    checkpoints = str(attempt.outputs / protocol.CHECKPOINT_FOLDER)
    return {
        **host.variables(attempt.outputs),
        **attempt.run.env,
        **attempt.together,
        **attempt.side.variables,
        **{f"BENCHBOT_INPUT_{name}": path for name, path in inputs.items()},
        "BENCHBOT_LOGDIR": str(attempt.outputs / protocol.LOG_FOLDER),
        "BENCHBOT_CHECKPOINTS": checkpoints,
        **({"BENCHBOT_RESUME_DIR": checkpoints} if attempt.resumes else {}),
    }


def judge(ended: Ended, tail: str, memory_killed: bool, timeout_s: float) -> tuple[str, str]:
    """Reason and sentence of an end: timeout, cancelled, oom, user_error, or ("", "") for success."""
    if ended.cause == "timeout":
        return "timeout", f"the command took longer than {timeout_s:g} s"
    if ended.cause == "deadline":
        return "timeout", "the deadline of the lease came before the command ended"
    if ended.cause:
        return "cancelled", f"the command was stopped: {ended.cause}"
    if ended.exit == 0:
        return "", ""
    if ended.exit == 137 and memory_killed:
        return "oom", "the kernel killed the command for want of memory"
    if _OUT_OF_MEMORY.search(tail):
        return "oom", "the command ran out of memory"
    if ended.exit > 128:
        return "user_error", f"the command was ended by signal {ended.exit - 128}"
    return "user_error", f"the command ended with status {ended.exit}"
