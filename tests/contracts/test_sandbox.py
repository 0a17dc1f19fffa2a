"""The local GitHub against GitHub's own description: every call of a person and of an App, and every webhook."""

import asyncio
import base64
import time
from typing import Any

import jwt
import pytest
from aiohttp import ClientSession
from github import Auth, Github, GithubIntegration

from bot.github.auth import AppKey
from bot.github.client import GitHub, Gone
from tests.contracts.conftest import Place
from tests.harness.land import FULL_NAME


async def test_what_a_person_does(place: Place) -> None:
    """PyGithub reads and writes a pull request."""

    def person() -> None:
        token = Auth.Token(place.sandbox.token_of("maya"))
        with_pauses: dict[str, Any] = {"seconds_between_requests": None, "seconds_between_writes": None}
        github = Github(base_url=place.sandbox.api_url, auth=token, retry=None, per_page=1, **with_pauses)
        assert github.get_user().login == "maya"
        repository = github.get_repo(FULL_NAME)
        pull = repository.get_pull(1)
        first = pull.create_issue_comment("/benchmark resnet50")
        pull.create_issue_comment("and more")
        assert [comment.body for comment in pull.get_issue_comments()] == ["/benchmark resnet50", "and more"]
        first.create_reaction("heart")
        first.create_reaction("heart")
        assert [reaction.content for reaction in first.get_reactions()] == ["heart"]
        first.edit("/benchmark bert")
        first.delete()
        review = pull.create_review(body="Good.", event="APPROVE")
        assert [each.state for each in pull.get_reviews()] == ["APPROVED"]
        review.dismiss("Not yet.")
        assert [file.filename for file in pull.get_files()] == ["train.py"]
        assert repository.get_collaborator_permission("tom") == "read"
        assert base64.b64decode(repository.get_contents("train.py", ref="main").content) == b"print('training')\n"
        compared = repository.compare("main", pull.head.sha)
        assert compared.status == "diverged"
        assert [each.number for each in repository.get_commit(pull.head.sha).get_pulls()] == [1]
        pull.edit(state="closed")
        pull.edit(state="open")
        assert [each.number for each in repository.get_pulls()] == [1]
        pull.merge()
        assert repository.get_pull(1).merged
        github.close()

    await asyncio.to_thread(person)


async def test_what_the_bot_does(place: Place) -> None:
    """Every method of our own client."""
    app, where, sandbox = place.land.app, place.where, place.sandbox
    head = place.land.pull.head_sha
    async with ClientSession() as session:
        github = GitHub(session, AppKey(app.id, app.private_key, sandbox.api_url))
        assert [await github.permission(where, login) for login in ("maya", "tom", "sam", "nobody")] == [
            "maintain",
            "triage",
            "read",
            "none",
        ]
        seen = await github.pull(where, 1)
        assert (seen.head_sha, seen.base_ref, seen.open) == (head, "main", True)
        compared = await github.compare(where, "main", head)
        assert compared.paths == ("train.py",)
        assert compared.base_sha != compared.merge_base_sha
        assert await github.commit(where, "heads/main") == compared.base_sha
        assert await github.commit(where, head[:10]) == head
        assert await github.commit_of(FULL_NAME, "main", where) == compared.base_sha
        with pytest.raises(Gone):
            await github.latest_release(where)
        await sandbox.add_release(place.land.repository, "v1.0", compared.base_sha)
        assert await github.latest_release(where) == "v1.0"
        assert await github.commit(where, "tags/v1.0") == compared.base_sha
        assert "version: 1" in (await github.file(where, ".github/benchmark.yml", compared.base_sha) or "")
        assert await github.file(where, "nothing.yml", head) is None
        assert await github.changed_files(where, 1) == ("train.py",)
        assert await github.pulls_with_head(where, head) == (1,)
        assert (await github.repository(where))["full_name"] == FULL_NAME
        said = sandbox.acts.comment(place.land.repository, 1, sandbox.add_account("maya"), "/benchmark resnet50")
        await github.react(where, said.id, "eyes")
        await github.react(where, said.id, "eyes")
        mine = await github.create_comment(where, 1, "<!-- mark --> Hello.")
        await github.update_comment(where, mine, "<!-- mark --> Hello again.")
        sandbox.acts.comment(place.land.repository, 1, sandbox.add_account("sam"), "<!-- mark --> a copy")
        assert await github.find_comment(where, 1, "<!-- mark -->", "2020-01-01T00:00:00Z") == mine
        output = {"title": "Queued", "summary": "Waiting.", "text": "Nothing yet."}
        check = {"name": "benchbot / all", "head_sha": head, "external_id": "r1", "status": "queued", "output": output}
        made = await github.create_check(where, check)
        action = {"label": "Cancel", "description": "Stop it.", "identifier": "cancel"}
        await github.update_check(where, made, {**check, "status": "in_progress", "actions": [action]})
        annotation = {
            "path": "train.py",
            "start_line": 1,
            "end_line": 1,
            "annotation_level": "warning",
            "message": "Look.",
        }
        ended = {
            **check,
            "status": "completed",
            "conclusion": "success",
            "output": {**output, "annotations": [annotation]},
        }
        await github.update_check(where, made, {**ended, "actions": [action]})
        assert await github.find_check(where, head, "benchbot / all", "r1") == made
        (run,) = place.land.repository.checks
        sandbox.acts.press(place.land.repository, run, sandbox.add_account("maya"), "cancel")
        sandbox.acts.rerequest(place.land.repository, run, sandbox.add_account("maya"))
        first = sandbox.hooks.waiting[0]
        await sandbox.hooks.send(session, first)
        assert [delivery["guid"] async for delivery in github.deliveries()] == [first.guid]
        assert (await github.hook())["url"] == place.land.app.webhook_url
        # installations are not asked for here: GitHub describes their account as a user and an enterprise at once
        await github.redeliver(first.id)
        assert [each.guid for each in sandbox.hooks.waiting if each.redelivery] == [first.guid]


