"""Branches and history of the local GitHub against GitHub's own description: pushes, merges, commits."""

import asyncio
from typing import Any

import pytest
from aiohttp import ClientSession
from github import Auth, Github, GithubException

from bot.core.nouns import Person
from bot.github.answers import MergedPull
from bot.github.client import Gone
from bot.github.events import Pushed, RepositoryChanged, read_event
from bot.sandbox import bare
from tests.contracts.conftest import Place
from tests.harness.land import FULL_NAME


async def test_history_as_our_client_reads_it(place: Place) -> None:
    sandbox, land = place.sandbox, place.land
    before = await bare.resolve(land.repository.folder, "heads/main")
    merge = await sandbox.merge(land.repository, "maya", 1)
    async with ClientSession() as session:
        github, where = place.github(session), place.where
        assert await github.branch(where, "main") == merge
        with pytest.raises(Gone):
            await github.branch(where, "no/such#branch")
        seen = [commit async for commit in github.commits(where, "main")]
        assert [commit.sha for commit in seen] == [
            commit.sha for commit in await bare.log(land.repository.folder, "main")
        ]
        newest, oldest = seen[0], seen[-1]
        assert (newest.parents, newest.first_parent) == ((before, land.pull.head_sha), before)
        assert (newest.author, newest.subject) == ("maya", "Merge pull request #1 from faster")
        assert newest.committed_at >= max(commit.committed_at for commit in seen)
        assert (oldest.parents, oldest.first_parent, oldest.author) == ((), "", "maya")
        expected = MergedPull(
            number=1,
            title="Make it faster",
            author=Person(id=land.pull.author.id, login="ada", kind="User"),
            merge_sha=merge,
        )
        # by the merge commit and by what it brought; never by what was there before
        assert await github.pull_of_commit(where, merge) == expected
        assert await github.pull_of_commit(where, land.pull.head_sha) == expected
        assert await github.pull_of_commit(where, before) is None


async def test_a_squashed_pull_request_is_one_commit(place: Place) -> None:
    repository = place.land.repository
    before = await bare.resolve(repository.folder, "heads/main")
    sha = await place.sandbox.merge(repository, "maya", 1, squash=True)
    async with ClientSession() as session:
        github = place.github(session)
        (commit,) = [each async for each in github.commits(place.where, sha) if each.sha == sha]
        assert (commit.parents, commit.subject) == ((before,), "Make it faster (#1)")
        found = await github.pull_of_commit(place.where, sha)
        assert found is not None
        assert (found.number, found.merge_sha) == (1, sha)
        assert await github.pull_of_commit(place.where, place.land.pull.head_sha) is None


async def test_every_way_to_move_a_branch_is_told(place: Place) -> None:
    sandbox, repository = place.sandbox, place.land.repository
    main = await bare.resolve(repository.folder, "heads/main")
    pushed = await sandbox.push(repository, "ada", "main", {"train.py": b"print(1)\n", "new.py": b"\n"})
    await sandbox.move_branch(repository, "maya", "main", main)
    await sandbox.move_branch(repository, "maya", "old/idea", pushed)
    await sandbox.delete_branch(repository, "maya", "old/idea")
    told = place.told("push")
    assert [(p["ref"], p["before"], p["after"]) for p in told] == [
        ("refs/heads/main", main, pushed),
        ("refs/heads/main", pushed, main),
        ("refs/heads/old/idea", "0" * 40, pushed),
        ("refs/heads/old/idea", pushed, "0" * 40),
    ]
    (commit,) = told[0]["commits"]
    assert (commit["added"], commit["modified"], commit["removed"]) == (["new.py"], ["train.py"], [])
    assert (commit["author"]["username"], commit["distinct"]) == ("ada", True)
    assert [p["forced"] for p in told] == [False, True, False, False]
    events = [read_event("push", payload) for payload in told]
    assert all(isinstance(event, Pushed) for event in events)
    assert [(e.before, e.after, e.forced, e.deleted) for e in events if isinstance(e, Pushed)] == [
        (main, pushed, False, False),
        (pushed, main, True, False),
        ("", pushed, False, False),
        (pushed, "", False, True),
    ]


async def test_a_merge_is_a_push_too(place: Place) -> None:
    before = await bare.resolve(place.land.repository.folder, "heads/main")
    merge = await place.sandbox.merge(place.land.repository, "maya", 1)
    (told,) = place.told("push")
    assert (told["ref"], told["before"], told["after"]) == ("refs/heads/main", before, merge)
    assert told["sender"]["login"] == told["pusher"]["name"] == "maya"
    # the commit of the pull request was pushed before, on its own branch
    assert [(commit["id"], commit["distinct"]) for commit in told["commits"]] == [
        (place.land.pull.head_sha, False),
        (merge, True),
    ]
    assert told["commits"][1]["modified"] == ["train.py"]
    closed = place.told("pull_request")[-1]
    assert (closed["action"], closed["pull_request"]["merge_commit_sha"]) == ("closed", merge)


