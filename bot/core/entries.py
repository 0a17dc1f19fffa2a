"""One benchmark of the repository's configuration: its fields, checked, with their documented defaults."""

import re
from collections.abc import Sequence
from typing import get_args

from bot.core.fields import Field
from bot.core.nouns import Benchmark, Input, Parameter, Variant
from bot.core.options import NAME
from bot.core.planning import wrong_value
from bot.core.quantities import decimal
from bot.core.wording import a, code, did_you_mean
from bot.measure.metrics import BUILTINS, NUMBERED, Amount, Better, Kind, Metric, Per, Pick, Scale, complete
from runners.protocol import PlaceholderError, fill

BENCHMARK_KEYS = (
    "run",
    "description",
    "hardware",
    "timeout",
    "groups",
    "paths",
    "inputs",
    "parameters",
    "scenarios",
    "init",
    "metrics",
    "stop_diverged",
)
VARIANT_KEYS = ("args",)
INPUT_KEYS = ("url", "sha256")
PARAMETER_KEYS = ("default", "min", "max", "choices")
_METRIC_WORDS = {"kind": Kind, "better": Better, "scale": Scale, "per": Per}
METRIC_KEYS = (
    "tag",
    "builtin",
    "pick",
    "per_step",
    *_METRIC_WORDS,
    "unit",
    "written",
    "tolerance",
    "noise",
    "target",
    "gate",
    "confirm",
)
_FILLED_IN = ("seed", "init", "scenario", "args")
_AMOUNT = re.compile(r"(\S+?)\s*(%?)")


def read_benchmark(name: str, field: Field, hardware: Sequence[str] | None) -> Benchmark:
    """The benchmark; what is faulty in it has its default. `hardware` are the operator's names, None when unknown."""
    fields = field.entries(BENCHMARK_KEYS, required=("run",))
    inputs = _inputs(fields.get("inputs"))
    parameters = _parameters(fields.get("parameters"))
    known = [*_FILLED_IN, *(f"inputs.{item.name}" for item in inputs), *(item.name for item in parameters)]
    scenarios = _variants(fields.get("scenarios"), "scenario", known)
    inits = _variants(fields.get("init"), "init", known)
    run = _command(fields.get("run"), known)
    metrics, notes = _metrics(fields.get("metrics"))
    defaults = Benchmark(name=name, run=run)
    return Benchmark(
        name=name,
        run=run,
        description=_text(fields.get("description")),
        hardware=_hardware(fields.get("hardware"), hardware) or defaults.hardware,
        timeout_s=(fields["timeout"].duration_s() if "timeout" in fields else None) or defaults.timeout_s,
        groups=_groups(fields.get("groups")),
        paths=fields["paths"].texts() if "paths" in fields else (),
        inputs=inputs,
        parameters=parameters,
        scenarios=scenarios or defaults.scenarios,
        inits=inits or defaults.inits,
        metrics=metrics,
        stop_diverged=bool(fields["stop_diverged"].truth()) if "stop_diverged" in fields else False,
        notes=notes,
        line=field.node.line,
    )


def _text(field: Field | None) -> str:
    return (field.text(may_be_empty=True) if field else None) or ""


def _command(field: Field | None, known: Sequence[str]) -> str:
    """A shell text whose placeholders are all known."""
    text = field.text(may_be_empty=True) if field else None
    if field is None or text is None:
        return ""
    try:
        fill(text, dict.fromkeys(known, ""))
    except PlaceholderError as error:
        name = str(error.name)[:60]
        field.fault(
            f"Nothing fills in the placeholder {code('{' + name + '}')}.",
            f"{did_you_mean(name, known)} Braces that are meant as they are: `{{{{` and `}}}}`.",
        )
    return text


def _hardware(field: Field | None, hardware: Sequence[str] | None) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for item in field.each() if field else ():
        name = item.text()
        if name is None:
            continue
        names[name] = None
        if not NAME.fullmatch(name) or name == "all":
            item.fault(f"{code(name)} cannot be the name of hardware.")
        elif hardware is not None and name not in hardware:
            item.fault(f"The operator has defined no hardware {code(name)}.", did_you_mean(name, tuple(hardware)))
    return tuple(names)


def _groups(field: Field | None) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for item in field.each() if field else ():
        name = (item.text() or "").removeprefix("@")
        if name and not NAME.fullmatch(name):
            item.fault(f"{code(name)} cannot be the name of a group.", "Use letters, digits, `.`, `_` and `-`.")
        names[name] = None
    return tuple(names)


def _inputs(field: Field | None) -> tuple[Input, ...]:
    found: list[Input] = []
    for name, entry in field.named("input").items() if field else ():
        _variable(entry, name, "input", [item.name for item in found])
        values = entry.entries(INPUT_KEYS, required=INPUT_KEYS)
        url = values["url"].text() if "url" in values else None
        if url is not None and not re.fullmatch(r"https?://[^\s/]+\S*", url):
            values["url"].fault("This must be an address that starts with `https://` or `http://`.")
        sha256 = values["sha256"].text() if "sha256" in values else None
        if sha256 is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", sha256):
            values["sha256"].fault("A SHA-256 is 64 hex digits (0-9, a-f).", "`sha256sum FILE` prints it.")
        found.append(Input(name=name, url=url or "", sha256=(sha256 or "").lower()))
    return tuple(found)


def _variable(entry: Field, name: str, what: str, others: Sequence[str]) -> None:
    """The name becomes part of a variable's name in the environment."""
    if not (name.isascii() and name.isidentifier()):
        entry.fault(f"{code(name)} cannot be the name of {a(what)}.", "Use letters, digits and `_`, no digit first.")
    elif name.upper() in [other.upper() for other in others]:
        entry.fault(f"{code(name)} and another {what} differ only in upper and lower case.")


