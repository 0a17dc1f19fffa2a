"""One commit of one repository, checked out: no history, no submodules, no hooks, no credential kept."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from pathlib import Path

from runners.agent import trees
from runners.agent.commands import Command, Stop, execute
from runners.agent.work import Source

# git's words for a bot that is being restarted; everything else is about the commit
_UNREACHABLE = re.compile(
    r"Could not resolve|[Ff]ailed to connect|Couldn't connect|Connection (refused|reset|timed out)|Empty reply"
    r"|early EOF|unexpected disconnect|remote end hung up|returned error: (408|425|429|5\d\d)|RPC failed"
)
_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 5.0
_COMMIT = re.compile(r"[0-9a-f]{40}\Z")


class CheckoutError(Exception):
    """The commit cannot be had; the text is for people."""


class Git:
    """Runs git: fetches as this program's own user with the bot's credential, checks out as the code's user."""

    def __init__(self, folder: Path, stop: Stop, *, server: str, credential: str, uid: int | None) -> None:
        """`folder` is private to this program; `server` is the only address that the credential is sent to."""
        folder.mkdir(parents=True, exist_ok=True)
        # a repository on this disk may belong to somebody else; the operator named it
        (folder / ".gitconfig").write_text("[safe]\n\tdirectory = *\n")
        self._stop = stop
        self._uid = uid
        self._plain = {
            "PATH": os.defpath + ":/usr/local/bin",
            "HOME": "/nonexistent",
            "LC_ALL": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_LFS_SKIP_SMUDGE": "1",
        }
        settings = {
            f"http.{server}/.extraHeader": f"Authorization: Bearer {credential}",
            "http.followRedirects": "false",
            "credential.helper": "",
        }
        self._fetching = {**self._plain, "HOME": str(folder), **_as_environment(settings)}

    def check_out(self, source: Source, folder: Path, patience_s: float) -> None:
        """Put the commit into `folder`, which becomes the code's own. Raises CheckoutError.

        A commit that the repository does not have yet is asked for again during `patience_s`; a repository that
        cannot be reached, until everything stops.
        """
        if not _COMMIT.match(source.commit):
            raise CheckoutError(f"{source.commit!r} is not a full commit id")
        folder.mkdir(parents=True)
        self._git(folder, self._fetching, "init", "-q", "--template=", ".")
        self._fetch(source, folder, patience_s)
        (folder / ".git" / "FETCH_HEAD").unlink()
        trees.hand_over(folder, self._uid)
        code, text = self._git(folder, self._plain, "checkout", "-q", "--detach", source.commit, uid=self._uid)
        if code:
            raise CheckoutError(f"git could not check out {source.commit[:12]}: {_last_line(text)}")
        _, head = self._git(folder, self._plain, "rev-parse", "HEAD", uid=self._uid)
        if head.strip() != source.commit:
            raise CheckoutError(f"the checkout is at {head.strip()[:12]}, not at {source.commit[:12]}")

    def _fetch(self, source: Source, folder: Path, patience_s: float) -> None:
        words = ("fetch", "-q", "--depth", "1", "--no-tags", "--no-recurse-submodules", source.url, source.commit)
        until = time.monotonic() + patience_s
        pause = _FIRST_PAUSE_S
        while True:
            code, text = self._git(folder, self._fetching, *words)
            if not code:
                return
            if not _UNREACHABLE.search(text) and time.monotonic() + pause > until:
                raise CheckoutError(f"commit not available: {source.commit[:12]} ({_last_line(text)})")
            with self._stop.changed:
                if self._stop.changed.wait_for(lambda: bool(self._stop.reason), pause):
                    raise CheckoutError(f"stopped before {source.commit[:12]} was there")
            pause = min(pause * 2, _LONGEST_PAUSE_S)

    def _git(
        self, folder: Path, environment: Mapping[str, str], *words: str, uid: int | None = None
    ) -> tuple[int, str]:
        said: list[bytes] = []
        line = ("git", "-c", "core.hooksPath=/dev/null", "-c", "advice.detachedHead=false", *words)
        command = Command(line, folder, environment, timeout_s=3600.0, uid=uid)
        ended = execute(command, self._stop, said.append, lambda: 0)
        return ended.exit, b"".join(said).decode("utf-8", "replace")


def _as_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings for git that no command line and no file shows."""
    found = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings.items()):
        found[f"GIT_CONFIG_KEY_{number}"] = key
        found[f"GIT_CONFIG_VALUE_{number}"] = value
    return found


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "git said nothing"
