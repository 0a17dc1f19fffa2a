"""git over HTTP: cloned, pushed, and only by those who may."""

import asyncio
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.sandbox.state import Problem, Token
from bot.sandbox.world import Sandbox
from tests.harness.land import FULL_NAME, Land


@dataclass
class Place:
    """A sandbox, and git beside it."""

    sandbox: Sandbox
    land: Land
    folder: Path

    def url(self, user: str = "", full_name: str = FULL_NAME) -> str:
        host = self.sandbox.url.partition("//")[2]
        return f"http://{user + '@' if user else ''}{host}/{full_name}.git"

    async def git(self, *words: str, folder: str = ".") -> tuple[int, str]:
        def run() -> tuple[int, str]:
            environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "GIT_TERMINAL_PROMPT": "0"}
            named = ("-c", "user.name=x", "-c", "user.email=x@localhost")
            ended = subprocess.run(
                ["git", *named, *words],
                cwd=self.folder / folder,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            return ended.returncode, ended.stdout + ended.stderr

        return await asyncio.to_thread(run)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    sandbox = Sandbox(tmp_path / "github")
    sandbox.hooks.held = True
    await sandbox.start()
    try:
        land = await Land.settle(sandbox, tmp_path, "http://127.0.0.1:9/webhook")
        sandbox.hooks.waiting.clear()
        yield Place(sandbox, land, tmp_path)
    finally:
        await sandbox.stop()


async def test_a_push_moves_the_pull_request(place: Place) -> None:
    token = place.sandbox.token_of("ada")
    assert (await place.git("clone", "-q", "-b", "faster", place.url(f"ada:{token}"), "c"))[0] == 0
    assert (await place.git("commit", "-q", "--allow-empty", "-m", "again", folder="c"))[0] == 0
    assert (await place.git("push", "-q", folder="c"))[0] == 0
    _, tip = await place.git("rev-parse", "HEAD", folder="c")
    assert place.land.pull.head_sha == tip.strip()
    pushed, synchronized = place.sandbox.hooks.waiting
    assert (pushed.event, pushed.payload["ref"]) == ("push", "refs/heads/faster")
    assert pushed.payload["sender"]["login"] == "ada"
    assert synchronized.payload["action"] == "synchronize"
    assert synchronized.payload["after"] == pushed.payload["after"] == tip.strip()
    _, ref = await place.git("ls-remote", place.url(), "refs/pull/1/head")
    assert ref.split()[0] == tip.strip()


async def test_who_may_not_push(place: Place) -> None:
    for who in (f"tom:{place.sandbox.token_of('tom')}", f"sam:{place.sandbox.token_of('sam')}", ""):
        await place.git("clone", "-q", place.url(who), "c")
        await place.git("commit", "-q", "--allow-empty", "-m", "again", folder="c")
        status, said = await place.git("push", "-q", folder="c")
        assert status != 0, (who, said)
        await asyncio.to_thread(subprocess.run, ["rm", "-rf", str(place.folder / "c")], check=True)


async def test_a_private_repository_is_closed_to_others(place: Place) -> None:
    place.land.repository.private = True
    assert (await place.git("ls-remote", place.url()))[0] != 0
    assert (await place.git("ls-remote", place.url("tom:wrong")))[0] != 0
    assert (await place.git("ls-remote", place.url(f"sam:{place.sandbox.token_of('sam')}")))[0] != 0
    assert (await place.git("ls-remote", place.url(f"tom:{place.sandbox.token_of('tom')}")))[0] == 0
    (installation,) = place.sandbox.state.installations.values()
    place.sandbox.state.tokens["ghs_x"] = Token(account=place.land.app.bot, installation=installation)
    assert (await place.git("ls-remote", place.url("x-access-token:ghs_x")))[0] == 0
    assert (await place.git("clone", "-q", place.url("x-access-token:ghs_x"), "c"))[0] == 0
    assert (await place.git("push", "-q", "origin", "HEAD:refs/heads/new", folder="c"))[0] != 0


async def test_one_commit_can_be_fetched_by_its_sha(place: Place) -> None:
    head = place.land.pull.head_sha
    await place.git("init", "-q", "c")
    assert (await place.git("fetch", "-q", "--depth", "1", place.url(), head, folder="c"))[0] == 0


async def test_what_is_pushed_by_git_is_told(place: Place) -> None:
    """A new branch, a rewritten one and a deleted one; a push that moves nothing tells nothing."""
    token = place.sandbox.token_of("ada")
    await place.git("clone", "-q", place.url(f"ada:{token}"), "c")
    _, main = await place.git("rev-parse", "HEAD", folder="c")
    for words in (
        ("HEAD:refs/heads/next",),
        ("HEAD:refs/heads/next",),
        ("--force", "HEAD~1:refs/heads/next"),
        ("--delete", "next"),
        ("HEAD:refs/tags/v1", "HEAD:refs/tags/v2", "HEAD:refs/tags/v3", "HEAD:refs/tags/v4"),
        ("HEAD:refs/tags/v5",),
    ):
        assert (await place.git("push", "-q", "origin", *words, folder="c"))[0] == 0
    told = [each.payload for each in place.sandbox.hooks.waiting if each.event == "push"]
    assert [(p["ref"], p["created"], p["deleted"], p["forced"]) for p in told] == [
        ("refs/heads/next", True, False, False),
        ("refs/heads/next", False, False, True),
        ("refs/heads/next", False, True, False),
        ("refs/tags/v5", True, False, False),  # of more than three tags at once GitHub tells nobody
    ]
    assert told[0]["head_commit"]["id"] == told[1]["before"] == main.strip()
    assert told[0]["commits"] == []  # main has them already
    assert (told[0]["before"], told[2]["after"], told[2]["head_commit"]) == ("0" * 40, "0" * 40, None)


async def test_a_pull_request_that_is_merged_by_hand(place: Place) -> None:
    token = place.sandbox.token_of("ada")
    await place.git("clone", "-q", place.url(f"ada:{token}"), "c")
    assert (await place.git("merge", "-q", "--no-ff", "-m", "By hand", "origin/faster", folder="c"))[0] == 0
    _, merge = await place.git("rev-parse", "HEAD", folder="c")
    await place.git("commit", "-q", "--allow-empty", "-m", "More", folder="c")
    assert (await place.git("push", "-q", folder="c"))[0] == 0
    pull = place.land.pull
    assert (pull.merged, pull.merge_sha) == (True, merge.strip())
    assert pull.merged_by is place.sandbox.state.account("ada")


async def test_a_pull_request_whose_branch_is_deleted(place: Place) -> None:
    await place.sandbox.delete_branch(place.land.repository, "ada", "faster")
    assert (place.land.pull.open, place.land.pull.merged) == (False, False)
    with pytest.raises(Problem):
        await place.sandbox.acts.reopen(place.land.repository, 1, place.sandbox.state.account("ada"))
    assert [each.payload.get("action") for each in place.sandbox.hooks.waiting] == [None, "closed"]


async def test_git_finds_a_renamed_repository(place: Place) -> None:
    token = place.sandbox.token_of("ada")
    await place.git("clone", "-q", "-b", "faster", place.url(f"ada:{token}"), "c")
    place.sandbox.rename(place.land.repository, "maya", "sight")
    await place.git("commit", "-q", "--allow-empty", "-m", "again", folder="c")
    assert (await place.git("push", "-q", folder="c"))[0] == 0
    _, tip = await place.git("rev-parse", "HEAD", folder="c")
    assert place.land.pull.head_sha == tip.strip()
    place.land.repository.private = True
    assert (await place.git("ls-remote", place.url()))[0] != 0


async def test_the_default_branch_may_be_rewritten_and_not_deleted(place: Place) -> None:
    """An open pull request keeps its head, and the base that it left."""
    sandbox, repository = place.sandbox, place.land.repository
    await sandbox.move_branch(repository, "maya", "main", "main~1")
    (pushed,) = place.sandbox.hooks.waiting
    assert (pushed.payload["ref"], pushed.payload["forced"]) == ("refs/heads/main", True)
    assert place.land.pull.open
    with pytest.raises(Problem):
        await sandbox.delete_branch(repository, "maya", "main")
    with pytest.raises(Problem):
        await sandbox.delete_branch(repository, "maya", "nothing")
    with pytest.raises(Problem):
        await sandbox.move_branch(repository, "maya", "a..b", "main")
