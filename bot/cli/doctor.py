"""`benchbot doctor`: what keeps this bot from working, and what to do about it; and incidents by their reference."""

import argparse
import asyncio
import json
import os
import re
import sys
import time
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence

from aiohttp import ClientSession, ClientTimeout

from bot.app import build_backends
from bot.cli import examine, examine_github
from bot.core.wording import did_you_mean
from bot.github.auth import AppKey
from bot.github.client import GitHub
from bot.report.text import plain
from bot.settings import Settings
from bot.store.database import Database
from bot.store.incidents import incidents_of
from bot.store.tables import Incident
from runners.backends import find_backends
from runners.backends.base import Backend, Finding

HELP = "say what keeps this bot from working and what to do, or look up a reference"
EXAMPLES = (
    "benchbot doctor",
    "benchbot doctor gce kubernetes",
    "benchbot doctor --json",
    "benchbot doctor mfzwizltoq      # the reference of a page that says that something went wrong",
)
# of an incident, and of what its row is called
_REFERENCE = re.compile(r"[a-z2-7]{10}|[a-z2-7]{26}")
_PATIENCE_S = 120.0
_COLOURS = {"ok": "32", "warning": "33", "fault": "31"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Backends or a reference, and how to print."""
    words = "backends to look at (all by default), or references of incidents"
    parser.add_argument("words", nargs="*", metavar="WORD", help=words)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """0 without faults, 1 with faults or for an unknown reference, 2 for a wrong call."""
    known = find_backends()
    references = [word for word in args.words if word not in known]
    wrong = next((word for word in references if not _REFERENCE.fullmatch(word)), None)
    if wrong is not None:
        sentence = f"{wrong} is no backend and no reference. {did_you_mean(wrong, list(known))}"
        print(f"benchbot doctor: {sentence}", file=sys.stderr)
        return 2
    if references and len(references) < len(args.words):
        print("benchbot doctor: give backends or references, not both", file=sys.stderr)
        return 2
    settings, found = examine.settings_of(os.environ)
    if references and settings is not None:
        return asyncio.run(_look_up(settings, references, as_json=args.json))
    return asyncio.run(_examine(settings, found, args.words, as_json=args.json))


async def _examine(settings: Settings | None, found: list[Finding], named: list[str], *, as_json: bool) -> int:
    """Print each part as soon as it is known."""
    said: list[tuple[str, Finding]] = []
    colour = sys.stdout.isatty()
    async for part, findings in _parts(settings, found, named):
        said += [(part, finding) for finding in findings]
        if not as_json:
            print(_text(part, findings, colour=colour), flush=True)
    counts = Counter[str](finding.level for _, finding in said)
    if as_json:
        rows = [
            {"part": part, "about": each.about, "level": each.level, "sentence": each.sentence, "advice": each.advice}
            for part, each in said
        ]
        print(json.dumps({"faults": counts["fault"], "warnings": counts["warning"], "findings": rows}, indent=2))
    else:
        print(_summary(counts))
    return 1 if counts["fault"] else 0


async def _parts(
    settings: Settings | None, found: list[Finding], named: list[str]
) -> AsyncIterator[tuple[str, list[Finding]]]:
    if settings is None:
        yield "Settings", found
        return
    async with ClientSession(timeout=ClientTimeout(total=20)) as session:
        if not named:
            about_files = [*examine.data_folder(settings), *await examine.database(settings)]
            yield "This bot", [*found, *about_files, *await examine.addresses(settings, session)]
            yield "GitHub", await examine_github.examine(settings, session)
        elif any(finding.level != "ok" for finding in found):
            yield "Settings", found
        async for part in _backends(settings, session, named):
            yield part


async def _backends(
    settings: Settings, session: ClientSession, named: list[str]
) -> AsyncIterator[tuple[str, list[Finding]]]:
    try:
        database = Database(settings.database_url)
    except ImportError:
        # that its driver is missing has been told; no backend but the pool needs it
        database = Database("sqlite+aiosqlite:///file:none?mode=ro&uri=true")
    key = AppKey(settings.app_id, settings.private_key, settings.github_api_url)
    backends = build_backends(settings, database, GitHub(session, key) if settings.app_id else None)
    try:
        for name in named or backends:
            if name not in backends:
                advice = (
                    f'Set [hardware.NAME] with backend = "{name}" in benchbot.toml, as docs/backends/README.md shows.'
                )
                lack = Finding(about=name, level="fault", sentence="It is not configured.", advice=advice)
                yield f"Backend {name}", [lack]
                continue
            hardware = {each.name: each.options for each in settings.hardware.values() if each.backend == name}
            yield f"Backend {name}", await _of_backend(backends[name], hardware)
    finally:
        await database.close()


async def _of_backend(backend: Backend, hardware: Mapping[str, Mapping[str, str]]) -> list[Finding]:
    try:
        async with asyncio.timeout(_PATIENCE_S):
            return list(await backend.check(hardware))
    except TimeoutError:
        told, advice = f"It did not answer within {_PATIENCE_S:.0f} s.", "Check the network, and try again."
    except Exception as error:
        # a bug of ours must not hide what else was found
        told = f"The check itself failed: {traceback.format_exception_only(error)[-1].strip()}"
        advice = f"Report it with the output of: benchbot doctor {backend.name} --json"
    return [Finding(about="check", level="fault", sentence=told, advice=advice)]


def _text(part: str, findings: Sequence[Finding], *, colour: bool) -> str:
    lines = [part]
    for position, finding in enumerate(findings):
        level = f"{finding.level:<8}"
        if colour:
            level = f"\x1b[{_COLOURS[finding.level]}m{level}\x1b[0m"
        lines.append(f"  {level} {plain(finding.about)}: {plain(finding.sentence)}")
        # one advice for several findings in a row is given once
        if finding.advice and [finding.advice] != [each.advice for each in findings[position + 1 : position + 2]]:
            lines.append(f"           Next: {plain(finding.advice)}")
    return "\n".join(lines) + "\n"


def _summary(counts: Mapping[str, int]) -> str:
    told = [
        f"{counts[level]} {level}{'s' if counts[level] > 1 else ''}" for level in ("fault", "warning") if counts[level]
    ]
    return f"{' and '.join(told)}." if told else "All is well."


async def _look_up(settings: Settings, references: list[str], *, as_json: bool) -> int:
    """Print the incidents of references; nothing is made where there is no database."""
    found: list[Incident] = []
    if examine.is_made(settings):
        opened = Database(settings.database_url)
        try:
            async with opened.read() as tx:
                for reference in references:
                    found += await incidents_of(tx, reference)
        except Exception as error:
            first = (str(error) or type(error).__name__).splitlines()[0]
            print(f"benchbot doctor: the database does not answer: {first}", file=sys.stderr)
            return 1
        finally:
            await opened.close()
    if as_json:
        rows = [
            {"reference": one.id, "happened_at": one.happened_at, "where": one.where, "traceback": one.traceback}
            for one in found
        ]
        print(json.dumps({"incidents": rows}, indent=2))
    for one in () if as_json else found:
        at = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(one.happened_at))
        print(f"{one.id}: {at}, {plain(one.where)}\n{plain(one.traceback, lines=True)}")
    if not found:
        told = f"no incident is kept under {', '.join(references)} in {examine.shown_url(settings)}"
        print(f"benchbot doctor: {told}; is this the bot that showed it?", file=sys.stderr)
    return 0 if found else 1
