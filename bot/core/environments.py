"""What a run ran in, as its agent tells it: cut to a size, since the repository's own Python has said most of it."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

MOST_PACKAGES = 2000
_LONGEST = 200
_MOST_NAMES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Versions; what is not known is empty.

    `frameworks` are those that can be imported, by module, `cuda` is what each was built for and the `runtime` beside
    them. `driver` and `devices` (their names) are what the vendor's tool says of the machine. `packages` are all
    distributions, `name==version` with ` @ URL` for one that comes from elsewhere, in the order of their names.
    """

    python: str = ""
    platform: str = ""
    driver: str = ""
    devices: tuple[str, ...] = ()
    frameworks: Mapping[str, str] = field(default_factory=dict)
    cuda: Mapping[str, str] = field(default_factory=dict)
    packages: tuple[str, ...] = ()

    @property
    def packages_sha256(self) -> str:
        """Of the lines of `packages`, each with its end: two environments with the same one hold the same."""
        return hashlib.sha256("".join(f"{line}\n" for line in self.packages).encode()).hexdigest()


def heard(message: object) -> Environment | None:
    """What an agent's message says; None where it says nothing."""
    if not isinstance(message, dict) or not message:
        return None
    return Environment(
        python=_line(message.get("python")),
        platform=_line(message.get("platform")),
        driver=_line(message.get("driver")),
        devices=_lines(message.get("devices"), 64),
        frameworks=_names(message.get("frameworks")),
        cuda=_names(message.get("cuda")),
        packages=_lines(message.get("packages"), MOST_PACKAGES),
    )


def differences(one: Environment, other: Environment) -> tuple[str, ...]:
    """Lines of `packages` that only one of them has, `-` for the first and `+` for the second."""
    first, second = set(one.packages), set(other.packages)
    told = [(line, "-") for line in first - second] + [(line, "+") for line in second - first]
    return tuple(f"{sign} {line}" for line, sign in sorted(told))


def _line(told: object) -> str:
    text = told if isinstance(told, str) else ""
    # half of a pair of surrogates cannot be stored
    return "".join(letter for letter in text[: 2 * _LONGEST] if letter.isprintable())[:_LONGEST]


def _lines(told: object, most: int) -> tuple[str, ...]:
    lines = cast(list[object], told)[:most] if isinstance(told, list) else []
    return tuple(line for line in map(_line, lines) if line)


def _names(told: object) -> Mapping[str, str]:
    pairs = list(told.items())[:_MOST_NAMES] if isinstance(told, dict) else []
    return {_line(name): _line(version) for name, version in pairs if _line(name) and _line(version)}
