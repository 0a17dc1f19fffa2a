"""Releases and tags of the local GitHub against GitHub's own description."""

import asyncio
from typing import Any

import pytest
from aiohttp import ClientSession
from github import Auth, Github, GithubException

from bot.github.client import Gone
from bot.github.events import Released, read_event
from bot.sandbox import bare
from bot.sandbox.release_acts import Draft
from bot.sandbox.state import Problem
from tests.contracts.conftest import Place
from tests.harness.land import FULL_NAME


def _actions(place: Place) -> list[tuple[str, str]]:
    return [(told["action"], told["release"]["tag_name"]) for told in place.told("release")]


async def test_what_a_person_does(place: Place) -> None:
    """A draft, its publication, an edit, a pre-release, a deletion."""
    main = await bare.resolve(place.land.repository.folder, "heads/main")

    def person() -> None:
        pauses: dict[str, Any] = {"seconds_between_requests": None, "seconds_between_writes": None}
        token = Auth.Token(place.sandbox.token_of("maya"))
        github = Github(base_url=place.sandbox.api_url, auth=token, retry=None, per_page=1, **pauses)
        repository = github.get_repo(FULL_NAME)
        draft = repository.create_git_release("v1.0", "One", "First.", draft=True)
        assert [each.draft for each in repository.get_releases()] == [True]
        assert list(repository.get_tags()) == []
        with pytest.raises(GithubException):
            repository.get_latest_release()
        published = draft.update_release("One", "First!", draft=False)
        assert (published.draft, published.body) == (False, "First!")
        assert [(tag.name, tag.commit.sha) for tag in repository.get_tags()] == [("v1.0", main)]
        assert repository.get_latest_release().tag_name == "v1.0"
        repository.create_git_release("v2.0-rc", "Two", "Nearly.", prerelease=True, target_commitish="faster")
        assert [each.tag_name for each in repository.get_releases()] == ["v2.0-rc", "v1.0"]
        assert repository.get_latest_release().tag_name == "v1.0"
        assert repository.get_release("v2.0-rc").prerelease
        published.update_release("One", "Edited.")
        for wrong in ({"tag": "v1.0"}, {"tag": "v 1"}, {"tag": "-v"}, {"tag": "v3", "target_commitish": "nowhere"}):
            with pytest.raises(GithubException) as refused:
                repository.create_git_release(name="x", message="x", **wrong)
            assert refused.value.status == 422
        published.delete_release()
        with pytest.raises(GithubException):
            repository.get_latest_release()  # a pre-release is none
        assert [tag.name for tag in repository.get_tags()] == ["v2.0-rc", "v1.0"]
        github.close()

    await asyncio.to_thread(person)
    assert _actions(place) == [
        ("created", "v1.0"),
        ("published", "v1.0"),
        ("released", "v1.0"),
        ("created", "v2.0-rc"),
        ("published", "v2.0-rc"),
        ("prereleased", "v2.0-rc"),
        ("edited", "v1.0"),
        ("deleted", "v1.0"),
    ]
    # a tag that is made is a push, too
    assert [told["ref"] for told in place.told("push")] == ["refs/tags/v1.0", "refs/tags/v2.0-rc"]
    events = [read_event("release", told) for told in place.told("release")]
    assert all(isinstance(event, Released) for event in events)


async def test_which_release_is_the_latest(place: Place) -> None:
    """What was published last, unless that was said not to be; without it the newest commit decides."""
    sandbox, repository = place.sandbox, place.land.repository
    folder = repository.folder
    main = await bare.resolve(folder, "heads/main")
    old = (await bare.commit(folder, main)).parents[0]
    async with ClientSession() as session:
        github, where = place.github(session), place.where
        with pytest.raises(Gone):
            await github.latest_release(where)
        two = await sandbox.add_release(repository, "v2.0", main)
        await sandbox.release(repository, "maya", Draft(tag="v1.1", target=old, latest="false"))
        assert await github.latest_release(where) == "v2.0"
        three = await sandbox.add_release(repository, "v1.2", old)
        assert await github.latest_release(where) == "v1.2"
        sandbox.acts.delete_release(repository, three, sandbox.state.account("maya"))
        assert await github.latest_release(where) == "v2.0"
        sandbox.acts.delete_release(repository, two, sandbox.state.account("maya"))
        assert await github.latest_release(where) == "v1.1"
        # a tag may be moved; its release goes with it
        await sandbox.move_tag(repository, "maya", "v1.1", main)
        assert await github.commit(where, "tags/v1.1") == main
    rewritten = place.told("push")[-1]
    assert (rewritten["ref"], rewritten["before"], rewritten["after"]) == ("refs/tags/v1.1", old, main)


async def test_who_may_release(place: Place) -> None:
    token = place.sandbox.token_of("tom")
    async with ClientSession(headers={"Authorization": f"token {token}"}) as session:
        url = f"{place.sandbox.api_url}/repos/{FULL_NAME}/releases"
        async with session.post(url, json={"tag_name": "v1"}) as answer:
            assert answer.status == 403
        maya = {"Authorization": f"token {place.sandbox.token_of('maya')}"}
        async with session.post(url, json={"tag_name": "v1", "make_latest": "perhaps"}, headers=maya) as answer:
            assert answer.status == 422
            assert "not one of true, false, legacy" in await answer.text()
        await place.sandbox.release(place.land.repository, "maya", Draft(tag="v2", draft=True))
        async with session.get(url) as answer:
            assert await answer.json() == []
    with pytest.raises(Problem):
        await place.sandbox.release(place.land.repository, "maya", Draft(tag="a..b"))
    assert await bare.git(place.land.repository.folder, "tag") == b""
