"""What `benchbot doctor` finds out about a deployment itself: settings, files, database, addresses. Only looks."""

import asyncio
import os
import pwd
import shutil
import time
import tomllib
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from aiohttp import (
    ClientConnectorCertificateError,
    ClientConnectorDNSError,
    ClientConnectorError,
    ClientError,
    ClientSession,
)
from sqlalchemy import make_url

from bot.cli.configured import CONFIG
from bot.core.wording import did_you_mean
from bot.settings import KEYS, Settings, load_settings
from bot.store.database import Database
from bot.store.incidents import incidents_since
from bot.store.migrate import revisions
from runners.backends import find_backends
from runners.backends.base import Finding, Level
from runners.protocol import PREFIX

_LITTLE_GB, _TOO_LITTLE_GB = 10, 1
_PATIENCE_S = 15.0
_DAY_S = 86_400.0


def _say(about: str, level: Level, sentence: str, advice: str = "") -> Finding:
    return Finding(about=about, level=level, sentence=sentence, advice=advice)


def settings_of(environment: Mapping[str, str]) -> tuple[Settings | None, list[Finding]]:
    """The settings if there are any to go on with, and every fault in them at once."""
    named = environment.get("BENCHBOT_CONFIG", "")
    path, text = Path(named or CONFIG), None
    if os.path.isfile(path):
        try:
            text = path.read_text()
        except (OSError, ValueError):
            told = f"{_me()} cannot read {path.absolute()} as a text; it belongs to {_owner(path)}."
            return None, [_say("settings", "fault", told, _as_owner(path))]
    elif named:
        advice = "Set BENCHBOT_CONFIG to the path of benchbot.toml, or take it out of the environment."
        return None, [_say("settings", "fault", f"BENCHBOT_CONFIG names {named}, which is no file.", advice)]
    loaded = load_settings(environment, text)
    odd = _odd_variables(environment)
    if isinstance(loaded, tuple):
        mend = f"Change it in {path}; docs/settings.md lists every key."
        by_variable = {key.variable: f"Change the variable {key.variable}." for key in KEYS.values()}
        faults = [_say(each.where, "fault", each.sentence, by_variable.get(each.where, mend)) for each in loaded]
        return None, faults + odd
    told = f"They come from {path.absolute()}" if text is not None else f"There is no {CONFIG} in {Path.cwd()}"
    here = sum(environment.get(key.variable, "") != "" for key in KEYS.values())
    told += f"; the environment sets {here}" if here else ""
    told += (
        "." if text is not None else "; every other key has its default." if here else "; every key has its default."
    )
    return loaded, [_say("settings", "ok", told), *_secrets(environment, path, text), *odd, *_unknown(loaded)]


def _odd_variables(environment: Mapping[str, str]) -> list[Finding]:
    known = [key.variable for key in KEYS.values()] + ["BENCHBOT_CONFIG"]
    return [
        _say(
            name, "warning", f"benchbot reads no such variable. {did_you_mean(name, known)}", f"Rename or unset {name}."
        )
        for name in sorted(environment)
        if name.startswith("BENCHBOT_") and name not in known
    ]


def _secrets(environment: Mapping[str, str], path: Path, text: str | None) -> list[Finding]:
    """Files with secrets in them that others may read."""
    github = tomllib.loads(text or "").get("github", {})
    key_file = environment.get("BENCHBOT_GITHUB_PRIVATE_KEY_FILE") or github.get("private_key_file", "")
    files = [path.absolute()] if {"private_key", "webhook_secret"} & set(github) else []
    files += [Path(key_file).expanduser().absolute()] if key_file else []
    return [
        _say("secrets", "warning", f"Other users of this host can read {file}.", f"chmod 600 {file}")
        for file in files
        if file.stat().st_mode & 0o077
    ]


