"""The options of a command: one table with their meaning, default and check. Nothing else knows what an option is.

A check takes the text that was typed and gives the text to keep, or raises `OptionError` with what would be right.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bot.core.quantities import dollars, seconds, whole
from bot.core.wording import code, did_you_mean

# what this version knows but cannot do yet: an option, or one value of an option; each gets a clear refusal
NOT_YET = frozenset(
    {
        "wheel",
        "vs=accepted",
        "vs=version",
        "vs=several",
    }
)
BASELINES = ("merge-base", "base", "release", "accepted", "self", "tag:", "branch:", "sha:", "version:")
MOST_PAIRS = 10
MOST_SEEDS = 5
LONGEST_VALUE = 300
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_REF = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/+-]{0,199}")


class OptionError(ValueError):
    """A value that an option cannot have: what would be right, and perhaps what was meant."""

    def __init__(self, sentence: str, hint: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.hint = hint


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option as help shows it: `form` is what to type, `check` reads its value. A flag has no check."""

    name: str
    form: str
    meaning: str
    default: str
    check: Callable[[str], str] | None


def _names(text: str) -> str:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise OptionError("a name in the list is empty")
    return ",".join(dict.fromkeys(names))


def _pairs(text: str) -> str:
    number = whole(text, 1, MOST_PAIRS)
    if number is None:
        raise OptionError(f"it takes a whole number from 1 to {MOST_PAIRS}")
    return str(number)


def _seeds(text: str) -> str:
    if text.lower() == "auto":
        return "auto"
    number = whole(text, 1, MOST_SEEDS)
    if number is None:
        raise OptionError(f"it takes a whole number from 1 to {MOST_SEEDS}, or `auto`")
    return str(number)


def _baselines(text: str) -> str:
    return ",".join(dict.fromkeys(_baseline(item.strip()) for item in text.split(",")))


def _baseline(text: str) -> str:
    kind, colon, ref = text.partition(":")
    kind += colon
    if kind not in BASELINES:
        raise OptionError(f"{code(text)} is no baseline", did_you_mean(kind, BASELINES))
    if not colon:
        return text
    if kind == "sha:":
        return f"sha:{commit(ref)}"
    if not _REF.fullmatch(ref) or ".." in ref:
        raise OptionError(f"{code(text)} names nothing that could exist in git")
    return text


def commit(text: str) -> str:
    """A commit's hash or its beginning in lower case: 7 to 40 hex digits. Raises OptionError."""
    if not re.fullmatch(r"[0-9a-fA-F]{7,40}", text):
        raise OptionError("a commit is 7 to 40 hex digits (0-9, a-f), 10 or more are better")
    return text.lower()


def _duration(text: str) -> str:
    if seconds(text) is None:
        raise OptionError("a duration is written like `90m`, `6h` or `1h30m`, and is at most 30 days")
    return text.lower()


def _budget(text: str) -> str:
    amount = dollars(text)
    if amount is None:
        raise OptionError("a budget is an amount of US dollars, such as `20usd`")
    return f"{amount:.2f}".rstrip("0").rstrip(".") + "usd"


def _config(text: str) -> str:
    if text not in ("base", "head"):
        raise OptionError("it is `base` or `head`")
    return text


def _wheel(text: str) -> str:
    if not re.fullmatch(r"https://[^\s\"'<>\\]+\.whl", text):
        raise OptionError("a wheel is an address that starts with `https://` and ends with `.whl`")
    return text


def set_value(text: str) -> str:
    """A value of `set.NAME=`; whether the benchmark allows it is known only with its configuration."""
    if not text.strip():
        raise OptionError("the value is empty")
    return text


OPTIONS: Mapping[str, Option] = {
    option.name: option
    for option in (
        Option(
            name="on",
            form="on=NAME,...",
            meaning="hardware, a list or `all`",
            default="the benchmark's first",
            check=_names,
        ),
        Option(
            name="scenario",
            form="scenario=NAME,...",
            meaning="scenarios, a list or `all`",
            default="`default`, else the first",
            check=_names,
        ),
        Option(
            name="init",
            form="init=NAME,...",
            meaning="initial weights, a list or `all`",
            default="the first",
            check=_names,
        ),
        Option(
            name="vs",
            form="vs=BASELINE",
            meaning="what to compare with: `merge-base`, `base`, `release`, `accepted`, `self`, `tag:x`, `branch:x`, "
            "`sha:x`, `version:x`",
            default="`merge-base`",
            check=_baselines,
        ),
        Option(
            name="pairs",
            form="pairs=N",
            meaning="N runs of each side in the order H B B H, compared pair by pair",
            default="2",
            check=_pairs,
        ),
        Option(
            name="seeds",
            form="seeds=N",
            meaning="N runs of each side, compared as two groups; `auto` adds runs until decided",
            default="-",
            check=_seeds,
        ),
        Option(
            name="set",
            form="set.NAME=VALUE",
            meaning="a parameter that the benchmark declares",
            default="the declared default",
            check=set_value,
        ),
        Option(
            name="timeout",
            form="timeout=90m",
            meaning="a shorter time for each run",
            default="as configured",
            check=_duration,
        ),
        Option(
            name="budget",
            form="budget=20usd",
            meaning="a smaller limit of cost",
            default="as configured",
            check=_budget,
        ),
        Option(
            name="sha",
            form="sha=COMMIT",
            meaning="the head commit that is meant",
            default="the head when the comment was written",
            check=commit,
        ),
        Option(
            name="config",
            form="config=head",
            meaning="take the benchmarks from the pull request's own file",
            default="`base`",
            check=_config,
        ),
        Option(
            name="wheel",
            form="wheel=URL",
            meaning="a built wheel as head",
            default="-",
            check=_wheel,
        ),
        Option(
            name="fresh",
            form="fresh",
            meaning="with `seeds=`: run the base even where its history would do",
            default="reuse",
            check=None,
        ),
    )
}


def not_yet(name: str, value: str | bool) -> str | None:
    """What of an option this version cannot do, as one would type it; None when it can."""
    if name in NOT_YET:
        return name
    kinds = [item.partition(":")[0] for item in str(value).split(",")]
    if name == "vs" and len(kinds) > 1 and "vs=several" in NOT_YET:
        return "vs= with several baselines"
    return next((f"{name}={kind}" for kind in kinds if f"{name}={kind}" in NOT_YET), None)