async def test_a_token_opens_what_it_may(place: Place) -> None:
    """Wrong keys, other Apps' tokens, missing permissions and foreign repositories are refused as GitHub does."""
    app, api, state = place.land.app, place.sandbox.api_url, place.sandbox.state
    now = int(time.time())
    (installation,) = state.installations.values()
    tokens = f"{api}/app/installations/{installation.id}/access_tokens"

    def signed(**claims: Any) -> dict[str, str]:
        payload = {"iat": now - 10, "exp": now + 300, "iss": str(app.id), **claims}
        return {"Authorization": f"Bearer {jwt.encode(payload, app.private_key, algorithm='RS256')}"}

    async with ClientSession() as session:

        async def status(method: str, url: str, headers: dict[str, str], **body: Any) -> int:
            async with session.request(method, url, headers=headers, json=body or None) as answer:
                return answer.status

        assert await status("POST", tokens, signed(exp=now + 3600)) == 401
        assert await status("POST", tokens, signed(exp=now - 1)) == 401
        assert await status("POST", tokens, signed(iss="7")) == 401
        assert await status("POST", tokens, {"Authorization": "Bearer nonsense"}) == 401
        assert await status("POST", tokens, {}) == 401
        async with session.post(tokens, headers=signed()) as answer:
            mine = {"Authorization": f"token {(await answer.json())['token']}"}
        assert await status("GET", f"{api}/repos/{FULL_NAME}", mine) == 200
        assert await status("PUT", f"{api}/repos/{FULL_NAME}/pulls/1/merge", mine) == 403
        other = place.sandbox.add_repository("elsewhere/private", place.land.repository.folder, private=True)
        assert await status("GET", f"{api}/repositories/{other.id}", mine) == 404
        assert await status("GET", f"{api}/repositories/{other.id}", {}) == 404
        assert await status("GET", f"{api}/repos/{FULL_NAME}", {}) == 200
        sam = {"Authorization": f"token {place.sandbox.token_of('sam')}"}
        head = {"name": "x", "head_sha": place.land.pull.head_sha}
        assert await status("POST", f"{api}/repos/{FULL_NAME}/check-runs", sam, **head) == 403
        wrong = {**head, "status": "completed"}
        assert await status("POST", f"{api}/repos/{FULL_NAME}/check-runs", mine, **wrong) == 422
        long = {"body": "x" * 65_537}
        assert await status("POST", f"{api}/repos/{FULL_NAME}/issues/1/comments", sam, **long) == 422


async def test_pygithub_as_the_app(place: Place) -> None:
    """The App through PyGithub: installation, token, check run."""

    def act() -> str:
        key = Auth.AppAuth(place.land.app.id, place.land.app.private_key)
        owner, _, name = FULL_NAME.partition("/")
        installation = GithubIntegration(auth=key, base_url=place.sandbox.api_url).get_repo_installation(owner, name)
        repository = installation.get_github_for_installation().get_repo(FULL_NAME)
        check = repository.create_check_run("benchbot", place.land.pull.head_sha, status="queued")
        check.edit(status="completed", conclusion="success", output={"title": "Done", "summary": "All good."})
        return str(repository.get_check_run(check.id).conclusion)

    assert await asyncio.to_thread(act) == "success"
