"""Pages of the local GitHub: what the forms do, what is kept out."""

import asyncio
import subprocess
from pathlib import Path

import pytest

from tests.harness.land import FULL_NAME
from tests.unit.sandbox.conftest import Browser, Elements

# ---- reading --------------------------------------------------------------------------------------------------------


async def test_every_page_opens(browser: Browser) -> None:
    assert FULL_NAME in await browser.get("/")
    assert "Make it faster" in await browser.get(f"/{FULL_NAME}/pulls")
    assert "Make it faster" in await browser.get(f"/{FULL_NAME}")
    assert "It is faster now." in await browser.get(f"/{FULL_NAME}/pull/1")
    head = browser.land.pull.head_sha
    assert "faster" in await browser.get(f"/{FULL_NAME}/commit/{head}")
    files = await browser.get(f"/{FULL_NAME}/pull/1/files")
    assert '<span class="add">+print(&#39;faster&#39;)</span>' in files
    assert '<span class="cut">-print(&#39;training&#39;)</span>' in files
    assert "<svg" in await browser.get(f"/avatars/{browser.land.repository.owner.id}")
    assert "--page" in await browser.get("/look.css")
    assert "setTimeout" in await browser.get("/fresh.js")


@pytest.mark.parametrize(
    "path",
    ["nobody/nothing", "{}/pull/9", "{}/pull/x", "{}/commit/abc", "{}/commit/HEAD:train.py", "{}/runs/1", "a/b/c"],
)
async def test_what_is_not_there_is_a_page_that_says_so(browser: Browser, path: str) -> None:
    assert "Not Found" in await browser.get(f"/{path.format(FULL_NAME)}", status=404)


async def test_the_old_name_of_a_repository_leads_to_the_new_one(browser: Browser) -> None:
    browser.sandbox.rename(browser.land.repository, "maya", "sight")
    async with browser.session.get(f"{browser.sandbox.url}/{FULL_NAME}/pull/1") as answer:
        assert (answer.status, answer.url.path) == (200, "/acme/sight/pull/1")
    await browser.comment("maya", "sent to the old name")
    assert [comment.body for comment in browser.land.pull.comments] == ["sent to the old name"]


async def test_commits_without_parents_and_trees(browser: Browser) -> None:
    folder = browser.land.repository.folder

    def git(*words: str) -> str:
        return subprocess.run(["git", "--git-dir", folder, *words], capture_output=True, check=True, text=True).stdout

    root = git("rev-list", "--max-parents=0", "main").strip()
    assert "Nothing changed." in await browser.get(f"/{FULL_NAME}/commit/{root}")
    assert "Not Found" in await browser.get(
        f"/{FULL_NAME}/commit/{git('rev-parse', 'main^{tree}').strip()}", status=404
    )


async def test_the_conversation_stands_in_order_of_time(browser: Browser) -> None:
    await browser.comment("maya", "first words")
    await browser.sandbox.push(browser.land.repository, "ada", "faster", {"train.py": b"print('again')\n"})
    await browser.send({"act": "review", "who": "maya", "event": "COMMENT", "body": "third words"})
    page = await browser.get(f"/{FULL_NAME}/pull/1")
    places = [page.index(words) for words in ("It is faster now.", "first words", "ada pushed", "third words")]
    assert places == sorted(places)
    head = browser.land.pull.head_sha
    assert f'<a href="/{FULL_NAME}/commit/{head[:10]}">' in page
    assert "again" in await browser.get(f"/{FULL_NAME}/commit/{head[:10]}")


async def test_reactions_are_counted(browser: Browser) -> None:
    comment = await browser.comment("maya", "hello")
    for login in ("ada", "tom"):
        browser.sandbox.acts.react(comment, browser.sandbox.state.account(login), "eyes")
    assert '<span title="ada, tom">👀 2</span>' in await browser.get(f"/{FULL_NAME}/pull/1")


async def test_the_changing_part_is_sent_only_when_it_changed(browser: Browser) -> None:
    source = f"{browser.pull_url}/timeline"
    async with browser.session.get(source) as first:
        tag = first.headers["ETag"]
    async with browser.session.get(source, headers={"If-None-Match": tag}) as same:
        assert same.status == 304
    await browser.comment("maya", "news")
    async with browser.session.get(source, headers={"If-None-Match": tag}) as changed:
        assert changed.status == 200
        assert "news" in await changed.text()
        assert changed.headers["ETag"] != tag


