"""`benchbot setup`: register the App with GitHub from app.yml, and keep its credentials. GitHub's manifest flow."""

import argparse
import asyncio
import json
import os
import secrets
import sys
import tomllib
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from aiohttp import ClientError, ClientSession, web
from aiohttp.typedefs import Handler

from bot.cli.configured import CONFIG, settings_or_exit
from bot.cli.manifest import NoManifest, manifest_for
from bot.settings import Settings

HELP = "register the GitHub App, and store its credentials"
EXAMPLES = (
    "benchbot setup --base-url https://bench.example.org",
    "benchbot setup --base-url https://bench.example.org --organization acme",
)
KEY_FILE = "github-app.pem"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where the server will be, and whose App it is."""
    parser.add_argument("--base-url", required=True, help="the public address of this server")
    parser.add_argument("--organization", default="", help="the organisation that owns the App; you by default")
    parser.add_argument("--port", type=int, default=8321, help="port of the page on this machine that starts it")


def run(args: argparse.Namespace) -> int:
    """0 when the credentials are stored, 2 for a wrong call, 3 when GitHub does not answer as it should."""
    settings = settings_or_exit()
    path = Path(os.environ.get("BENCHBOT_CONFIG", CONFIG))
    base_url = args.base_url.rstrip("/")
    if not base_url.startswith(("https://", "http://")):
        print("benchbot setup: --base-url begins with https:// (or http://)", file=sys.stderr)
        return 2
    known = tomllib.loads(path.read_text()) if path.is_file() else {}
    if "github" in known or settings.app_id:
        print(f"benchbot setup: {path} names an App already; take [github] out to register another", file=sys.stderr)
        return 2
    try:
        asked = Asked(settings=settings, path=path, base_url=base_url, organization=args.organization, port=args.port)
        return asyncio.run(_setup(asked, "base_url" in known))
    except NoManifest as missing:
        print(f"benchbot setup: {missing}", file=sys.stderr)
        return 3
    except OSError as error:
        print(f"benchbot setup: {error}; another --port may help", file=sys.stderr)
        return 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was asked for, and where the answer goes."""

    settings: Settings
    path: Path
    base_url: str
    organization: str
    port: int

    @property
    def local_url(self) -> str:
        """The page on this machine."""
        return f"http://127.0.0.1:{self.port}"


async def _setup(asked: Asked, has_base_url: bool) -> int:
    state = secrets.token_urlsafe(16)
    code: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    manifest = manifest_for(asked.base_url, f"{asked.local_url}/setup/done")
    app = web.Application()
    app.router.add_get("/", _first_page(asked, manifest, state))
    app.router.add_get("/setup/done", _last_page(code, state))
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", asked.port).start()
        print(f"Open {asked.local_url} in a browser on this machine, and confirm on GitHub.", flush=True)
        credentials = await _exchange(asked, await code)
    finally:
        await runner.cleanup()
    if credentials is None:
        return 3
    _store(asked, credentials, has_base_url)
    print(f"Registered {credentials['html_url']}; credentials are in {asked.path}.")
    print(f"Install it on your repositories: {credentials['html_url']}/installations/new")
    return 0


def _first_page(asked: Asked, manifest: dict[str, Any], state: str) -> Handler:
    """A form that carries the manifest to GitHub; a person presses its button."""
    owner = f"/organizations/{asked.organization}" if asked.organization else ""
    target = f"{asked.settings.github_web_url}{owner}/settings/apps/new?{urlencode({'state': state})}"
    text = (
        '<!doctype html><meta charset="utf-8"><title>benchbot setup</title>'
        f'<form method="post" action="{escape(target)}">'
        f'<input type="hidden" name="manifest" value="{escape(json.dumps(manifest))}">'
        f"<p>benchbot will be reached at <b>{escape(asked.base_url)}</b>.</p>"
        "<button>Continue on GitHub</button></form>"
    )

    async def show(_: web.Request) -> web.Response:
        return web.Response(text=text, content_type="text/html")

    return show


def _last_page(code: asyncio.Future[str], state: str) -> Handler:
    """Where GitHub sends the browser back; only with the state that we gave it."""

    async def take(request: web.Request) -> web.Response:
        if not secrets.compare_digest(request.query.get("state", ""), state) or not request.query.get("code"):
            return web.Response(status=400, text="This answer does not belong to this setup; start it again.")
        if not code.done():
            code.set_result(request.query["code"])
        return web.Response(text="Registered. The rest is said on the terminal.")

    return take


async def _exchange(asked: Asked, code: str) -> dict[str, str] | None:
    """The credentials that the code stands for; GitHub gives them once."""
    url = f"{asked.settings.github_api_url}/app-manifests/{code}/conversions"
    try:
        async with ClientSession() as session, session.post(url) as answer:
            if answer.status != 201:
                print(f"benchbot setup: GitHub answered {answer.status} to the code; start again", file=sys.stderr)
                return None
            told: dict[str, str] = await answer.json()
            return told
    except ClientError as error:
        print(f"benchbot setup: {url} does not answer: {error}", file=sys.stderr)
        return None


def _store(asked: Asked, credentials: dict[str, str], has_base_url: bool) -> None:
    """The key in a file that only we can read, the rest in benchbot.toml, also only for us."""
    folder = asked.settings.data_folder
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    key = folder / KEY_FILE
    _write_private(key, credentials["pem"])
    before = asked.path.read_text() if asked.path.is_file() else ""
    first = "" if has_base_url else f"base_url = {json.dumps(asked.base_url)}\n"
    table = [
        "[github]",
        f"app_id = {int(credentials['id'])}",
        f"private_key_file = {json.dumps(str(key.resolve()))}",
        f"webhook_secret = {json.dumps(credentials['webhook_secret'])}",
    ]
    if before and not before.endswith("\n"):
        before += "\n"
    _write_private(asked.path, first + before + "\n".join(table) + "\n")


def _write_private(path: Path, text: str) -> None:
    """A whole file or none, never readable for others."""
    half = path.with_name(path.name + ".new")
    with os.fdopen(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    half.replace(path)
