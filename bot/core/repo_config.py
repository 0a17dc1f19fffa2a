"""`.github/benchmark.yml` as a `RepoConfig`, or everything that is wrong with it at once, each fault with its place."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from zoneinfo import ZoneInfo

from bot.core.entries import read_benchmark
from bot.core.fields import Field
from bot.core.grammar import RESERVED, render
from bot.core.nouns import Benchmark, Command, ConfigFault, Hardware, Refusal, RepoConfig, ScriptsSource, Trigger
from bot.core.options import OPTIONS, OptionError, not_yet
from bot.core.planning import PlanInputs, plan
from bot.core.targets import resolve_targets
from bot.core.timing import wrong_field
from bot.core.wording import code
from bot.core.yaml12 import read_tree

CONFIG_PATH = ".github/benchmark.yml"
VERSION = "1"
# what starts without a command, besides schedules; each is a field of RepoConfig
TRIGGERS = ("on_approval", "on_push", "on_release")
KEYS = ("version", "python", "setup", "setup_inputs", "scripts", "benchmarks", *TRIGGERS, "schedules", "retention")
SCRIPTS_KEYS = ("repository", "ref")
RETENTION_KEYS = ("good", "bad")
TIMING_KEYS = ("cron", "timezone")
TRIGGER_OPTIONS = ("on", "scenario", "init", "vs", "pairs", "seeds")
MOST_BENCHMARKS = 500
MOST_FAULTS = 100
# how many leases are too many is decided when a trigger fires: most benchmarks may then be left out by their paths
_ANY_NUMBER = 1_000_000


def load(text: str, hardware: Collection[str] | None) -> RepoConfig | tuple[ConfigFault, ...]:
    """The configuration, or its faults in the order of the file, at most 100.

    `hardware` are the names that the operator defined; None when nobody knows them, and any name will do.
    """
    tree, problems = read_tree(text)
    faults = [
        ConfigFault(line=each.line, column=each.column, where="", sentence=each.sentence, hint=each.hint)
        for each in problems
    ]
    if tree is None:
        hint = "It begins with `version: 1`."
        return tuple(faults) or (ConfigFault(line=1, column=1, where="", sentence="The file is empty.", hint=hint),)
    config = _config(Field(tree, "", faults), None if hardware is None else tuple(hardware))
    return tuple(sorted(faults, key=lambda fault: (fault.line, fault.column)))[:MOST_FAULTS] or config


def _config(root: Field, hardware: Sequence[str] | None) -> RepoConfig:
    fields = root.entries(KEYS, required=("version", "benchmarks"))
    _version(fields.get("version"))
    benchmarks = _benchmarks(fields.get("benchmarks"), hardware)
    retention = fields["retention"].entries(RETENTION_KEYS) if "retention" in fields else {}
    defaults = RepoConfig()
    config = RepoConfig(
        python=_python(fields.get("python")),
        setup=(fields["setup"].text(may_be_empty=True) if "setup" in fields else None) or "",
        setup_inputs=fields["setup_inputs"].texts() if "setup_inputs" in fields else (),
        scripts=_scripts(fields.get("scripts")),
        benchmarks=benchmarks,
        keep_good=_keep(retention.get("good"), defaults.keep_good),
        keep_bad=_keep(retention.get("bad"), defaults.keep_bad),
    )
    found = {key: _trigger(key.removeprefix("on_"), fields[key], config) for key in TRIGGERS if key in fields}
    return replace(
        config,
        schedules=_schedules(fields.get("schedules"), config),
        on_approval=found.get("on_approval"),
        on_push=found.get("on_push"),
        on_release=found.get("on_release"),
    )


def _version(field: Field | None) -> None:
    version = field.text() if field else None
    if field and version is not None and version != VERSION:
        field.fault(f"Version {code(version)} is not known here.", f"This is `version: {VERSION}`.")


def _python(field: Field | None) -> str | None:
    version = field.text() if field else None
    if field and version is not None and not re.fullmatch(r"3\.[0-9]{1,2}", version):
        field.fault(f"{code(version)} is no version of Python.", 'It is written like `python: "3.11"`.')
    return version


def _keep(field: Field | None, default: int) -> int:
    found = field.whole(0, 10_000) if field else None
    return default if found is None else found


def _scripts(field: Field | None) -> ScriptsSource | None:
    if field is None:
        return None
    values = field.entries(SCRIPTS_KEYS, required=("repository",))
    repository = values["repository"].text() if "repository" in values else None
    ref = values["ref"].text() if "ref" in values else "main"
    if repository is not None and not re.fullmatch(r"[A-Za-z0-9-]+/[A-Za-z0-9._-]+", repository):
        values["repository"].fault(f"{code(repository)} is no repository.", "It is written like `org/models`.")
    return ScriptsSource(repository=repository or "", ref=ref or "main")


def _benchmarks(field: Field | None, hardware: Sequence[str] | None) -> Mapping[str, Benchmark]:
    named = field.named("benchmark", reserved=tuple(RESERVED)) if field else {}
    if field and not named and not field.faults:
        field.fault("There is no benchmark here.", "A benchmark has a name and at least the key `run`.")
    if field and len(named) > MOST_BENCHMARKS:
        field.fault(f"There are {len(named)} benchmarks; at most {MOST_BENCHMARKS} are taken.")
    return {name: read_benchmark(name, entry, hardware) for name, entry in list(named.items())[:MOST_BENCHMARKS]}


def _schedules(field: Field | None, config: RepoConfig) -> tuple[Trigger, ...]:
    named = field.named("schedule") if field else {}
    return tuple(_trigger(name, entry, config, timed=True) for name, entry in named.items())


def _trigger(name: str, field: Field, config: RepoConfig, *, timed: bool = False) -> Trigger:
    """What runs by itself; its benchmarks and options are those of a command."""
    known = ("benchmarks", *TRIGGER_OPTIONS, *(TIMING_KEYS if timed else ()))
    values = field.entries(known, required=("benchmarks", "cron") if timed else ("benchmarks",))
    options = {option: _option(option, values[option]) for option in TRIGGER_OPTIONS if option in values}
    if "pairs" in options and "seeds" in options:
        values["seeds"].fault("`pairs` and `seeds` are two ways of counting runs.", "Keep one of them.")
    texts = values["benchmarks"].texts() if "benchmarks" in values else ()
    words = tuple(word for text in texts for word in text.split())
    command = Command(verb="run", targets=words, options=options, line=field.node.line, text="")
    if words and config.benchmarks:
        _can_be_planned(command, field, values["benchmarks"], config)
    return Trigger(
        name=name,
        text=_line(command, field),
        cron=_cron(values.get("cron")),
        timezone=_timezone(values.get("timezone")),
    )


def _line(command: Command, field: Field) -> str:
    """The command without its prefix."""
    try:
        return render(command, "").strip()
    except ValueError:  # a word holds every kind of quote
        field.fault("This cannot be written as a command.", "Leave the quotes out of the names.")
        return ""


def _option(name: str, field: Field) -> str:
    """An option of a command, checked as in a command."""
    check, text = OPTIONS[name].check, ",".join(field.texts())
    if check is None or not text:
        return ""
    try:
        value = check(text)
    except OptionError as error:
        field.fault(f"{code(f'{name}: {text}')} cannot be read: {error.sentence}.", error.hint)
        return ""
    missing = not_yet(name, value)
    if missing is not None:
        field.fault(f"{code(missing)} is not available in this version.")
    return value


def _can_be_planned(command: Command, trigger: Field, targets: Field, config: RepoConfig) -> None:
    """Names of benchmarks, hardware, scenarios and inits must exist: nobody is there to read a refusal at night."""
    found = resolve_targets(command.targets, config)
    if isinstance(found, Refusal):
        targets.fault(found.sentence, found.hint)
        return
    if trigger.faults:
        return  # names that a faulty entry would have declared cannot be told from names that nothing declares
    names = {name for benchmark in config.benchmarks.values() for name in benchmark.hardware}
    hardware = {name: Hardware(name=name) for name in names}
    inputs = PlanInputs(command=command, targets=found, config=config, hardware=hardware, most_leases=_ANY_NUMBER)
    planned = plan(inputs)
    if isinstance(planned, Refusal):
        trigger.fault(planned.sentence, planned.hint)


def _timezone(field: Field | None) -> str:
    name = field.text() if field else None
    if field is None or name is None:
        return "UTC"
    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        field.fault(f"There is no time zone {code(name)}.", "It is written like `Europe/Berlin`; the default is UTC.")
    return name


def _cron(field: Field | None) -> str:
    text = field.text() if field else None
    if field is None or text is None:
        return ""
    try:
        wrong = wrong_field(text)
    except ValueError:
        field.fault(
            f"{code(text)} has {len(text.split())} fields; a schedule has five.",
            'minute, hour, day, month, day of the week: `"30 2 * * *"` is 02:30 every day.',
        )
        return text
    if wrong is not None:
        place, what, form = wrong
        field.fault(f"{code(text.split()[place])} is no {what} of a schedule: it goes {form}.")
    return text