async def test_history_as_a_person_reads_it(place: Place) -> None:
    """PyGithub: pages, filters, merge methods, and what is refused."""

    def person() -> None:
        token = Auth.Token(place.sandbox.token_of("maya"))
        with_pauses: dict[str, Any] = {"seconds_between_requests": None, "seconds_between_writes": None}
        github = Github(base_url=place.sandbox.api_url, auth=token, retry=None, per_page=1, **with_pauses)
        repository = github.get_repo(FULL_NAME)
        commits = list(repository.get_commits())
        assert len(commits) == 3
        assert commits[0].sha == repository.get_branch("main").commit.sha
        assert [each.sha for each in repository.get_commits(sha="faster", author="ada")] == [place.land.pull.head_sha]
        assert [each.sha for each in repository.get_commits(author="ada")] == []
        assert len(list(repository.get_commits(path="train.py"))) == 1
        when = commits[0].commit.committer.date
        assert [each.sha for each in repository.get_commits(since=when)] == [commits[0].sha]
        pull = repository.get_pull(1)
        assert pull.merge(merge_method="squash").merged
        assert repository.get_branch("main").commit.sha == repository.get_pull(1).merge_commit_sha
        github.close()

    await asyncio.to_thread(person)


async def test_a_renamed_repository_is_found_by_its_old_name(place: Place) -> None:
    sandbox, repository = place.sandbox, place.land.repository
    head = await bare.resolve(repository.folder, "heads/main")
    sandbox.rename(repository, "maya", "sight")
    (told,) = place.told("repository")
    assert (told["action"], told["changes"]) == ("renamed", {"repository": {"name": {"from": "vision"}}})
    assert (told["repository"]["id"], told["repository"]["full_name"]) == (repository.id, "acme/sight")
    event = read_event("repository", told)
    assert isinstance(event, RepositoryChanged)
    assert (event.repository_id, event.full_name) == (repository.id, "acme/sight")
    async with ClientSession() as session:
        github, where = place.github(session), place.where
        assert (await github.repository(where))["full_name"] == "acme/sight"
        assert await github.commit_of(FULL_NAME, "heads/main", where) == head
        # a post stays a post
        made = await github.ask("POST", FULL_NAME, "/check-runs", {"name": "x", "head_sha": head})
        assert [check.id for check in repository.checks] == [made["id"]]
        url = f"{sandbox.api_url}/repos/{FULL_NAME}/pulls?state=all&per_page=1"
        async with session.get(url, allow_redirects=False) as answer:
            assert answer.status == 301
            wanted = f"{sandbox.api_url}/repositories/{repository.id}/pulls?state=all&per_page=1"
            assert answer.headers["Location"] == (await answer.json())["url"] == wanted
        repository.private = True
        async with session.get(url, allow_redirects=False) as answer:
            assert answer.status == 404
        # a newcomer takes the old name over, and nothing leads to the other one any more
        other = sandbox.add_repository(FULL_NAME, repository.folder)
        async with session.get(url, allow_redirects=False) as answer:
            assert (answer.status, await answer.json()) == (200, [])
        assert sandbox.state.repository(FULL_NAME) is other


async def test_settings_of_a_repository(place: Place) -> None:
    """Name and default branch through the API; only for its admins."""

    def person() -> None:
        place.sandbox.permit(place.land.repository, "root", "admin")
        pauses: dict[str, Any] = {"seconds_between_requests": None, "seconds_between_writes": None}
        tokens = [Auth.Token(place.sandbox.token_of(login)) for login in ("root", "maya")]
        root, maya = (Github(base_url=place.sandbox.api_url, auth=token, retry=None, **pauses) for token in tokens)
        repository = root.get_repo(FULL_NAME)
        repository.edit(default_branch="faster")
        assert root.get_repo(FULL_NAME).default_branch == "faster"
        repository.edit(name="sight")
        assert root.get_repo("acme/sight").id == root.get_repo(FULL_NAME).id == place.land.repository.id
        for name in ("", "a b", "../x"):
            with pytest.raises(GithubException) as refused:
                root.get_repo("acme/sight").edit(name=name)
            assert refused.value.status == 422
        with pytest.raises(GithubException) as denied:
            maya.get_repo("acme/sight").edit(name="mine")
        assert denied.value.status == 403
        root.close()
        maya.close()

    await asyncio.to_thread(person)
    assert [told["action"] for told in place.told("repository")] == ["edited", "renamed"]
