"""The land of the stories: a repository with a history and one open pull request, its people, the App installed."""

import asyncio
import shutil
import subprocess
import tempfile
from collections.abc import Coroutine
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from bot.sandbox.registering import Registration
from bot.sandbox.state import App, Pull, Repository
from bot.sandbox.world import Sandbox, commit_files
from bot.store.database import Database
from bot.store.migrate import migrate

T = TypeVar("T")
FULL_NAME = "acme/vision"
CONFIG = b"""\
version: 1
setup: pip install -e .
benchmarks:
  resnet50:
    description: ResNet-50, ten epochs
    run: python train.py --model resnet50 --seed {seed}
    timeout: 1h
    groups: [classification]
    metrics:
      accuracy: {tag: validation/accuracy, pick: last, better: higher, unit: pp, tolerance: 2, noise: 0.2, gate: true}
      step_time: {tag: train/seconds_per_step, better: lower, unit: s, tolerance: 10%, noise: 1%, gate: true}
  bert:
    run: python train.py --model bert --seed {seed}
    stop_diverged: true
    groups: [text]
    metrics:
      accuracy: {tag: validation/accuracy, pick: last, better: higher, unit: pp, tolerance: 2, noise: 0.2, gate: true}
  smoke:
    run: python -m pytest -m smoke
on_approval: {benchmarks: "@classification", on: local}
"""
PERMISSIONS = {"contents": "read", "pull_requests": "write", "issues": "write", "checks": "write"}
EVENTS = (
    "issue_comment",
    "pull_request",
    "pull_request_review",
    "check_run",
    "check_suite",
    "push",
    "release",
    "repository",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Land:
    """What stands when a story begins."""

    app: App
    repository: Repository
    pull: Pull

    @classmethod
    async def settle(cls, sandbox: Sandbox, folder: Path, webhook_url: str) -> "Land":
        """Build it in a sandbox that serves."""
        bare = folder / "vision.git"
        shutil.copytree(_history(), bare)
        repository = sandbox.add_repository(FULL_NAME, bare)
        told = Registration(
            name="benchbot", permissions=PERMISSIONS, events=EVENTS, webhook_url=webhook_url, private_key=_private_key()
        )
        app = sandbox.add_app("acme", told)
        sandbox.install(app, "acme")
        for login, right in (("maya", "maintain"), ("ada", "write"), ("tom", "triage")):
            sandbox.permit(repository, login, right)
        sandbox.add_account("sam")
        pull = await sandbox.open_pull(repository, "ada", "faster", "Make it faster", "It is faster now.")
        return cls(app=app, repository=repository, pull=pull)

    @staticmethod
    def database() -> Path:
        """An empty SQLite file with all tables, made once."""
        return _database()


@cache
def _scratch() -> Path:
    return Path(tempfile.mkdtemp(prefix="benchbot-tests-"))


@cache
def _history() -> Path:
    """Two commits on main, and a branch that left main after the first."""
    bare = _scratch() / "vision.git"
    _git("init", "--quiet", "--bare", "--initial-branch=main", str(bare))
    tree = subprocess.run(["git", "--git-dir", str(bare), "mktree"], input=b"", capture_output=True, check=True)
    root = _git("--git-dir", str(bare), *_AUTHOR, "commit-tree", tree.stdout.decode().strip(), "-m", "Begin")
    files = {".github/benchmark.yml": CONFIG, "train.py": b"print('training')\n", "README.md": b"# vision\n"}
    base = _run(commit_files(bare, root, files, author="maya"))
    head = _run(commit_files(bare, base, {"train.py": b"print('faster')\n"}, author="ada"))
    main = _run(commit_files(bare, base, {"README.md": b"# vision\n\nModels.\n"}, author="maya"))
    _git("--git-dir", str(bare), "update-ref", "refs/heads/main", main)
    _git("--git-dir", str(bare), "update-ref", "refs/heads/faster", head)
    return bare


_AUTHOR = ("-c", "user.name=maya", "-c", "user.email=maya@localhost")


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], capture_output=True, check=True).stdout.decode().strip()


def _run(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine, also where a loop is running already."""
    box: list[T] = []
    thread = Thread(target=lambda: box.append(asyncio.run(coroutine)))
    thread.start()
    thread.join()
    return box[0]


@cache
def _database() -> Path:
    path = _scratch() / "empty.sqlite"

    async def make() -> None:
        database = Database(f"sqlite+aiosqlite:///{path}")
        await migrate(database)
        async with database.engine.connect() as connection:
            await connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        await database.close()

    _run(make())
    return path


@cache
def _private_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    kind = serialization.PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(serialization.Encoding.PEM, kind, serialization.NoEncryption()).decode()
