"""`benchbot demo`: the whole story on one laptop. A local GitHub, this bot, real trainings, three pull requests."""

import argparse
import asyncio
import json
import logging
import re
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from aiohttp import ClientError, ClientSession
from sqlalchemy import select

from bot.app import Bot, open_bot
from bot.cli.configured import until_stopped
from bot.cli.conversation import Maintainer, tell
from bot.cli.local import free_port, local_settings
from bot.cli.manifest import read_manifest
from bot.core.nouns import Report
from bot.report.data import request_data
from bot.sandbox import training_repository
from bot.sandbox.registering import Registration
from bot.sandbox.state import Pull
from bot.sandbox.world import Sandbox
from bot.store.codec import load
from bot.store.tables import Machine, Message, Request

HELP = "the whole story on this machine: a local GitHub, three pull requests, real training"
EXAMPLES = ("benchbot demo", "benchbot demo --serve", "benchbot demo --json demo.json")
FULL_NAME = "acme/digits"
MAINTAINER, STRANGER = "maya", "sam"
COMMAND = "/benchmark digits-resnet"
PATIENCE_S = 1800.0
NOT_MEASURED = (None, "failed", "not measured")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Whether it stays up, and where a record of it goes."""
    parser.add_argument("--serve", action="store_true", help="stay up: open the page it prints, type more commands")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what happened as JSON")
    parser.add_argument("--folder", type=Path, help="where everything is kept; a temporary folder by default")
    parser.add_argument("--port", type=int, default=0, help="port of the local GitHub; the bot takes the next one")


def run(args: argparse.Namespace) -> int:
    """0 when every request was measured, every link answered and nothing is left running."""
    wrong = _not_ready(args)
    if wrong:
        print(f"benchbot demo: {wrong}", file=sys.stderr)
        return 2
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    folder = args.folder or Path(tempfile.mkdtemp(prefix="benchbot-demo-"))
    try:
        return asyncio.run(_demo(folder.resolve(), args))
    except KeyboardInterrupt:
        return 130
    finally:
        if args.folder is None:
            shutil.rmtree(folder, ignore_errors=True)


def _not_ready(args: argparse.Namespace) -> str:
    missing = [name for name in ("torch", "sklearn") if find_spec(name) is None]
    if missing:
        return f"{' and '.join(missing)} cannot be imported here; `make demo` installs them (benchbot[demo])"
    if shutil.which("git") is None:
        return "git is not installed here"
    if args.folder is not None and args.folder.exists() and any(args.folder.iterdir()):
        return f"{args.folder} is not empty; name a new folder"
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Everything that plays: the local GitHub with its pull requests, the bot, and who types."""

    sandbox: Sandbox
    bot: Bot
    maintainer: Maintainer
    pulls: tuple[Pull, ...]


async def _demo(folder: Path, args: argparse.Namespace) -> int:
    async with set_stage(folder, args.port) as stage:
        print(f"A local GitHub with three pull requests: {stage.sandbox.url}/{FULL_NAME}/pulls", flush=True)
        began = time.monotonic()
        for pull in stage.pulls:
            print(f"{MAINTAINER} comments on #{pull.number}: {COMMAND}", flush=True)
            await asyncio.to_thread(stage.maintainer.comment, pull.number, COMMAND)
        reports = await _watch(stage)
        for pull in stage.pulls:
            print()
            print(await asyncio.to_thread(tell, stage.maintainer, pull.number), flush=True)
        broken = await _broken_links(stage)
        left = await _left_running(stage.bot)
        if args.json is not None:
            args.json.write_text(json.dumps({"requests": await _record(stage, reports)}, indent=2))
        print(f"{len(reports)} requests in {time.monotonic() - began:.0f} s.", *broken, *left, sep="\n", flush=True)
        if args.serve:
            print(f"Open {stage.sandbox.url}/{FULL_NAME}/pulls and type commands; Ctrl-C ends it.", flush=True)
            await until_stopped()
        measured = len(reports) == len(stage.pulls) and all(r.verdict not in NOT_MEASURED for r in reports)
        return 0 if measured and not broken and not left else 1


