"""What sub-commands share: settings or a clear exit, logs as JSON lines, and waiting for the signal to stop."""

import asyncio
import json
import logging
import os
import signal
import sys
from pathlib import Path

from bot.settings import Settings, load_settings

CONFIG = "benchbot.toml"


def settings_or_exit(*, needs_github: bool = False) -> Settings:
    """Settings from the environment and benchbot.toml; prints every fault and exits with 2 when there is one."""
    path = Path(os.environ.get("BENCHBOT_CONFIG", CONFIG))
    loaded = load_settings(os.environ, path.read_text() if path.is_file() else None)
    faults = [f"{fault.where}: {fault.sentence}" for fault in loaded] if isinstance(loaded, tuple) else []
    if not isinstance(loaded, tuple) and needs_github and not loaded.app_id:
        faults.append("there is no GitHub App yet: `benchbot setup` registers one, `benchbot demo` needs none")
    if isinstance(loaded, tuple) or faults:
        for fault in faults:
            print(f"benchbot: {fault}", file=sys.stderr)
        raise SystemExit(2)
    return loaded


async def until_stopped() -> None:
    """Returns at SIGTERM or SIGINT."""
    stop = asyncio.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signum, stop.set)
    await stop.wait()


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


def log_to_stderr(level: int = logging.INFO) -> None:
    """One JSON object a line."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Json())
    logging.basicConfig(level=level, handlers=[handler], force=True)