# ---- taking part ----------------------------------------------------------------------------------------------------


async def test_a_comment_is_shown_and_told(browser: Browser) -> None:
    page = await browser.send({"act": "comment", "who": "maya", "body": "/benchmark **resnet50**"})
    assert "<strong>resnet50</strong>" in page
    (told,) = browser.told("issue_comment")
    assert (told["action"], told["comment"]["body"]) == ("created", "/benchmark **resnet50**")
    assert told["sender"]["login"] == "maya"


async def test_who_acted_is_remembered(browser: Browser) -> None:
    page = await browser.send({"act": "comment", "who": "tom", "body": "hello"})
    assert '<option value="tom" selected>tom (triage)</option>' in page
    # a form without a choice is sent by whoever acted last
    await browser.send({"act": "comment", "body": "again"})
    assert [comment.author.login for comment in browser.land.pull.comments] == ["tom", "tom"]


async def test_people_with_a_right_and_one_stranger_may_be_chosen(browser: Browser) -> None:
    browser.sandbox.add_account("another-stranger")
    page = await browser.get(f"/{FULL_NAME}/pull/1")
    box = page.partition('id="comment"')[2].partition("</select>")[0]
    chosen = [attrs["value"] for tag, attrs in Elements(box).found if tag == "option"]
    assert chosen == ["maya", "ada", "tom", "sam"]


async def test_a_comment_is_edited_by_its_author(browser: Browser) -> None:
    comment = await browser.comment("sam", "befor")
    edit = {"act": "edit", "comment": str(comment.id)}
    page = await browser.send({**edit, "who": "sam", "body": "after"})
    assert comment.body == "after"
    assert "after</p>" in page
    told = list(browser.told("issue_comment"))[-1]
    assert (told["action"], told["changes"]) == ("edited", {"body": {"from": "befor"}})
    page = await browser.send({**edit, "who": "tom", "body": "no"}, status=403)
    assert 'role="alert"' in page
    assert comment.body == "after"
    await browser.send({**edit, "comment": "x", "who": "sam", "body": "no"}, status=404)


async def test_comments_of_the_bot_have_no_form(browser: Browser) -> None:
    land = browser.land
    browser.sandbox.acts.comment(land.repository, 1, land.app.bot, "Results", land.app)
    assert "New text of the comment" not in await browser.get(f"/{FULL_NAME}/pull/1")
    await browser.comment("sam", "mine")
    assert (await browser.get(f"/{FULL_NAME}/pull/1")).count("New text of the comment") == 1


async def test_reviews(browser: Browser) -> None:
    review = {"act": "review", "who": "maya"}
    assert "approved" in await browser.send({**review, "event": "APPROVE", "body": ""})
    assert "requested changes on" in await browser.send({**review, "event": "REQUEST_CHANGES", "body": "Why?"})
    assert "own pull request" in await browser.send({"act": "review", "who": "ada", "event": "APPROVE"}, status=422)
    states = [told["review"]["state"] for told in browser.told("pull_request_review")]
    assert states == ["approved", "changes_requested"]


async def test_closing_reopening_and_merging(browser: Browser) -> None:
    pull, close = browser.land.pull, {"act": "close"}
    assert "sam may not close this" in await browser.send({**close, "who": "sam", "event": "close"}, status=403)
    await browser.send({**close, "who": "ada", "event": "close"})
    assert not pull.open
    assert "closed already" in await browser.send({**close, "who": "ada", "event": "merge"}, status=422)
    await browser.send({**close, "who": "tom", "event": "reopen"})
    assert pull.open
    assert "right to write" in await browser.send({**close, "who": "tom", "event": "merge"}, status=403)
    assert pull.open
    assert "Merged" in await browser.send({**close, "who": "maya", "event": "merge"})
    assert [told["action"] for told in browser.told("pull_request")] == ["opened", "closed", "reopened", "closed"]


async def test_a_conflict_is_said_in_words(browser: Browser) -> None:
    await browser.sandbox.push(browser.land.repository, "maya", "main", {"train.py": b"print('other')\n"})
    page = await browser.send({"act": "close", "who": "maya", "event": "merge"}, status=405)
    assert "faster cannot be merged: it conflicts with main." in page
    assert browser.land.pull.open