@asynccontextmanager
async def set_stage(folder: Path, port: int = 0, **other: Any) -> AsyncIterator[Stage]:
    """Set everything up in an empty folder, with `other` settings; at the end nothing is left running."""
    repository = await asyncio.to_thread(training_repository.build, folder / "digits.git")
    sandbox = Sandbox(folder / "github")
    await sandbox.start(port)
    try:
        settings = local_settings(folder / "bot", port + 1 if port else free_port())
        told = read_manifest()
        registration = Registration(
            name=told["name"],
            permissions=told["default_permissions"],
            events=tuple(told["default_events"]),
            webhook_url=settings.base_url + told["hook_attributes"]["path"],
        )
        place = sandbox.add_repository(FULL_NAME, repository.path)
        app = sandbox.add_app(place.owner.login, registration)
        sandbox.install(app, place.owner.login)
        sandbox.permit(place, MAINTAINER, "maintain")
        sandbox.add_account(STRANGER)
        for login in {pull.author for pull in repository.pulls}:
            sandbox.permit(place, login, "write")
        settings = replace(
            settings,
            app_id=app.id,
            private_key=app.private_key,
            webhook_secret=app.webhook_secret,
            github_api_url=sandbox.api_url,
            github_web_url=sandbox.url,
            backends={"local": {**settings.backend_options("local"), "base_environment": sys.prefix}},
        )
        settings = replace(settings, **other)
        async with open_bot(settings) as bot, bot.serving(), bot.working():
            pulls = [
                await sandbox.open_pull(place, seed.author, seed.branch, seed.title, seed.body)
                for seed in repository.pulls
            ]
            token = sandbox.token_of(MAINTAINER)
            maintainer = await asyncio.to_thread(Maintainer, sandbox.api_url, token, FULL_NAME)
            try:
                yield Stage(sandbox=sandbox, bot=bot, maintainer=maintainer, pulls=tuple(pulls))
            finally:
                maintainer.close()
                await _end_machines(bot)
    finally:
        await sandbox.stop()


async def _watch(stage: Stage) -> tuple[Report, ...]:
    """Tell the check runs' news as they come, until every request has its last word on GitHub."""
    shown: dict[int, str] = {}
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        for pull in stage.pulls:
            for check in await asyncio.to_thread(stage.maintainer.checks, pull.number):
                news = f"#{pull.number} {check.name}: {check.conclusion or check.status}, {check.output.title}"
                if shown.get(check.id) != news:
                    print(news, flush=True)
                    shown[check.id] = news
        reports = await finished(stage.bot)
        if len(reports) == len(stage.pulls):
            return reports
        await asyncio.sleep(1.0)
    raise TimeoutError(f"the requests did not end within {PATIENCE_S:.0f} s")


async def finished(bot: Bot) -> tuple[Report, ...]:
    """Reports of requests of which nothing remains to be said, and whose machines are gone."""
    async with bot.services.database.read() as tx:
        requests = (await tx.scalars(select(Request).order_by(Request.number, Request.created_at))).all()
        unsent = (await tx.scalars(select(Message.id).where(Message.state == "pending"))).all()
        machines = (await tx.scalars(select(Machine.id).where(Machine.state != "gone"))).all()
    if unsent or machines:
        return ()
    return tuple(load(Report, request.report) for request in requests if request.state == "done")


async def _broken_links(stage: Stage) -> list[str]:
    """Every address in the bot's comments that does not answer 200."""
    addresses: set[str] = set()
    for pull in stage.pulls:
        for entry in await asyncio.to_thread(stage.maintainer.entries, pull.number):
            addresses |= set(re.findall(r'https?://[^\s)"<>]+', entry.body))
    broken = []
    async with ClientSession() as session:
        for address in sorted(addresses):
            try:
                async with session.get(address) as answer:
                    await answer.read()
                    if answer.status != 200:
                        broken.append(f"{address} answers {answer.status}")
            except ClientError as error:
                broken.append(f"{address} does not answer: {error}")
    print(f"{len(addresses) - len(broken)} of {len(addresses)} links in the comments answer.")
    return broken


async def _left_running(bot: Bot) -> list[str]:
    found = []
    for backend in bot.services.backends.values():
        found += [f"machine {sighting.name} is still there" for sighting in await backend.list_owned()]
    return found


async def _end_machines(bot: Bot) -> None:
    """Delete what is left when the demo is stopped in the middle, and what was kept from lease to lease."""
    for backend in bot.services.backends.values():
        for sighting in await backend.list_owned():
            await backend.delete(sighting.name, sighting.zone)
        await asyncio.to_thread(backend.clear)


async def _record(stage: Stage, reports: tuple[Report, ...]) -> list[dict[str, Any]]:
    record = []
    for report in reports:
        entries = await asyncio.to_thread(stage.maintainer.entries, report.number)
        mine = [entry.body for entry in entries if f"benchbot:{report.request_id}:results" in entry.body]
        record.append(request_data(report, comment=mine[0] if mine else ""))
    return record
