"""`benchbot plan TEXT`: what the commands of a comment would do and cost. Nothing is asked of GitHub or run."""

import argparse
import asyncio
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.app import build_backends, priced
from bot.cli.configured import settings_or_exit
from bot.commands import specs
from bot.commands.plan import cost_text, metric_text, order_text
from bot.core.budget import usd
from bot.core.calls import plan_of
from bot.core.grammar import parse_lines
from bot.core.markdown import new_lines
from bot.core.money import total_usd
from bot.core.nouns import Call, Command, Person, Plan, PullRequest, Refusal, RepoConfig
from bot.core.quantities import duration
from bot.core.repo_config import CONFIG_PATH, load
from bot.core.targets import resolve_targets
from bot.settings import Settings
from bot.store.database import Database

HELP = "show what the commands of a comment would do and cost"
EXAMPLES = (
    "benchbot plan '/benchmark resnet50 pairs=3'",
    'benchbot plan "$(cat comment.md)" --config .github/benchmark.yml',
    "benchbot plan '/benchmark all on=all' --json",
)
PLANNED = ("run", "plan")
ME = Person(id=0, login="you", permission="admin")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The comment, and the file it is about."""
    parser.add_argument("text", metavar="TEXT", help="the text of a comment, read as the bot reads it")
    parser.add_argument(
        "--config", type=Path, metavar="FILE", default=Path(CONFIG_PATH), help=f"the configuration; {CONFIG_PATH}"
    )
    parser.add_argument("--json", action="store_true", help="print everything as JSON")


def run(args: argparse.Namespace) -> int:
    """0 when the text could be answered, with refusals too; 2 when the file cannot be used."""
    settings = asyncio.run(_priced(settings_or_exit()))
    try:
        text = args.config.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        print(f"benchbot plan: {args.config} cannot be read: {error.strerror}. Name it with --config.", file=sys.stderr)
        return 2
    config = load(text, hardware=tuple(settings.hardware))
    if not isinstance(config, RepoConfig):
        for fault in config:
            where = f"{args.config}:{fault.line}:{fault.column}"
            print(f"{where}: {fault.sentence} {fault.hint}".rstrip(), file=sys.stderr)
        return 2
    answers = _answers(args.text, config, settings)
    if not answers:
        print(f"There is no command in this text; a line that begins with {settings.prefix} is one.", file=sys.stderr)
    if args.json:
        print(json.dumps(_as_json(answers), indent=2))
    elif answers:
        print("\n\n".join(_as_text(each) for each in answers))
    return 0


async def _priced(settings: Settings) -> Settings:
    database = Database(settings.database_url)
    try:
        return await priced(settings, build_backends(settings, database))
    finally:
        await database.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One line: a command with its plan where it has one, or a refusal."""

    command: Command | None = None
    targets: tuple[str, ...] = ()
    plan: Plan | None = None
    cost: str = ""
    refusal: Refusal | None = None
    config: RepoConfig


def _answers(text: str, config: RepoConfig, settings: Settings) -> list[Answer]:
    lines = new_lines("", text, settings.prefix)
    return [_answer(parsed, config, settings) for parsed in parse_lines(lines, specs())]


def _answer(parsed: Command | Refusal, config: RepoConfig, settings: Settings) -> Answer:
    if isinstance(parsed, Refusal):
        return Answer(refusal=parsed, config=config)
    if parsed.verb not in PLANNED:
        return Answer(command=parsed, targets=parsed.targets, config=config)
    resolved = resolve_targets(parsed.targets, config)
    if isinstance(resolved, Refusal):
        return Answer(refusal=_on(resolved, parsed), config=config)
    call = _call(parsed, resolved, config, settings)
    planned = plan_of(call, settings.prefix)
    if isinstance(planned, Refusal):
        return Answer(refusal=_on(planned, parsed), config=config)
    return Answer(command=parsed, targets=resolved, plan=planned, cost=cost_text(planned, call), config=config)


def _on(refusal: Refusal, command: Command) -> Refusal:
    return Refusal(code=refusal.code, sentence=refusal.sentence, hint=refusal.hint, line=command.line)


def _call(command: Command, resolved: tuple[str, ...], config: RepoConfig, settings: Settings) -> Call:
    pull = PullRequest(
        repository_id=0, full_name="", number=0, author=ME, head_sha="", base_ref="main", from_fork=False
    )
    return Call(
        command=command,
        sender=ME,
        pull=pull,
        head_sha="",
        base_sha="",
        baseline="",
        config=config,
        config_sha="",
        hardware=settings.hardware,
        limits=settings.limits,
        resolved=resolved,
    )


def _as_json(answers: list[Answer]) -> dict[str, Any]:
    commands = [
        {
            "verb": answer.command.verb,
            "targets": list(answer.targets),
            "options": dict(answer.command.options),
            "line": answer.command.line,
        }
        for answer in answers
        if answer.command
    ]
    refusals = [
        {"code": each.code, "sentence": each.sentence, "hint": each.hint, "line": each.line}
        for answer in answers
        if (each := answer.refusal)
    ]
    leases = [
        {
            "benchmark": lease.benchmark,
            "scenario": lease.scenario,
            "init": lease.init,
            "hardware": lease.hardware,
            "runs": [{"side": run.side, "seed": run.seed} for run in lease.runs],
        }
        for answer in answers
        if answer.plan
        for lease in answer.plan.leases
    ]
    estimate = total_usd(answer.plan.estimate_usd for answer in answers if answer.plan)
    known = None if estimate is None else round(estimate, 4)
    return {"commands": commands, "refusals": refusals, "leases": leases, "estimate_usd": known}


def _as_text(answer: Answer) -> str:
    if answer.refusal:
        return f"line {answer.refusal.line}: refused. {answer.refusal.sentence} {answer.refusal.hint}".rstrip()
    assert answer.command is not None
    said = [f"line {answer.command.line}: {answer.command.text}"]
    if answer.plan is None:
        return f"{said[0]}\n  {answer.command.verb} starts nothing."
    for lease in answer.plan.leases:
        variant = f", scenario {lease.scenario}, init {lease.init}"
        said.append(f"  {lease.benchmark} on {lease.hardware}{variant}: {order_text(lease)}, at most")
        said[-1] += f" {duration(lease.timeout_s)} a run" + (
            "" if lease.estimate_usd == 0 else f", {usd(lease.estimate_usd)}"
        )
    said.append(f"  {_unmarked(answer.cost)}" if answer.plan.estimate_usd != 0 else "  costs nothing")
    for name in answer.plan.targets:
        benchmark = answer.config.benchmarks[name]
        said += [f"  {name} {metric.name}: {_unmarked(metric_text(metric))}" for metric in benchmark.metrics]
        said += [] if benchmark.metrics else [f"  {name}: judged by its exit status"]
        said += [f"  {name}, not said and taken for granted: {_unmarked(note)}" for note in benchmark.notes]
    return "\n".join(said)


def _unmarked(sentence: str) -> str:
    """A sentence of Markdown as the terminal shows it."""
    return sentence.replace("`", "")