async def test_what_is_wrong_stands_on_the_page_with_what_was_typed(browser: Browser) -> None:
    assert "Choose who acts." in await browser.send({"act": "comment", "body": "x"}, status=404)
    page = await browser.send({"act": "comment", "who": "maya", "body": "  "}, status=422)
    assert "Body is missing." in page
    assert "Make it faster" in page
    page = await browser.send({"act": "comment", "who": "nobody", "body": "long & thoughtful"}, status=404)
    assert "There is nobody here called nobody." in page
    assert "long &amp; thoughtful</textarea>" in page
    await browser.send({"act": "comment", "who": "benchbot[bot]", "body": "x"}, status=404)
    await browser.send({"act": "comment", "who": "acme", "body": "x"}, status=404)
    await browser.send({"act": "dance", "who": "maya"}, status=404)
    browser.land.repository.private = True
    assert "sam may not see" in await browser.send({"act": "comment", "who": "sam", "body": "x"}, status=403)
    assert browser.land.pull.comments == []


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/x-www-form-urlencoded", b"\xff\xfe"),
        ("application/x-www-form-urlencoded; charset=nothing", b"a=b"),
        ("multipart/form-data", b"x"),
    ],
)
async def test_what_no_form_sends(browser: Browser, kind: str, body: bytes) -> None:
    for path in (f"/{FULL_NAME}/pull/1", "/settings/apps/new", "/settings/apps/confirm"):
        url, headers = browser.sandbox.url + path, {"Content-Type": kind}
        async with browser.session.post(url, data=body, headers=headers) as answer:
            assert answer.status == 400
            assert "not what a form" in await answer.text()


async def test_buttons_of_a_check_run(browser: Browser) -> None:
    sandbox, land = browser.sandbox, browser.land
    action = {"label": "Cancel", "description": "Stop it.", "identifier": "cancel"}
    output = {
        "title": "Running",
        "summary": "*now*",
        "annotations": [
            {"path": "a.yml", "start_line": 3, "end_line": 3, "annotation_level": "failure", "message": "<b>no</b>"}
        ],
    }
    fields = {"name": "benchbot", "status": "in_progress", "actions": [action], "output": output}
    fields["details_url"] = "https://bench.example.org/requests/1"
    check = sandbox.acts.check(land.repository, land.app, land.pull.head_sha, fields)
    page = await browser.get(f"/{FULL_NAME}/pull/1")
    assert '<a href="https://bench.example.org/requests/1">Details</a>' in page
    assert "in progress: Running" in page
    assert "Re-run" not in page
    page = await browser.get(f"/{FULL_NAME}/runs/{check.id}")
    assert "<em>now</em>" in page
    assert "a.yml:3" in page
    assert "&lt;b&gt;no&lt;/b&gt;" in page
    press = {"act": "press", "press": f"{check.id}/cancel"}
    await browser.send({**press, "who": "maya"})
    assert "write rights" in await browser.send({**press, "who": "sam"}, status=403)
    await browser.send({**press, "who": "maya", "press": f"{check.id}/explode"}, status=404)
    await browser.send({**press, "who": "maya", "press": "1/cancel"}, status=404)
    pressed = [told for told in browser.told("check_run") if told["action"] == "requested_action"]
    assert [told["requested_action"] for told in pressed] == [{"identifier": "cancel"}]
    sandbox.acts.update_check(land.repository, check, {"conclusion": "success", "actions": []})
    assert f'value="{check.id}/">Re-run</button>' in await browser.get(f"/{FULL_NAME}/pull/1")
    await browser.send({"act": "press", "press": f"{check.id}/", "who": "ada"})
    told = list(browser.told("check_run"))[-1]
    assert (told["action"], told["sender"]["login"]) == ("rerequested", "ada")


async def test_a_check_run_links_to_the_web_only(browser: Browser) -> None:
    land = browser.land
    fields = {"name": "x", "status": "queued", "details_url": "javascript:alert(1)"}
    check = browser.sandbox.acts.check(land.repository, land.app, land.pull.head_sha, fields)
    for path in ("pull/1", f"runs/{check.id}"):
        assert "javascript:" not in await browser.get(f"/{FULL_NAME}/{path}")