def _unknown(settings: Settings) -> list[Finding]:
    """Backends that are named and not there."""
    known = list(find_backends())
    named = {f"hardware.{each.name}": each.backend for each in settings.hardware.values()}
    named |= {f"backends.{name}": name for name in settings.backends}
    return [
        _say(
            where, "fault", f"There is no backend {name}. {did_you_mean(name, known)}", f"Change [{where}] in {CONFIG}."
        )
        for where, name in named.items()
        if name not in known
    ]


def data_folder(settings: Settings) -> list[Finding]:
    """Whether it can be written, by nobody else, and has room."""
    folder = settings.data_folder
    # what is behind a closed door counts as not there
    existing = next(path for path in (folder, *folder.parents) if os.path.exists(path))
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        told = f"{_me()} cannot write in {existing}, which belongs to {_owner(existing)}."
        advice = _as_owner(existing) if existing == folder else f"sudo install -d -m 700 -o {_me()} {folder}"
        return [_say("data folder", "fault", told, f"{advice}; or set `data_folder` to another one.")]
    found = [_disk(existing)]
    if existing != folder:
        return [_say("data folder", "ok", f"{folder} is not there yet; the first start makes it."), *found]
    owner = _owner(folder)
    if folder.stat().st_mode & 0o077:
        told = f"Other users of this host can get into {folder}, where secrets are."
        return [_say("data folder", "warning", told, f"chmod 700 {folder}"), *found]
    if owner != _me():
        told = f"{folder} belongs to {owner}, and you are {_me()}: what you can do, the bot may not."
        return [_say("data folder", "warning", told, _as_owner(folder)), *found]
    return [_say("data folder", "ok", f"{folder} can be written by {owner}, and by nobody else."), *found]


def _disk(folder: Path) -> Finding:
    free_gb = shutil.disk_usage(folder).free / 1e9
    told = f"{free_gb:.1f} GB are free in {folder}."
    if free_gb >= _LITTLE_GB:
        return _say("disk", "ok", told)
    level: Level = "warning" if free_gb >= _TOO_LITTLE_GB else "fault"
    advice = "Make room, or set `data_folder`: logs and checkpoints of all runs are kept there."
    return _say("disk", level, told, advice)


def is_made(settings: Settings) -> bool:
    """False when the database is a file that opening would make."""
    url = make_url(settings.database_url)
    try:
        return url.get_backend_name() != "sqlite" or Path(url.database or "").exists()
    except PermissionError:
        return True


def shown_url(settings: Settings) -> str:
    """Where the database is, without its password."""
    url = make_url(settings.database_url)
    return str(url.database) if url.get_backend_name() == "sqlite" else url.render_as_string(hide_password=True)


async def database(settings: Settings) -> list[Finding]:
    """Whether it answers and has the tables of this version, and what went wrong in the last day."""
    shown = shown_url(settings)
    if not is_made(settings):
        return [_say("database", "ok", f"{shown} is not there yet; the first start makes it.")]
    try:
        opened = Database(settings.database_url)
        try:
            async with asyncio.timeout(_PATIENCE_S):
                has, known = await revisions(opened)
                found = _tables(shown, has, known)
                return [found, *(await _incidents(opened) if has == known[0] else [])]
        finally:
            await opened.close()
    except ModuleNotFoundError:
        advice = "pip install 'benchbot[postgres]'"
        return [_say("database", "fault", "The library for PostgreSQL is missing.", advice)]
    except Exception as error:
        # drivers raise what they like
        lines = str(error).strip().splitlines() or [type(error).__name__]
        advice = f"Is `database_url` right, does its server run, and may {_me()} read and write there?"
        return [_say("database", "fault", f"{shown} does not answer: {lines[0]}", advice)]


def _tables(shown: str, has: str | None, known: Sequence[str]) -> Finding:
    if has == known[0]:
        return _say("database", "ok", f"{shown} has the tables of this version.")
    if has is None:
        return _say(
            "database", "warning", f"{shown} has no tables yet; the first start makes them.", "benchbot migrate"
        )
    if has in known:
        told = f"{shown} has the tables of an earlier version ({has}, not {known[0]}); the next start changes them."
        return _say("database", "warning", told, "Stop the bot, keep a copy of the database, then: benchbot migrate")
    told = f"{shown} has tables that this version does not know ({has})."
    return _say("database", "fault", told, "Install the newer benchbot that made them, or restore a copy from before.")


