"""List prices of machines, from the dated table beside this file. For estimates; an operator's own price wins."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any


def list_price(backend: str, parts: Mapping[str, int], provisioning: str, zone: str) -> float | None:
    """US dollars an hour of a machine that is made of so many of each part, None where the table lacks one of them.

    A kind of provisioning that has no price of its own counts as standard. `zone` is such as `us-central1-a`.
    """
    known: Mapping[str, Mapping[str, float]] = _table()[backend]
    factor: float | None = _table()["regions"].get(zone.rpartition("-")[0])
    if factor is None or not all(name in known and count > 0 for name, count in parts.items()):
        return None
    each = {name: known[name].get(provisioning, known[name]["standard"]) for name in parts}
    return round(factor * sum(each[name] * count for name, count in parts.items()), 4)


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads((resources.files("runners") / "prices.toml").read_text())
