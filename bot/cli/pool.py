"""`benchbot pool`: the operator's own hosts: invite one, see all, use one again, forget one."""

import argparse
import asyncio
import sys
import time

from bot.cli.configured import settings_or_exit
from bot.core.pool import Device, told, trouble_of
from bot.services import random_id
from bot.settings import Settings
from bot.store import hosts
from bot.store.codec import load
from bot.store.database import Database
from bot.store.migrate import migrate
from bot.store.tables import Host
from runners.protocol import PREFIX

HELP = "the hosts of the pool: add NAME, list, release NAME, remove NAME"
EXAMPLES = (
    "benchbot pool add max-1",
    "benchbot pool list",
    "benchbot pool release max-1",
    "benchbot pool remove max-1",
)
CODE_S = 3600.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to do, and with which host."""
    acts = parser.add_subparsers(dest="act", metavar="ACT", required=True)
    for name, sentence in (
        ("add", "make a code with which one host can enrol within an hour"),
        ("list", "hosts, labels, devices, when they were last heard of, and what is wrong with them"),
        ("release", "use a host again that was quarantined"),
        ("remove", "forget a host: its credential ends"),
    ):
        act = acts.add_parser(name, help=sentence, description=f"{sentence[0].upper()}{sentence[1:]}.")
        if name != "list":
            act.add_argument("name", metavar="NAME", type=_name, help="the host's name: letters, digits, - and .")


def _name(text: str) -> str:
    if not text.replace("-", "").replace(".", "").isalnum() or not text.isascii() or len(text) > 60:
        raise argparse.ArgumentTypeError("a name is made of at most 60 letters, digits, - and .")
    return text


def run(args: argparse.Namespace) -> int:
    """0, or 1 when there is no such host."""
    settings = settings_or_exit()
    settings.data_folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    async def act() -> str:
        database = Database(settings.database_url)
        try:
            await migrate(database)
            if args.act == "add":
                await _add(database, settings, args.name)
            elif args.act == "list":
                await _list(database)
            elif args.act == "release":
                return "" if await hosts.release(database, args.name) else "there is no such host"
            else:
                return await hosts.remove(database, args.name)
        finally:
            await database.close()
        return ""

    wrong = asyncio.run(act())
    if wrong:
        print(f"benchbot pool: {args.name}: {wrong}", file=sys.stderr)
    return 1 if wrong else 0


async def _add(database: Database, settings: Settings, name: str) -> None:
    code = random_id()
    await hosts.invite(database, random_id(), name, code, time.time() + CODE_S)
    print(f"On {name}, within an hour; as root when it shall also run code of people without write right:\n")
    print(f"  curl -fsSO {settings.agent_url}{PREFIX}/agent.pyz")
    print(f"  python3 agent.pyz --enrol {settings.agent_url} --code {code} --labels LABELS\n")
    print("The code works once and is not shown again.")


async def _list(database: Database) -> None:
    async with database.read() as tx:
        rows = await hosts.all_hosts(tx)
    for row in rows:
        print(f"{row.name}: {'; '.join(_facts(row, time.time()))}")
    if not rows:
        print("There are no hosts: `benchbot pool add NAME` invites one.")


def _facts(row: Host, now: float) -> list[str]:
    if not row.credential_hash:
        return ["not enrolled yet" if row.code_until > now else "not enrolled, and its code is too old"]
    devices = load(tuple[Device, ...], row.devices)
    facts = [
        f"labels {', '.join(load(tuple[str, ...], row.labels)) or 'none'}",
        told(devices),
        f"heard of {now - row.seen_at:.0f} s ago",
        row.state if row.state == "free" else f"{row.state} {row.order_id}",
    ]
    facts += [] if row.isolates else ["not root: no code of strangers"]
    facts += [f"trouble: {trouble_of(devices, row.most)}"] if trouble_of(devices, row.most) else []
    facts += [f"device faults: {row.faults}"] if row.faults else []
    facts += [f"quarantined: {row.quarantined}"] if row.quarantined else []
    return facts