async def _incidents(opened: Database) -> list[Finding]:
    async with opened.read() as tx:
        recent = await incidents_since(tx, time.time() - _DAY_S)
    if not recent:
        return [_say("incidents", "ok", "None in the last day.")]
    told = f"{len(recent)} in the last day, the newest in {recent[0].where}."
    return [_say("incidents", "warning", told, f"benchbot doctor {recent[0].id}")]


async def addresses(settings: Settings, session: ClientSession) -> list[Finding]:
    """Whether machines find the bot at `agent_url`, and people at `base_url`."""
    url = settings.agent_url
    away = sorted(({each.backend for each in settings.hardware.values()} | set(settings.backends)) - {"local"})
    found = []
    if _is_loopback(url) and away:
        told = f"{url} is this host itself, and machines of {', '.join(away)} would look for the bot on themselves."
        advice = 'Set agent_url = "https://..." to the address of this bot as the machines see it.'
        found.append(_say("agent_url", "warning", told, advice))
    elif url.startswith("http://") and away:
        told = f"Code and the machines' tokens travel to {url} for everybody on the way to read."
        found.append(
            _say("agent_url", "warning", told, "Put a proxy with a certificate before the bot, and set https.")
        )
    found.append(await _answers(url, f"{settings.host}:{settings.port}", session))
    if settings.app_id and _is_loopback(settings.base_url):
        told = f"Links in comments lead to {settings.base_url}, which is another host for everybody else."
        found.append(_say("base_url", "warning", told, 'Set base_url = "https://..."'))
    return found


async def _answers(url: str, where: str, session: ClientSession) -> Finding:
    """The bot's own pages at an address; a proxy may let through what machines need and nothing else."""
    about = "bot"
    try:
        async with session.get(f"{url}/healthz") as answer:
            if answer.status == 200 and "ok" in await answer.text():
                return _say(about, "ok", f"It answers at {url}.")
        async with session.get(f"{url}{PREFIX}/agent.pyz") as answer:
            status, kind = answer.status, answer.content_type
    except (ClientError, OSError, TimeoutError) as error:
        told = f"Nothing answers at {url} ({_short(error)}); machines fetch their work there."
        return _say(about, "warning", told, "benchbot serve; if it runs, look at name server, proxy and firewall.")
    if status == 200 and kind != "text/html":
        return _say(about, "ok", f"It gives machines the agent at {url}.")
    told = f"Something answers at {url}, and not as this bot does ({status} for {PREFIX}/agent.pyz)."
    advice = f"Let the proxy pass /healthz and all below {PREFIX} to {where}, or set `agent_url`."
    return _say(about, "fault", told, advice)


def _short(error: OSError | ClientError) -> str:
    """What went wrong on the way, in a few words."""
    if isinstance(error, ClientConnectorCertificateError):
        return "its certificate is not trusted"
    reason = error.os_error if isinstance(error, ClientConnectorError) else error
    if isinstance(error, ClientConnectorDNSError):
        return "its name is not known"
    if isinstance(reason, ConnectionRefusedError):
        return "connection refused"
    return "no answer in time" if isinstance(reason, TimeoutError) else str(reason) or type(reason).__name__


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        address = ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return address.is_loopback or address.is_unspecified


def _me() -> str:
    return _name(os.geteuid())


def _owner(path: Path) -> str:
    return _name(path.stat().st_uid)


def _as_owner(path: Path) -> str:
    """For what another user has: probably the one that the bot runs as."""
    return (
        f"sudo -u {_owner(path)} benchbot doctor, if the bot runs as {_owner(path)}; else sudo chown -R {_me()} {path}"
    )


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
