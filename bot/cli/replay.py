"""`benchbot replay FILE`: send a recorded webhook to a running server, signed as GitHub would."""

import argparse
import asyncio
import hmac
import json
import sys
import uuid
from pathlib import Path

from aiohttp import ClientError, ClientSession

from bot.cli.configured import settings_or_exit

HELP = "send a recorded webhook to the running server"
EXAMPLES = ("benchbot replay comment.json", "benchbot replay comment.json --event issue_comment")
# which key of a payload tells its event; the first that is there decides
TELLING = ("comment", "review", "check_run", "check_suite", "pull_request", "installation")
EVENTS = {"comment": "issue_comment", "review": "pull_request_review"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The file, and what it cannot tell by itself."""
    parser.add_argument("file", type=Path, metavar="FILE", help="a payload, as GitHub shows it under recent deliveries")
    parser.add_argument("--event", help="the event's name; guessed from the payload by default")
    parser.add_argument("--url", help="the server; its configured address by default")


def run(args: argparse.Namespace) -> int:
    """0 when the server has stored it, 2 for a wrong call, 3 when the server does not take it."""
    settings = settings_or_exit(needs_github=True)
    try:
        payload = json.loads(args.file.read_text())
    except (OSError, ValueError) as error:
        print(f"benchbot replay: {args.file} cannot be read as JSON: {error}", file=sys.stderr)
        return 2
    event = args.event or next((EVENTS.get(key, key) for key in TELLING if key in payload), None)
    if event is None:
        print("benchbot replay: the payload does not tell its event; say it with --event", file=sys.stderr)
        return 2
    body = json.dumps(payload).encode()
    guid = str(uuid.uuid4())
    headers = {
        "Content-Type": "application/json",
        "X-GitHub-Event": event,
        "X-GitHub-Delivery": guid,
        "X-Hub-Signature-256": "sha256=" + hmac.new(settings.webhook_secret.encode(), body, "sha256").hexdigest(),
    }
    url = f"{(args.url or settings.base_url).rstrip('/')}/webhook"
    try:
        status, text = asyncio.run(_send(url, headers, body))
    except (ClientError, OSError) as error:
        print(f"benchbot replay: {url} does not answer ({error}); is `benchbot serve` running?", file=sys.stderr)
        return 3
    print(f"{status} {text}")
    return 0 if status == 202 else 3


async def _send(url: str, headers: dict[str, str], body: bytes) -> tuple[int, str]:
    async with ClientSession() as session, session.post(url, data=body, headers=headers) as response:
        return response.status, await response.text()