def _parameters(field: Field | None) -> tuple[Parameter, ...]:
    found: list[Parameter] = []
    for name, entry in field.named("parameter").items() if field else ():
        _variable(entry, name, "parameter", [item.name for item in found])
        if name in _FILLED_IN:
            entry.fault(f"{code('{' + name + '}')} has a meaning of its own; call the parameter something else.")
        values = entry.entries(PARAMETER_KEYS, required=("default",))
        parameter = Parameter(
            name=name,
            default=(values["default"].text() if "default" in values else None) or "",
            minimum=values["min"].number() if "min" in values else None,
            maximum=values["max"].number() if "max" in values else None,
            choices=values["choices"].texts() if "choices" in values else (),
        )
        if "choices" in values and ("min" in values or "max" in values):
            entry.fault("A parameter has either `choices` or `min` and `max`.")
        elif parameter.minimum is not None and parameter.maximum is not None and parameter.minimum > parameter.maximum:
            values["max"].fault("`max` is smaller than `min`.")
        elif parameter.default and not parameter.choices and decimal(parameter.default) is None:
            values["default"].fault(
                "A parameter that is no number needs `choices`.", "Example: `choices: [sgd, adam]`."
            )
        elif parameter.default and wrong_value(parameter, parameter.default):
            values["default"].fault(
                f"The default is outside of what is declared: {wrong_value(parameter, parameter.default)}."
            )
        found.append(parameter)
    return tuple(found)


def _variants(field: Field | None, what: str, known: Sequence[str]) -> tuple[Variant, ...]:
    """Scenarios or inits. Their text goes where `{args}` stands, so it cannot hold that itself."""
    inside = [word for word in known if word != "args"]
    entries = field.named(what, reserved=("all",)).items() if field else ()
    return tuple(
        Variant(name=name, args=_command(entry.entries(VARIANT_KEYS).get("args"), inside)) for name, entry in entries
    )


def _metrics(field: Field | None) -> tuple[tuple[Metric, ...], tuple[str, ...]]:
    metrics: list[Metric] = []
    notes: list[str] = []
    for name, entry in field.named("metric").items() if field else ():
        before = len(entry.faults)
        declared = _declared(entry)
        if len(entry.faults) > before:
            continue
        try:
            metric = complete(name, declared)
        except ValueError as error:
            entry.fault(_sentence(str(error), name))
        else:
            metrics.append(metric)
            notes += _assumed(metric, declared)
    return tuple(metrics), tuple(notes)


def _sentence(text: str, name: str) -> str:
    """What is wrong with a metric, without its name in front: the place of the fault says it already."""
    rest = text.removeprefix(f"{name}: ")
    return f"{rest if rest == text else rest[0].upper() + rest[1:]}."


def _declared(entry: Field) -> dict[str, object]:
    fields = entry.entries(METRIC_KEYS)
    values: dict[str, object] = {}
    for key, field in fields.items():
        if key in _METRIC_WORDS:
            values[key] = field.one_of(get_args(_METRIC_WORDS[key]))
        elif key == "builtin":
            values[key] = field.one_of(tuple(BUILTINS))
        elif key in ("tolerance", "noise"):
            values[key] = _amount(field)
        elif key == "pick":
            values |= _pick(field)
        elif key in ("target", "per_step"):
            values[key] = field.number()
        elif key in ("gate", "confirm"):
            values[key] = field.truth()
        else:
            values[key] = field.text(may_be_empty=key == "unit")
    return {key: value for key, value in values.items() if value is not None}


def _pick(field: Field) -> dict[str, object]:
    """One of the words, or `at 1000`, `steps to 0.5`, `seconds to 76`."""
    text = field.text() or ""
    word, _, number = text.strip().rpartition(" ")
    if word.strip() in NUMBERED and decimal(number) is not None:
        return {"pick": word.strip(), "number": decimal(number)}
    if text.strip() in NUMBERED:
        field.fault(f"{code(text)} needs a number.", f"Example: `{text.strip()} 1000`.")
        return {}
    return {"pick": field.one_of([name for name in get_args(Pick) if name not in NUMBERED])} if text else {}


def _amount(field: Field) -> Amount | None:
    text = field.text()
    match = _AMOUNT.fullmatch(text.strip()) if text is not None else None
    value = decimal(match[1]) if match else None
    if text is not None and (value is None or value < 0):
        field.fault(f"{code(text)} is no amount.", "Write `0.5` (in the metric's unit) or `5%`.")
        return None
    return Amount(value=value, percent=bool(match and match[2])) if value is not None else None


def _assumed(metric: Metric, declared: dict[str, object]) -> list[str]:
    """What the file does not say and is taken for granted, as one sentence; nothing when it says everything."""
    parts = []
    if "kind" not in declared and metric.kind != "other":
        parts.append(f"read as {metric.kind}")
    if metric.better is None:
        parts.append("no direction known, so it is shown without a verdict")
    elif "better" not in declared:
        parts.append(f"{metric.better} is better")
    for key, amount in (("tolerance", metric.tolerance), ("noise", metric.noise)):
        if key not in declared and amount is not None:
            shown = f"{amount * 100:g} %" if metric.scale == "log" else f"{amount:g} {metric.unit}".rstrip()
            parts.append(f"{key} {shown}")
    if "pick" not in declared and metric.builtin is None:
        parts.append(f"pick {metric.picked}")
    return [f"{code(metric.name)}: {', '.join(parts)}"] if parts else []
