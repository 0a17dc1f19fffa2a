"""Words of a command become benchmarks, in the order of the file."""

import pytest

from bot.core.nouns import Refusal
from bot.core.targets import groups, resolve_targets
from tests.unit.core.making import config

ALL = ("resnet50", "resnet18", "vit")


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("all", ALL),
        ("vit resnet50 vit", ("resnet50", "vit")),
        ("resnet*", ("resnet50", "resnet18")),
        ("resnet?8", ("resnet18",)),
        ("resnet[15]*", ("resnet50", "resnet18")),
        ("@classification", ("resnet50", "resnet18")),
        ("@nightly vit", ("resnet50", "vit")),
        ("all -vit", ("resnet50", "resnet18")),
        ("-vit all", ("resnet50", "resnet18")),
        ("all -resnet*", ("vit",)),
        ("all -@classification", ("vit",)),
        ("* -@nightly -vit", ("resnet18",)),
    ],
)
def test_names_globs_groups_and_what_is_left_out(words: str, names: tuple[str, ...]) -> None:
    assert resolve_targets(tuple(words.split()), config()) == names


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ("resnt50", "unknown_target", "There is no benchmark or group called `resnt50`. Did you mean `resnet50`"),
        ("@clasification", "unknown_target", "Did you mean `@classification`?"),
        ("RESNET50", "unknown_target", "Did you mean `resnet50`"),
        ("vgg*", "unknown_target", "No benchmark matches `vgg*`."),
        ("stats", "unknown_target", "`status`"),
        ("all -resnt50", "unknown_target", "called `-resnt50`. Did you mean `resnet50`"),
        ("vit resnt50 bert", "unknown_target", "called `resnt50` or `bert`. For `resnt50`: Did you mean"),
        ("-vit", "only_exclusions", "for example `all -vit`"),
        ("vit -vit", "no_targets", "Every benchmark that is named is also left out."),
        ("", "no_targets", "`all` or a name says what to run."),
    ],
)
def test_words_that_name_nothing_are_refused_with_what_there_is(words: str, code: str, told: str) -> None:
    refusal = resolve_targets(tuple(words.split()), config())
    assert isinstance(refusal, Refusal)
    assert refusal.code == code
    assert told in f"{refusal.sentence} {refusal.hint}"


def test_a_verb_is_offered_only_when_it_was_probably_meant() -> None:
    refusal = resolve_targets(("qqqq",), config())
    assert isinstance(refusal, Refusal)
    assert refusal.hint == "There are `resnet50`, `resnet18`, `vit`, `@classification` and `@nightly`."


def test_groups_in_the_order_of_the_file() -> None:
    assert groups(config()) == {"classification": ("resnet50", "resnet18"), "nightly": ("resnet50",)}
