"""The machine as the steps of a lease see it: folders for the code, its clean environment, and sweeping up after it."""

from __future__ import annotations

import io
import os
import re
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path

from runners.agent import processes
from runners.agent.commands import Command, Ended, Stop, execute, shell_words
from runners.agent.logs import LogCleaner, LogKeeper
from runners.agent.options import Options


class StepError(Exception):
    """A step ended a run before it could begin. `reason` is one of `protocol.REASONS`, `log` what was printed."""

    def __init__(self, reason: str, sentence: str, log: bytes = b"") -> None:
        super().__init__(sentence)
        self.reason = reason
        self.sentence = sentence
        self.log = log


class Host:
    """Where and as whom the repository's code runs. Folder names are random: they say nothing of what lies there."""

    def __init__(self, options: Options, stop: Stop) -> None:
        self.options = options
        self.stop = stop
        self.uid = options.uid
        self.masked: tuple[str, ...] = ()
        self.state = options.folder / "state"
        self.work = options.folder / "work"
        for folder, mode in ((options.folder, 0o711), (self.state, 0o700), (self.work, 0o711), (options.cache, 0o711)):
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(mode)

    def new_folder(self, *names: str) -> Path:
        """A fresh folder that only the code's user can enter, with folders `names` in it."""
        folder = self.work / secrets.token_hex(4)
        folder.mkdir(mode=0o700)
        for path in (folder, *(folder / name for name in names)):
            path.mkdir(mode=0o700, exist_ok=True)
            if self.uid is not None:
                os.chown(path, self.uid, self.uid)
        return folder

    def variables(self, folder: Path) -> dict[str, str]:
        """The clean environment: `folder` has home/ and tmp/. What the operator adds for this backend comes last."""
        return {
            "HOME": str(folder / "home"),
            "TMPDIR": str(folder / "tmp"),
            "LANG": "C.UTF-8",
            "USER": "bench",
            "LOGNAME": "bench",
            # the log is to be read while the command runs, and to be whole when it is killed
            "PYTHONUNBUFFERED": "1",
            **(self.options.environment or {}),
        }

    def command(self, words: tuple[str, ...], folder: Path, variables: Mapping[str, str], timeout_s: float) -> Command:
        """A command of the repository's, as its user."""
        return Command(words, folder, variables, timeout_s, self.uid, self.options.kill_after_s)

    def shell(self, line: str, folder: Path, variables: Mapping[str, str], timeout_s: float) -> tuple[Ended, bytes]:
        """Run a shell line of the repository's; returns its end and its cleaned log."""
        file = io.BytesIO()
        keeper = LogKeeper(file)
        cleaner = LogCleaner(self.masked)
        command = self.command(shell_words(line), folder, variables, timeout_s)
        ended = execute(command, self.stop, lambda data: keeper.add(cleaner.feed(data)), lambda: 0)
        keeper.add(cleaner.feed(b"", final=True))
        keeper.close()
        return ended, file.getvalue()

    def ask(self, words: Iterable[str], folder: Path, variables: Mapping[str, str], timeout_s: float = 60.0) -> bytes:
        """Output of a short command as the code's user; empty when it fails."""
        said: list[bytes] = []
        command = self.command(tuple(words), folder, variables, timeout_s)
        ended = execute(command, self.stop, said.append, lambda: 0)
        return b"" if ended.exit else b"".join(said)

    def sweep(self) -> int:
        """End everything that the code left running; returns how many processes that were. Nothing of ours may run."""
        count = 0 if self.uid is None else processes.kill_all_of(self.uid)
        return count + processes.kill_below(os.getpid())


def memory_kills() -> int:
    """How often the kernel has killed in this program's control group for want of memory; 0 where it does not say."""
    try:
        lines = Path("/proc/self/cgroup").read_text().split()
    except OSError:
        return 0
    total = 0
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            places = [f"/sys/fs/cgroup{path}/memory.events"]
        elif "memory" in controllers.split(","):
            places = [f"/sys/fs/cgroup/memory{path}/memory.oom_control", "/sys/fs/cgroup/memory/memory.oom_control"]
        else:
            continue
        for place in places:
            try:
                text = Path(place).read_text()
            except OSError:
                continue
            total += sum(int(number) for number in re.findall(r"^oom_kill (\d+)$", text, re.MULTILINE))
            break
    return total
