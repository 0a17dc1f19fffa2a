"""What the agent is started with."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Options:
    """The command line. `uid` is the user for the repository's code (None: our own); caches are shared by leases.

    `proof_file` holds what the lease is claimed with, and `proof` says what that is: "token" or "identity".
    """

    server: str
    lease: str
    proof_file: Path
    folder: Path
    cache: Path
    deadline_at: float
    member: int = 0
    proof: str = "token"
    uid: int | None = None
    trusted: bool = False
    base_environment: Path | None = None
    environment: Mapping[str, str] | None = None
    checkout_patience_s: float = 60.0
    silence_s: float = 900.0
    grace_s: float = 60.0
    kill_after_s: float = 10.0


def parse(words: list[str]) -> Options:
    """Read the command line; a wrong one ends the program with a sentence, as argparse does."""
    parser = argparse.ArgumentParser(prog="agent", description="Run the work of one lease and report to the bot.")
    parser.add_argument("--server", required=True, help="address of the bot, such as https://bench.example.org")
    parser.add_argument("--lease", required=True, help="id of the lease")
    proofs = parser.add_mutually_exclusive_group(required=True)
    proofs.add_argument("--token-file", type=Path, help="file with the token to claim the lease with")
    proofs.add_argument("--identity-file", type=Path, help="file with the cloud's own proof of which machine this is")
    parser.add_argument("--folder", required=True, type=Path, help="where this lease works; removed at its end")
    parser.add_argument("--deadline", required=True, type=float, help="seconds since the epoch when all must be over")
    parser.add_argument("--cache", type=Path, help="folder for inputs, environments and interpreters to share")
    parser.add_argument("--member", type=int, default=0, help="which of the hosts of this lease this is, from 0")
    parser.add_argument("--uid", type=int, help="user id for the repository's code, when this program is root")
    parser.add_argument("--trusted", action="store_true", help="the code may fill the shared cache of environments")
    parser.add_argument("--base-environment", type=Path, help="virtual environment that lies below every side's own")
    parser.add_argument("--environment-file", type=Path, help="JSON object of variables for the repository's code")
    parser.add_argument("--checkout-patience-s", type=float, default=60.0, help="how long a commit may be missing")
    parser.add_argument("--silence-s", type=float, default=900.0, help="how long to wait for a silent bot when idle")
    parser.add_argument("--grace-s", type=float, default=60.0, help="time after the deadline to ship what is there")
    parser.add_argument("--kill-after-s", type=float, default=10.0, help="time between asking to end and killing")
    found = parser.parse_args(words)
    environment = json.loads(found.environment_file.read_text()) if found.environment_file else {}
    folder = found.folder.resolve()
    return Options(
        server=found.server.rstrip("/"),
        lease=found.lease,
        proof_file=found.identity_file or found.token_file,
        proof="identity" if found.identity_file else "token",
        folder=folder,
        cache=(found.cache or folder / "cache").resolve(),
        deadline_at=found.deadline,
        member=found.member,
        uid=found.uid,
        trusted=found.trusted,
        base_environment=found.base_environment,
        environment=environment,
        checkout_patience_s=found.checkout_patience_s,
        silence_s=found.silence_s,
        grace_s=found.grace_s,
        kill_after_s=found.kill_after_s,
    )
