"""Issues of the local GitHub against GitHub's own description: by a person, by our client, and what Apps are told."""

import asyncio
from typing import Any

import pytest
from aiohttp import ClientSession
from gidgethub import GitHubException
from github import Auth, Github, GithubException

from bot.github.events import Commented, read_event
from bot.sandbox.issue_acts import Actor, Wanted
from bot.sandbox.state import Issue
from tests.contracts.conftest import Place
from tests.harness.land import FULL_NAME


@pytest.fixture
def listening(place: Place) -> Place:
    """The App hears of issues, too."""
    place.land.app.events = (*place.land.app.events, "issues")
    return place


def _person(place: Place, login: str, **more: Any) -> Github:
    pauses: dict[str, Any] = {"seconds_between_requests": None, "seconds_between_writes": None}
    token = Auth.Token(place.sandbox.token_of(login))
    return Github(base_url=place.sandbox.api_url, auth=token, retry=None, **pauses, **more)


async def test_what_a_person_does(listening: Place) -> None:
    """Numbers are shared with pull requests; labels of people without a right are dropped."""

    def person() -> None:
        maya, sam = (_person(listening, login, per_page=1) for login in ("maya", "sam"))
        repository = maya.get_repo(FULL_NAME)
        issue = repository.create_issue("It is slower", body="Since Monday.", labels=["alarm", "gate", "alarm"])
        assert (issue.number, issue.state, [label.name for label in issue.labels]) == (2, "open", ["alarm", "gate"])
        asked = sam.get_repo(FULL_NAME).create_issue("Why?", labels=["alarm"])
        assert (asked.number, asked.labels) == (3, [])
        comment = issue.create_comment("/benchmark bisect resnet50")
        comment.create_reaction("eyes")
        issue.create_reaction("rocket")
        assert [each.content for each in issue.get_reactions()] == ["rocket"]
        assert [each.body for each in issue.get_comments()] == ["/benchmark bisect resnet50"]
        comment.edit("never mind")
        comment.delete()
        issue.edit(title="It is much slower", labels=["alarm"])
        issue.edit(state="closed", state_reason="not_planned")
        assert repository.get_issue(2).state_reason == "not_planned"
        assert [each.number for each in repository.get_issues()] == [3, 1]
        assert [each.number for each in repository.get_issues(state="all", sort="created", direction="asc")] == [
            1,
            2,
            3,
        ]
        assert [each.number for each in repository.get_issues(state="closed", labels=["alarm"])] == [2]
        assert [each.number for each in repository.get_issues(state="all", labels=["alarm", "gate"])] == []
        assert [each.number for each in repository.get_issues(creator="sam")] == [3]
        assert repository.get_issue(1).pull_request is not None
        issue.edit(state="open")
        assert (issue.state, issue.state_reason) == ("open", "reopened")
        # a pull request is closed through its issue just as well
        repository.get_issue(1).edit(state="closed", labels=["alarm"])
        assert [label.name for label in repository.get_pull(1).labels] == ["alarm"]
        with pytest.raises(GithubException) as refused:
            sam.get_repo(FULL_NAME).get_issue(2).edit(state="closed")
        assert refused.value.status == 403
        maya.close()
        sam.close()

    await asyncio.to_thread(person)
    assert [(told["action"], told["issue"]["number"]) for told in listening.told("issues")] == [
        ("opened", 2),
        ("labeled", 2),
        ("labeled", 2),
        ("opened", 3),
        ("edited", 2),
        ("unlabeled", 2),
        ("closed", 2),
        ("reopened", 2),
    ]
    assert listening.told("pull_request")[-1]["action"] == "closed"
    comments = listening.told("issue_comment")
    assert [told["action"] for told in comments] == ["created", "edited", "deleted"]
    assert all("pull_request" not in told["issue"] for told in comments)
    event = read_event("issue_comment", comments[0])
    assert isinstance(event, Commented)
    assert (event.number, event.on_pull, event.body) == (2, False, "/benchmark bisect resnet50")


async def test_what_the_bot_does(listening: Place) -> None:
    sandbox, repository = listening.sandbox, listening.land.repository
    copied = Wanted(title="A copy", body="<!-- alarm 7 --> mine")
    sandbox.acts.open_issue(repository, Actor(account=sandbox.add_account("sam")), copied)
    async with ClientSession() as session:
        github, where = listening.github(session), listening.where
        assert await github.find_issue(where, "<!-- alarm 7 -->") is None
        wanted = {"title": "resnet50 is slower", "body": "<!-- alarm 7 --> By 9 %.", "labels": ["benchbot"]}
        number = await github.create_issue(where, wanted)
        assert await github.find_issue(where, "<!-- alarm 7 -->") == number
        assert await github.find_issue(where, "<!-- alarm 7 -->", "benchbot") == number
        assert await github.find_issue(where, "<!-- alarm 7 -->", "other") is None
        await github.create_comment(where, number, "Still slower.")
        await github.update_issue(where, number, {**wanted, "state": "closed", "state_reason": "completed"})
        issue = repository.issues[number]
        assert isinstance(issue, Issue)
        assert (issue.open, issue.state_reason, issue.labels) == (False, "completed", ["benchbot"])
        # closed ones are found, too, and may be opened again
        assert await github.find_issue(where, "<!-- alarm 7 -->") == number
        await github.update_issue(where, number, {"state": "open", "body": "<!-- alarm 7 --> Again.", "labels": []})
        assert (issue.open, issue.body, issue.labels) == (True, "<!-- alarm 7 --> Again.", [])
    told = listening.told("issues")[-3:]
    assert [each["action"] for each in told] == ["edited", "unlabeled", "reopened"]
    assert told[0]["changes"] == {"body": {"from": "<!-- alarm 7 --> By 9 %."}}
    assert told[0]["sender"]["login"] == "benchbot[bot]"


@pytest.mark.parametrize(
    "wrong",
    [
        {"title": ""},
        {"title": "x" * 257},
        {"title": "x", "body": "x" * 65_537},
        {"title": "x", "labels": [""]},
        {"title": "x", "labels": ["x" * 51]},
    ],
)
async def test_what_is_no_issue_is_refused(place: Place, wrong: dict[str, Any]) -> None:
    async with ClientSession() as session:
        github = place.github(session)
        with pytest.raises(GitHubException):
            await github.create_issue(place.where, wrong)
        number = await github.create_issue(place.where, {"title": "Right", "body": "x"})
        with pytest.raises(GitHubException):
            await github.update_issue(place.where, number, wrong)
    assert list(place.land.repository.issues) == [2]
    assert (place.land.repository.issues[2].title, place.land.repository.issues[2].body) == ("Right", "x")


async def test_issues_need_their_own_permission(place: Place) -> None:
    """Writing on pull requests is not enough to open an issue."""
    place.land.app.permissions = {**place.land.app.permissions, "issues": "read"}
    async with ClientSession() as session:
        with pytest.raises(Exception, match="not accessible by integration"):
            await place.github(session).create_issue(place.where, {"title": "x", "body": ""})
    assert place.land.repository.issues == {}
