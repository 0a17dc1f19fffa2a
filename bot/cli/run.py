"""`benchbot run NAME`: the same plan, agent, readers and verdict as on a pull request, in any git checkout."""

import argparse
import asyncio
import json
import sys
import time
from dataclasses import replace
from pathlib import Path

from bot.app import Bot, open_bot
from bot.cli.checkout import Checkout, Commits, NotPossible
from bot.cli.local import local_settings
from bot.commands import specs
from bot.core.calls import plan_of
from bot.core.grammar import parse
from bot.core.markdown import Line
from bot.core.nouns import Call, Command, Person, PullRequest, Refusal, RepoConfig, Report
from bot.core.repo_config import CONFIG_PATH, load
from bot.core.targets import resolve_targets
from bot.report.data import request_data
from bot.report.terminal import render_terminal
from bot.services import random_id
from bot.store import codec
from bot.store.reports import build, rows_of
from bot.store.requests import new_request
from bot.store.tables import Request

HELP = "compare this checkout with its base on this machine"
EXAMPLES = (
    "benchbot run resnet50",
    "benchbot run resnet50 --vs main",
    "benchbot run all --vs HEAD~1 pairs=4 --json",
)


class WrongCall(Exception):
    """The call cannot be carried out as it is; the text says why."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Words as in a comment, and what only makes sense here."""
    parser.add_argument("words", nargs="+", metavar="NAME", help="targets and options, as after /benchmark")
    parser.add_argument("--vs", metavar="REF", help="what to compare with; the merge-base with main by default")
    parser.add_argument("--directory", "-C", type=Path, default=Path.cwd(), help="the checkout; here by default")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def run(args: argparse.Namespace) -> int:
    """0 no regression, 1 regression or failed head, 2 wrong call, 3 infrastructure."""
    try:
        checkout = Checkout(args.directory)
        commits = checkout.commits(args.vs)
        call = _call(checkout, commits, args.words)
    except (NotPossible, WrongCall) as stop:
        print(f"benchbot run: {stop}", file=sys.stderr)
        return 2
    for line in _remarks(checkout, commits):
        print(line, file=sys.stderr)
    report = asyncio.run(_run(checkout, call))
    if args.json:
        print(json.dumps(request_data(report), indent=2))
    else:
        print(render_terminal(report, colour=sys.stdout.isatty()))
    return exit_status(report)


def exit_status(report: Report) -> int:
    """The exit status that a report stands for."""
    faults = {b.reason.fault for b in report.benchmarks if b.reason}
    if report.verdict in ("regression", "failed"):
        return 1 if report.verdict == "regression" or "user" in faults or not faults else 3
    if report.verdict == "not measured":
        return 1 if faults <= {"user"} and faults else 3
    return 0


def _remarks(checkout: Checkout, commits: Commits) -> list[str]:
    said = [f"head {commits.head[:10]} against {commits.base[:10]} ({commits.baseline})"]
    if commits.dirty:
        said.append("The head is a snapshot of this work tree with its uncommitted changes.")
    untracked = checkout.untracked()
    if untracked:
        said.append(f"{len(untracked)} files that git does not track are left out; `git add` them to take them along.")
    return said


def _call(checkout: Checkout, commits: Commits, words: list[str]) -> Call:
    text = checkout.file(commits.head, CONFIG_PATH)
    if text is None:
        raise WrongCall(f"there is no {CONFIG_PATH} in this checkout; git add it if it is new")
    settings = local_settings(checkout.git_folder / "benchbot")
    config = load(text, hardware=settings.hardware)
    if not isinstance(config, RepoConfig):
        raise WrongCall(
            "\n  ".join(f"{CONFIG_PATH}:{f.line}:{f.column}: {f.sentence} {f.hint}".rstrip() for f in config)
        )
    # wherever the benchmark usually runs, here it runs here
    here = {name: replace(benchmark, hardware=("local",)) for name, benchmark in config.benchmarks.items()}
    config = replace(config, benchmarks=here)
    command = parse(Line(1, " ".join(["/benchmark", *words])), specs())
    resolved = command if isinstance(command, Refusal) else resolve_targets(command.targets, config)
    if isinstance(command, Refusal) or isinstance(resolved, Refusal):
        raise WrongCall(_said(command if isinstance(command, Refusal) else resolved))
    if command.verb != "run":
        raise WrongCall(f"{command.verb} is for pull requests; here: benchbot run NAME, benchbot plan TEXT")
    base_text = checkout.file(commits.base, CONFIG_PATH)
    call = _as_call(checkout, commits, command, config, resolved)
    planned = plan_of(call)
    if isinstance(planned, Refusal):
        raise WrongCall(_said(planned))
    if base_text is None:
        print(f"The base has no {CONFIG_PATH}; it is run with the head's.", file=sys.stderr)
    return call


def _said(refusal: object) -> str:
    return f"{refusal.sentence} {refusal.hint}".strip() if isinstance(refusal, Refusal) else ""


def _as_call(checkout: Checkout, commits: Commits, command: Command, config: RepoConfig, resolved: object) -> Call:
    me = Person(id=0, login="you", permission="admin")
    return Call(
        command=command,
        sender=me,
        pull=PullRequest(
            repository_id=0,
            full_name=str(checkout.top),
            number=0,
            author=me,
            head_sha=commits.head,
            base_ref=commits.baseline,
            from_fork=False,
        ),
        head_sha=commits.head,
        base_sha=commits.base,
        baseline=commits.baseline,
        config=config,
        config_sha=commits.head,
        hardware=local_settings(checkout.git_folder / "benchbot").hardware,
        resolved=resolved if isinstance(resolved, tuple) else (),
    )


async def _run(checkout: Checkout, call: Call) -> Report:
    settings = local_settings(checkout.git_folder / "benchbot")
    async with open_bot(settings) as bot, bot.serving():
        request_id = random_id()
        async with bot.services.database.write() as tx:
            await tx.execute(new_request(bot.services.database, request_id, request_id, "local", call, time.time()))
        async with bot.working():
            return await _watch(bot, request_id)


async def _watch(bot: Bot, request_id: str) -> Report:
    """Follow the request to its end, and tell on standard error what happens."""
    told = ""
    while True:
        async with bot.services.database.read() as tx:
            request = await tx.get_one(Request, request_id)
            rows = await rows_of(tx, request)
        gone = all(machine.state == "gone" for machine in rows.machines.values())
        if request.state == "done" and gone:
            return codec.load(Report, request.report)
        now = build(rows, "")
        phase = "; ".join(f"{b.benchmark}: {b.phase}" for b in now.benchmarks if b.phase)
        if phase and phase != told:
            print(phase, file=sys.stderr, flush=True)
            told = phase
        await asyncio.sleep(0.2)
