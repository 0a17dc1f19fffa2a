"""`/benchmark help [command]`: what can be typed, and who may."""

from collections.abc import Mapping

from bot.commands import specs
from bot.commands.desk import Desk, Outcome
from bot.core.grammar import Right, Spec
from bot.core.markdown import PREFIX
from bot.core.nouns import Call
from bot.core.options import NOT_YET, OPTIONS

SPEC = Spec(
    verb="help",
    summary="show what can be typed, and who may",
    usage="help [command]",
    examples=("help", "help run"),
    right="anyone",
    takes="verb",
)

RIGHTS: Mapping[Right, str] = {
    "anyone": "anyone",
    "run": "triage right and above",
    "write": "write right and above",
    "requester": "who asked for it, or write right",
}
_TARGETS = (
    "Targets are names, globs (`bert*`), groups (`@classification`) or `all`; a leading `-` leaves out. "
    "Options are `key=value` or `--key value`."
)


def help_text(verbs: Mapping[str, Spec], verb: str = "", prefix: str = PREFIX) -> str:
    """Markdown: all commands and who may use them, or everything about one of them."""
    if verb:
        return _one(verbs[verb], prefix)
    examples = [f"- `{prefix} {example}`" for spec in verbs.values() for example in spec.examples[:1]]
    return "\n".join(
        [rights_table(verbs, prefix), "", _TARGETS, "", *examples, "", f"`{prefix} help run` explains the options."]
    )


def rights_table(verbs: Mapping[str, Spec], prefix: str = PREFIX) -> str:
    """A Markdown table of every verb: what to type, what it does, who may."""
    rows = ["| command | what it does | who may |", "|---|---|---|"]
    rows += [f"| `{prefix} {spec.usage}` | {spec.summary} | {RIGHTS[spec.right]} |" for spec in verbs.values()]
    return "\n".join(rows)


def options_table(names: tuple[str, ...]) -> str:
    """A Markdown table of options; those that this version cannot do are left out."""
    rows = ["| option | meaning | default |", "|---|---|---|"]
    for name in names:
        option = OPTIONS[name]
        if name not in NOT_YET:
            rows.append(f"| `{option.form}` | {option.meaning} | {option.default} |")
    return "\n".join(rows)


def _one(spec: Spec, prefix: str) -> str:
    lines = [f"`{prefix} {spec.usage}`: {spec.summary}. Who may: {RIGHTS[spec.right]}.", ""]
    if spec.takes == "targets":
        lines += [_TARGETS, ""]
    if spec.options:
        lines += [options_table(spec.options), ""]
        missing = sorted(item for item in NOT_YET if item.partition("=")[0] in spec.options)
        if missing:
            lines += [f"Not available in this version: {', '.join(f'`{item}`' for item in missing)}.", ""]
    lines += [f"- `{prefix} {example}`" for example in spec.examples]
    return "\n".join(lines)


async def handle(call: Call, desk: Desk) -> Outcome:
    """All commands, or the one that is named."""
    verb = call.command.targets[0] if call.command.targets else ""
    return Outcome(text=help_text(specs(), verb, desk.prefix))
