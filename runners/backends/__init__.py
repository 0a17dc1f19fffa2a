"""The backends: each module beside this one that defines a `Backend` with a name is one."""

import importlib
import inspect
import pkgutil

from runners.backends.base import Backend


def find_backends() -> dict[str, type[Backend]]:
    """Every backend's class by its name, in order of their names."""
    found: dict[str, type[Backend]] = {}
    for module in pkgutil.iter_modules(__path__):
        members = vars(importlib.import_module(f"{__name__}.{module.name}"))
        for member in members.values():
            if inspect.isclass(member) and issubclass(member, Backend) and not inspect.isabstract(member):
                found[member.name] = member
    return dict(sorted(found.items()))