async def test_the_commands_to_push_work_as_they_stand(browser: Browser, tmp_path: Path) -> None:
    page = await browser.get(f"/{FULL_NAME}/pull/1")
    ada, _, others = page.partition("as ada</summary><pre><code>")[2].partition("</code>")
    assert "as maya</summary>" in others
    assert "as tom</summary>" not in others
    lines = [line.replace("&#39;", "'").replace("git ", "/usr/bin/git ", 1) for line in ada.strip().splitlines()]
    script = tmp_path / "push.sh"
    script.write_text("\n".join(["set -e", *lines]))
    before = browser.land.pull.head_sha
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "GIT_TERMINAL_PROMPT": "0"}
    await _run(["sh", str(script)], tmp_path, environment)
    assert browser.land.pull.head_sha != before
    assert "ada pushed" in await browser.get(f"/{FULL_NAME}/pull/1")


async def _run(command: list[str], folder: Path, environment: dict[str, str]) -> None:
    ended = await asyncio.to_thread(
        subprocess.run, command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr


async def test_a_branch_cannot_bring_a_command_of_its_own(browser: Browser) -> None:
    browser.land.pull.head_ref = "x;touch$IFS'y"
    page = await browser.get(f"/{FULL_NAME}/pull/1")
    assert "--branch=&#39;x;touch$IFS&#39;&#34;&#39;&#34;&#39;y&#39; " in page


async def test_tokens_are_made_once_and_cannot_be_guessed(browser: Browser) -> None:
    for _ in range(3):
        await browser.get(f"/{FULL_NAME}/pull/1")
    tokens = browser.sandbox.state.tokens
    assert sorted(token.account.login for token in tokens.values()) == ["ada", "maya"]
    assert all(len(text) == 40 for text in tokens)


# ---- what is kept out -----------------------------------------------------------------------------------------------

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(1)><a href='javascript:alert(1)' class=x id=end>x</a>"
    "<style>*{display:none}</style><iframe src=/></iframe><form action=/><input name=q><button>b</button></form>\n\n"
    "[x](javascript:alert(1)) ![x](data:text/html,x) <svg onload=alert(1)></svg> </article></main><base href=//evil>\n"
    "<details open><summary>more</summary>\n\n**kept**\n\n</details>"
)


async def test_what_a_comment_cannot_do(browser: Browser) -> None:
    comment = await browser.comment("sam", HOSTILE)
    page = await browser.get(f"/{FULL_NAME}/pull/1")
    shown = page.partition(f'id="issuecomment-{comment.id}"')[2].partition('<div class="body text">')[2]
    shown, edit, _ = shown.partition('<details class="edit">')
    assert edit
    found = Elements(shown).found
    tags = {tag for tag, _ in found}
    assert tags <= {"p", "br", "img", "a", "details", "summary", "strong", "div"}
    assert {"details", "strong", "img"} <= tags
    attributes = {name for _, attrs in found for name in attrs}
    assert attributes <= {"src", "href", "alt", "rel", "open"}
    assert all("javascript:" not in str(value) for _, attrs in found for value in attrs.values())
    # nothing closes what stands around the comment
    assert shown.count("</div>") == 1
    # only the page's own script runs
    assert [attrs for tag, attrs in Elements(page).found if tag == "script"] == [{"src": "/fresh.js"}]


async def test_titles_and_names_are_text(browser: Browser) -> None:
    browser.land.pull.title = browser.land.pull.head_ref = "<b onclick=x>"
    browser.land.pull.happenings.append((0.0, "<i>x</i>"))
    for path in ("pulls", "pull/1"):
        page = await browser.get(f"/{FULL_NAME}/{path}")
        assert "<b onclick" not in page
        assert "<i>x" not in page


async def test_other_sites_cannot_send_forms(browser: Browser) -> None:
    form = {"act": "comment", "who": "maya", "body": "/benchmark all"}
    await browser.send(form, status=403, headers={"Origin": "http://evil.example"})
    await browser.send(form, status=403, headers={"Origin": "null"})
    await browser.send(form, status=403, headers={"Sec-Fetch-Site": "cross-site"})
    await browser.send(form, status=403, headers={"Sec-Fetch-Site": "same-site"})
    await browser.send(form, status=421, headers={"Host": "evil.example"})
    await browser.send(form, status=421, headers={"Host": "[", "Origin": "http://["})
    assert browser.land.pull.comments == []
    await browser.send(form, headers={"Origin": browser.sandbox.url, "Sec-Fetch-Site": "same-origin"})
    assert len(browser.land.pull.comments) == 1
    async with browser.session.get(browser.pull_url, headers={"Host": "evil.example"}) as answer:
        assert answer.status == 421
    async with browser.session.get(browser.pull_url) as answer:
        assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
