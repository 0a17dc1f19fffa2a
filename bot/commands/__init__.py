"""The verbs: one file each, which says what the verb is (`SPEC`) and does it. Found by listing this folder."""

from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType

from bot.commands.desk import Desk, Outcome
from bot.core.grammar import FIRST_VERBS, Spec
from bot.core.nouns import Call

Handler = Callable[[Call, Desk], Awaitable[Outcome]]


@cache
def specs() -> Mapping[str, Spec]:
    """Every verb with its spec, in the order in which help shows them."""
    found = {}
    for module in iter_modules(__path__):
        spec = getattr(import_module(f"{__name__}.{module.name}"), "SPEC", None)
        if isinstance(spec, Spec):
            found[spec.verb] = spec
    return MappingProxyType(dict(sorted(found.items(), key=lambda item: _place(item[0]))))


@cache
def handlers() -> Mapping[str, Handler]:
    """Every verb with what does it."""
    modules = (import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__))
    return MappingProxyType({module.SPEC.verb: module.handle for module in modules if hasattr(module, "SPEC")})


def _place(verb: str) -> tuple[int, str]:
    return (FIRST_VERBS.index(verb) if verb in FIRST_VERBS else len(FIRST_VERBS), verb)
