"""GitHub's manifest flow on the pages: asked, confirmed, installed."""

import json

import pytest

from tests.unit.sandbox.conftest import Browser, Elements

MANIFEST = {
    "name": "Second bot",
    "url": "https://example.org",
    "redirect_url": "http://127.0.0.1:9/done?from=here",
    "setup_url": "http://127.0.0.1:9/welcome",
    "hook_attributes": {"url": "http://127.0.0.1:9/hook"},
    "default_permissions": {"checks": "write"},
    "default_events": ["check_run"],
}


async def _post(browser: Browser, path: str, form: dict[str, str], status: int) -> tuple[str, str]:
    """Where the answer leads, and its text."""
    async with browser.session.post(browser.sandbox.url + path, data=form, allow_redirects=False) as answer:
        assert answer.status == status, await answer.text()
        return answer.headers.get("Location", ""), await answer.text()


async def test_an_app_is_registered_by_its_manifest(browser: Browser) -> None:
    state = browser.sandbox.state
    text = json.dumps(MANIFEST)
    _, page = await _post(browser, "/organizations/acme/settings/apps/new?state=s%261", {"manifest": text}, 200)
    assert len(state.apps) == 1  # asking changes nothing
    hidden = {
        str(attrs["name"]): str(attrs["value"])
        for tag, attrs in Elements(page).found
        if tag == "input" and attrs["type"] == "hidden"
    }
    assert hidden == {"manifest": text, "state": "s&1", "organization": "acme"}
    target, _ = await _post(browser, "/settings/apps/confirm", hidden, 303)
    (code,) = state.manifests
    assert target == f"http://127.0.0.1:9/done?from=here&code={code}&state=s%261"
    app = state.manifests[code]
    assert (app.slug, app.owner.login, app.webhook_url) == ("second-bot", "acme", "http://127.0.0.1:9/hook")
    assert app.permissions == {"metadata": "read", "checks": "write"}
    _, page = await _post(browser, "/settings/apps/confirm", hidden, 422)
    assert "choose another name" in page
    await _post(browser, "/settings/apps/confirm", {**hidden, "name": "Third"}, 303)
    assert [app.slug for app in state.apps.values()] == ["benchbot", "second-bot", "third"]


async def test_an_app_of_a_person(browser: Browser) -> None:
    _, page = await _post(browser, "/settings/apps/new", {"manifest": json.dumps(MANIFEST)}, 200)
    assert "<option>maya</option>" in page
    assert "acme" not in page
    await _post(browser, "/settings/apps/confirm", {"manifest": json.dumps(MANIFEST), "who": "tom"}, 303)
    (app,) = browser.sandbox.state.manifests.values()
    assert (app.owner.login, app.owner.kind) == ("tom", "User")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"name": None}, "no name"),
        ({"name": "!!"}, "no name"),
        ({"name": "x" * 35}, "too long"),
        ({"redirect_url": "javascript:alert(1)"}, "redirect_url is no address"),
        ({"redirect_url": "http://["}, "redirect_url is no address"),
        ({"setup_url": "x"}, "setup_url is no address"),
        ({"url": 7}, "url is no address"),
        ({"hook_attributes": []}, ""),
        ({"hook_attributes": [1]}, "hook_attributes"),
        ({"default_permissions": ["checks"]}, "default_permissions"),
        ({"default_permissions": {"checks": "all"}}, "default_permissions"),
        ({"default_events": "push"}, "default_events"),
    ],
)
async def test_a_wrong_manifest_is_refused_in_words(browser: Browser, change: dict[str, object], sentence: str) -> None:
    form = {"manifest": json.dumps(MANIFEST | change)}
    _, page = await _post(browser, "/settings/apps/new", form, 422 if sentence else 200)
    assert sentence in page
    if sentence:
        await _post(browser, "/settings/apps/confirm", form, 422)
        assert browser.sandbox.state.manifests == {}


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000])
async def test_what_is_no_manifest(browser: Browser, text: str) -> None:
    assert "JSON" in (await _post(browser, "/settings/apps/new", {"manifest": text}, 422))[1]


async def test_an_app_is_installed_once_and_leads_to_its_own_page(browser: Browser) -> None:
    await _post(browser, "/settings/apps/confirm", {"manifest": json.dumps(MANIFEST), "who": "maya"}, 303)
    path = "/apps/second-bot/installations/new"
    assert "Install on acme" in await browser.get(path)
    state = browser.sandbox.state
    for _ in range(2):
        target, _ = await _post(browser, path, {"owner": "acme"}, 303)
        installed = [each for each in state.installations.values() if each.app.slug == "second-bot"]
        assert [each.account.login for each in installed] == ["acme"]
        assert target == f"http://127.0.0.1:9/welcome?installation_id={installed[0].id}&setup_action=install"
    await _post(browser, path, {"owner": "nobody"}, 404)
    await browser.get("/apps/nothing/installations/new", status=404)
    # an App without such a page
    _, page = await _post(browser, "/apps/benchbot/installations/new", {"owner": "acme"}, 200)
    assert "is installed on acme" in page
