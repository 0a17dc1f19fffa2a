"""Which benchmarks the words of a command name: names, globs, `@group`, `all`, and `-` in front to leave out."""

from fnmatch import fnmatchcase

from bot.core.grammar import FIRST_VERBS
from bot.core.nouns import Refusal, RepoConfig
from bot.core.wording import code, listed, nearest, one_of

_GLOB = frozenset("*?[")


def resolve_targets(words: tuple[str, ...], config: RepoConfig) -> tuple[str, ...] | Refusal:
    """Names of benchmarks in the order of the file; every word must name at least one."""
    wanted: set[str] = set()
    left_out: set[str] = set()
    unknown: list[str] = []
    for word in words:
        excludes = word.startswith("-")
        names = _named(word[1:] if excludes else word, config)
        if not names:
            unknown.append(word)
        (left_out if excludes else wanted).update(names)
    if unknown:
        return _unknown(unknown, config)
    if not wanted and left_out:
        return Refusal(
            code="only_exclusions",
            sentence="This says only what to leave out.",
            hint=f"Say also what to run, for example {code(' '.join(['all', *words]))}.",
        )
    names = tuple(name for name in config.benchmarks if name in wanted - left_out)
    if not names:
        return Refusal(
            code="no_targets",
            sentence="No benchmark is left to run.",
            hint="Every benchmark that is named is also left out." if wanted else "`all` or a name says what to run.",
        )
    return names


def groups(config: RepoConfig) -> dict[str, tuple[str, ...]]:
    """Every group with its benchmarks, in the order of the file."""
    found: dict[str, list[str]] = {}
    for benchmark in config.benchmarks.values():
        for group in benchmark.groups:
            found.setdefault(group, []).append(benchmark.name)
    return {group: tuple(names) for group, names in found.items()}


def _named(word: str, config: RepoConfig) -> tuple[str, ...]:
    if word == "all":
        return tuple(config.benchmarks)
    if word.startswith("@"):
        return groups(config).get(word[1:], ())
    if word in config.benchmarks:
        return (word,)
    if _GLOB.intersection(word):
        return tuple(name for name in config.benchmarks if fnmatchcase(name, word))
    return ()


def _unknown(words: list[str], config: RepoConfig) -> Refusal:
    names = (*config.benchmarks, *(f"@{group}" for group in groups(config)))
    globs = [word for word in words if _GLOB.intersection(word)]
    if len(globs) == len(words):
        sentence = f"No benchmark matches {listed(words, 'or')}."
    else:
        sentence = f"There is no benchmark or group called {listed(words, 'or')}."
    hints = [_hint(word.lstrip("-"), names, FIRST_VERBS if at == 0 else ()) for at, word in enumerate(words)]
    if len(words) == 1:
        hint = hints[0]
    else:
        near = [f"For {code(word)}: {hint}" for word, hint in zip(words, hints, strict=True) if hint.startswith("Did")]
        hint = " ".join(near) or hints[0]
    return Refusal(code="unknown_target", sentence=sentence, hint=hint)


def _hint(word: str, names: tuple[str, ...], verbs: tuple[str, ...]) -> str:
    """The nearest names; a verb only where one was probably mistyped."""
    near = nearest(word, (*names, *verbs))
    return f"Did you mean {listed(near, 'or')}?" if near else one_of(names)
