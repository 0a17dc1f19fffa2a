"""Every method of our client against a server that judges its calls by GitHub's description and answers with GitHub's
own examples. What the local GitHub may misunderstand in the same way as we do is found here."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import pytest

from bot.core.nouns import Person
from bot.github.answers import CommitFacts, MergedPull
from bot.github.client import Compared, Gone, PullFacts
from tests.contracts.conftest import CHECK, REPOSITORY, SHA, WHERE, Vendor
from tests.contracts.vendor_answers import vendor_answer

# ---- facts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("role", "plain", "expected"),
    [("maintain", "write", "maintain"), ("triage", "read", "triage"), ("our-own-role", "write", "write")],
)
async def test_permission(vendor: Vendor, role: str, plain: str, expected: str) -> None:
    path = f"{REPOSITORY}/collaborators/maya/permission"
    vendor.show("GET", path, permission=plain, role_name=role)
    assert await vendor.github.permission(WHERE, "maya") == expected


async def test_permission_of_a_stranger(vendor: Vendor) -> None:
    assert await vendor.github.permission(WHERE, "nobody[bot]") == "none"
    assert vendor.last()[1] == f"{REPOSITORY}/collaborators/nobody[bot]/permission"


async def test_pull(vendor: Vendor) -> None:
    vendor.show("GET", f"{REPOSITORY}/pulls/1347")
    assert await vendor.github.pull(WHERE, 1347) == PullFacts(
        number=1347,
        title="Amazing new feature",
        open=True,
        head_sha=SHA,
        head_repository_id=1296269,
        base_ref="master",
        author=Person(id=1, login="octocat", kind="User"),
    )


async def test_pull_of_a_deleted_fork(vendor: Vendor) -> None:
    """GitHub answers so, although its description says that there is always a repository."""
    path = f"{REPOSITORY}/pulls/8"
    answer = vendor_answer(vendor.contract, "GET", path, 200)
    vendor.put("GET", path, {**answer, "head": {**answer["head"], "repo": None}, "state": "closed"})
    seen = await vendor.github.pull(WHERE, 8)
    assert (seen.head_repository_id, seen.open) == (None, False)
    vendor.forgive("head/repo: null")


async def test_compare(vendor: Vendor) -> None:
    vendor.show("GET", f"{REPOSITORY}/compare/main...feature/a#1")
    compared = await vendor.github.compare(WHERE, "main", "feature/a#1")
    assert compared == Compared(base_sha=SHA, merge_base_sha=SHA, paths=("file1.txt",))


@pytest.mark.parametrize("ref", ["heads/main", "heads/feature/50%?#&+ü", SHA[:7]])
async def test_commit(vendor: Vendor, ref: str) -> None:
    vendor.show("GET", f"{REPOSITORY}/commits/{ref}")
    assert await vendor.github.commit(WHERE, ref) == SHA
    vendor.show("GET", f"/repos/octo/scripts/commits/{ref}")
    assert await vendor.github.commit_of("octo/scripts", ref, WHERE) == SHA


async def test_latest_release(vendor: Vendor) -> None:
    vendor.show("GET", f"{REPOSITORY}/releases/latest")
    assert await vendor.github.latest_release(WHERE) == "v1.0.0"


async def test_file(vendor: Vendor) -> None:
    path = f"{REPOSITORY}/contents/a b/c#d.yml"
    vendor.show("GET", path, example="response-if-content-is-a-file", content="dmVyc2lv\nbjogMf8=\n")
    assert await vendor.github.file(WHERE, "a b/c#d.yml", "feature/a+b&c") == "version: 1\ufffd"
    assert vendor.last()[2] == {"ref": "feature/a+b&c"}


@pytest.mark.parametrize("what", ["directory", "symlink", "submodule"])
async def test_what_is_no_file_is_no_text(vendor: Vendor, what: str) -> None:
    vendor.show("GET", f"{REPOSITORY}/contents/x", example=f"response-if-content-is-a-{what}")
    assert await vendor.github.file(WHERE, "x", SHA) is None
    assert await vendor.github.file(WHERE, "missing", SHA) is None


async def test_changed_files_of_two_pages(vendor: Vendor) -> None:
    path = f"{REPOSITORY}/pulls/8/files"
    (first,) = vendor_answer(vendor.contract, "GET", path, 200)
    link = {"Link": f'<{vendor.api_url}{path}?per_page=100&page=2>; rel="next"'}
    vendor.put("GET", path, [first], headers=link).put("GET", path, [{**first, "filename": "b/ü.py"}])
    assert await vendor.github.changed_files(WHERE, 8) == ("file1.txt", "b/ü.py")
    assert vendor.last()[2] == {"per_page": "100", "page": "2"}


async def test_pulls_with_head(vendor: Vendor) -> None:
    (pull,) = vendor_answer(vendor.contract, "GET", f"{REPOSITORY}/commits/{SHA}/pulls", 200)
    others = [{**pull, "state": "closed"}, {**pull, "head": {**pull["head"], "sha": "b" * 40}}]
    vendor.put("GET", f"{REPOSITORY}/commits/{SHA}/pulls", [pull, *others])
    assert await vendor.github.pulls_with_head(WHERE, SHA) == (1347,)


async def test_branch(vendor: Vendor) -> None:
    vendor.show("GET", f"{REPOSITORY}/branches/feature/a#1")
    assert await vendor.github.branch(WHERE, "feature/a#1") == "7fd1a60b01f91b314f59955a4e4d4e80d8edf11d"
    with pytest.raises(Gone):
        await vendor.github.branch(WHERE, "gone")


async def test_commits_of_two_pages(vendor: Vendor) -> None:
    path = f"{REPOSITORY}/commits"
    (commit,) = vendor_answer(vendor.contract, "GET", path, 200)
    link = {"Link": f'<{vendor.api_url}{path}?per_page=100&page=2>; rel="next"'}
    unknown = {**commit, "sha": "b" * 40, "author": None, "parents": []}
    vendor.put("GET", path, [commit], headers=link)
    vendor.put("GET", path, [unknown, {**unknown, "author": {}}])
    seen = [each async for each in vendor.github.commits(WHERE, "feature/a+b")]
    at = datetime(2011, 4, 14, 16, 0, 49, tzinfo=UTC).timestamp()
    first = CommitFacts(sha=SHA, parents=(SHA,), author="octocat", committed_at=at, subject="Fix all the bugs")
    nobody = CommitFacts(sha="b" * 40, parents=(), author="Monalisa Octocat", committed_at=at, subject=first.subject)
    assert seen == [first, nobody, nobody]
    assert (first.first_parent, nobody.first_parent) == (SHA, "")
    assert dict(vendor.calls[-2].query) == {"sha": "feature/a+b", "per_page": "100"}


async def test_the_pull_request_of_a_commit(vendor: Vendor) -> None:
    path = f"{REPOSITORY}/commits/{SHA}/pulls"
    (pull,) = vendor_answer(vendor.contract, "GET", path, 200)
    merged = {**pull, "number": 2, "merged_at": "2026-01-01T00:00:00Z", "merge_commit_sha": "b" * 40}
    ours = {**merged, "number": 3, "merge_commit_sha": SHA}
    unmerged = {**pull, "merged_at": None}
    vendor.put("GET", path, [unmerged, merged, ours]).put("GET", path, [unmerged, merged]).put("GET", path, [unmerged])
    author = Person(id=1, login="octocat", kind="User")
    assert await vendor.github.pull_of_commit(WHERE, SHA) == MergedPull(
        number=3, title="Amazing new feature", author=author, merge_sha=SHA
    )
    found = await vendor.github.pull_of_commit(WHERE, SHA)
    assert found is not None
    assert found.number == 2
    assert await vendor.github.pull_of_commit(WHERE, SHA) is None


async def test_repository(vendor: Vendor) -> None:
    vendor.show("GET", REPOSITORY)
    seen = await vendor.github.repository(WHERE)
    assert (seen["id"], seen["full_name"], seen["default_branch"]) == (1296269, "octocat/Hello-World", "master")


# ---- what we show ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 201])
@pytest.mark.parametrize("content", ["eyes", "+1", "-1", "confused", "rocket"])
async def test_react(vendor: Vendor, content: str, status: int) -> None:
    vendor.show("POST", f"{REPOSITORY}/issues/comments/3/reactions", status)
    await vendor.github.react(WHERE, 3, content)
    assert await vendor.calls[-1].json() == {"content": content}


async def test_comments(vendor: Vendor) -> None:
    vendor.show("POST", f"{REPOSITORY}/issues/8/comments", 201)
    assert await vendor.github.create_comment(WHERE, 8, "Hello ü.") == 1
    assert await vendor.calls[-1].json() == {"body": "Hello ü."}
    vendor.show("PATCH", f"{REPOSITORY}/issues/comments/1")
    await vendor.github.update_comment(WHERE, 1, "Changed.")
    assert await vendor.calls[-1].json() == {"body": "Changed."}


async def test_our_own_comment_is_found_and_nobody_elses(vendor: Vendor) -> None:
    path = f"{REPOSITORY}/issues/8/comments"
    (comment,) = vendor_answer(vendor.contract, "GET", path, 200)
    check = vendor_answer(vendor.contract, "POST", f"{REPOSITORY}/check-runs", 201)
    ours, theirs = ({**check["app"], "id": number} for number in (12, 13))
    copies = [{**comment, "id": 2, "body": "mark"}, {**comment, "id": 3, "body": "mark"}]
    copies[1]["performed_via_github_app"] = theirs
    other = {**comment, "id": 4, "body": "else", "performed_via_github_app": ours}
    link = {"Link": f'<{vendor.api_url}{path}?page=2>; rel="next"'}
    vendor.put("GET", path, [*copies, other], headers=link)
    vendor.put("GET", path, [{**other, "id": 5, "body": "x mark x"}])
    assert await vendor.github.find_comment(WHERE, 8, "mark", "2026-01-01T00:00:00+00:00") == 5
    assert dict(vendor.calls[-2].query) == {"per_page": "100", "since": "2026-01-01T00:00:00+00:00"}
    assert await vendor.github.find_comment(WHERE, 8, "unknown", "2026-01-01T00:00:00Z") is None


async def test_issues(vendor: Vendor) -> None:
    made = vendor.show("POST", f"{REPOSITORY}/issues", 201)
    issue = {"title": "Slower", "body": "<!-- mark -->", "labels": ["alarm"], "state": "open"}
    assert await vendor.github.create_issue(WHERE, issue) == made["number"]
    assert await vendor.calls[-1].json() == {key: issue[key] for key in ("title", "body", "labels")}
    vendor.show("PATCH", f"{REPOSITORY}/issues/{made['number']}")
    await vendor.github.update_issue(WHERE, made["number"], {"state": "closed", "state_reason": "completed"})
    assert await vendor.calls[-1].json() == {"state": "closed", "state_reason": "completed"}


async def test_our_own_issue_is_found_and_nobody_elses(vendor: Vendor) -> None:
    path = f"{REPOSITORY}/issues"
    (issue,) = vendor_answer(vendor.contract, "GET", path, 200)
    bot = {**issue["user"], "login": "octoapp[bot]"}
    plain = {**{key: value for key, value in issue.items() if key != "pull_request"}, "body": "mark"}
    pull = {**issue, "number": 2, "user": bot, "body": "mark"}
    link = {"Link": f'<{vendor.api_url}{path}?page=2>; rel="next"'}
    vendor.put("GET", path, [{**plain, "number": 3}, pull], headers=link)
    vendor.put("GET", path, [{**plain, "number": 4, "user": bot}])
    vendor.show("GET", "/app")
    assert await vendor.github.find_issue(WHERE, "mark", "alarm,gate") == 4
    query = {"creator": "octoapp[bot]", "state": "all", "per_page": "100", "labels": "alarm,gate"}
    assert dict(vendor.calls[-2].query) == query
    assert await vendor.github.find_issue(WHERE, "other") is None
    # the App is asked for its name once
    assert [call.path for call in vendor.calls].count("/app") == 1


async def test_checks(vendor: Vendor) -> None:
    made = vendor.show("POST", f"{REPOSITORY}/check-runs", 201)
    assert await vendor.github.create_check(WHERE, CHECK) == made["id"]
    assert await vendor.calls[-1].json() == CHECK
    vendor.show("PATCH", f"{REPOSITORY}/check-runs/4")
    await vendor.github.update_check(WHERE, 4, CHECK)
    assert await vendor.calls[-1].json() == {key: value for key, value in CHECK.items() if key != "head_sha"}


async def test_our_check_is_found(vendor: Vendor) -> None:
    path = f"{REPOSITORY}/commits/{SHA}/check-runs"
    answer = vendor_answer(vendor.contract, "GET", path, 200)
    (check,) = answer["check_runs"]
    vendor.put("GET", path, {"total_count": 2, "check_runs": [check, {**check, "id": 9, "external_id": "r1"}]})
    assert await vendor.github.find_check(WHERE, SHA, "benchbot / all", "r1") == 9
    query = {"check_name": "benchbot / all", "app_id": "12", "filter": "all", "per_page": "100"}
    assert vendor.last()[2] == query
    assert await vendor.github.find_check(WHERE, SHA, "benchbot / all", "r2") is None


# ---- the App itself --------------------------------------------------------------------------------------------------


async def test_deliveries(vendor: Vendor) -> None:
    vendor.show("GET", "/app/hook/deliveries")
    assert [each["id"] async for each in vendor.github.deliveries()] == [12345678, 123456789]
    vendor.put("POST", "/app/hook/deliveries/12345678/attempts", {}, 202)
    await vendor.github.redeliver(12345678)
    assert vendor.last()[:2] == ("POST", "/app/hook/deliveries/12345678/attempts")


async def test_the_app_itself(vendor: Vendor) -> None:
    vendor.show("GET", "/app")
    assert (await vendor.github.app())["slug"] == "octoapp"
    vendor.show("GET", "/app/hook/config")
    assert (await vendor.github.hook())["url"] == "https://example.com/webhook"
    vendor.show("GET", "/app/installations")
    assert [each["id"] async for each in vendor.github.installations()] == [1]
    assert vendor.last()[2] == {"per_page": "100"}
    assert all(call.headers["Authorization"].lower().startswith("bearer ey") for call in vendor.calls)
    date, came_at = vendor.github.dated
    assert abs(parsedate_to_datetime(date).timestamp() - came_at) < 5


async def test_a_token_is_fetched_once_and_sent(vendor: Vendor) -> None:
    vendor.show("GET", REPOSITORY)
    await vendor.github.repository(WHERE)
    await vendor.github.repository(WHERE)
    assert await vendor.github.installation_token(5) == "ghs_ours"
    assert [call.path for call in vendor.calls] == ["/app/installations/5/access_tokens", REPOSITORY, REPOSITORY]
    assert vendor.calls[0].headers["Authorization"].lower().startswith("bearer ey")
    assert vendor.calls[1].headers["Authorization"].lower() == "token ghs_ours"
