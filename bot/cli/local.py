"""Settings for a bot that lives for one command: loopback, a port that is free now, hardware `local` alone."""

import os
import socket
from dataclasses import replace
from functools import cache
from pathlib import Path

from bot.settings import Settings, load_settings


def free_port() -> int:
    """A port on loopback that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@cache
def local_settings(folder: Path, port: int = 0) -> Settings:
    """Defaults below `folder`, with `[local]` of the environment's BENCHBOT_ variables; no GitHub."""
    environment = {name: value for name, value in os.environ.items() if name.startswith("BENCHBOT_LOCAL_")}
    port = port or free_port()
    loaded = load_settings({**environment, "BENCHBOT_DATA_FOLDER": str(folder), "BENCHBOT_PORT": str(port)}, None)
    if isinstance(loaded, tuple):
        raise SystemExit("\n".join(f"benchbot: {fault.where}: {fault.sentence}" for fault in loaded))
    # the code is the caller's own
    options = {**loaded.backend_options("local"), "trust_all": "true"}
    return replace(loaded, backends={**loaded.backends, "local": options})
