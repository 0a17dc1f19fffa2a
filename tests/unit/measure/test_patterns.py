"""A tag with stars: what it fits, and which metrics it becomes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.measure.metrics import Metric, complete
from bot.measure.patterns import MOST, declared, expand, settled, stars
from bot.measure.picking import measured
from bot.measure.reading import ROOT, Curve, Health, Reading


def _reading(values: dict[str, float], run: str = ROOT) -> Reading:
    """A run that wrote one value for each tag; a tag may stand behind its directory and a colon."""
    curves = {}
    for name, value in values.items():
        folder, _, tag = name.rpartition(":")
        curve = Curve(
            run=folder or run,
            tag=tag,
            steps=np.array([1]),
            wall_times=np.array([1.0]),
            values=np.array([value]),
        )
        curves[curve.run, curve.tag] = curve
    return Reading(curves=curves, health=Health())


def _metric(tag: str = "eval/*/acc") -> Metric:
    return complete("acc", {"tag": tag, "better": "higher", "unit": "pp", "gate": True})


@pytest.mark.parametrize(
    ("pattern", "name", "found"),
    [
        ("eval/*/acc", "eval/cifar/acc", ("cifar",)),
        ("eval/*/acc", "eval/a/b/acc", ("a/b",)),
        ("eval/*/acc", "eval/acc", None),
        ("eval/*/acc", "xeval/a/acc", None),
        ("*", "", ("",)),
        ("acc*", "acc", ("",)),
        ("*/*", "a/b/c", ("a", "b/c")),
        ("a*a", "a", None),
        ("a*b*c", "abbc", ("", "b")),
        ("a*bb*b", "abb", None),
        ("acc[*", "acc[top1]", ("top1]",)),
        ("a?c", "abc", None),
        ("abc", "abc", ()),
    ],
)
def test_what_a_star_stands_for(pattern: str, name: str, found: tuple[str, ...] | None) -> None:
    assert stars(pattern, name) == found


@given(st.lists(st.text("ab/", max_size=3), min_size=2, max_size=4), st.lists(st.text("ab/", max_size=3), min_size=3))
def test_what_is_put_together_fits_and_can_be_put_together_again(pieces: list[str], between: list[str]) -> None:
    between = between[: len(pieces) - 1]
    name = pieces[0] + "".join(one + piece for one, piece in zip(between, pieces[1:], strict=True))
    found = stars("*".join(pieces), name)
    assert found is not None
    assert pieces[0] + "".join(one + piece for one, piece in zip(found, pieces[1:], strict=True)) == name


def test_a_pattern_becomes_a_metric_for_each_of_its_curves_on_either_side() -> None:
    base = _reading({"eval/b/acc": 90.0, "eval/a/acc": 80.0, "eval/a/loss": 1.0})
    head = _reading({"eval/a/acc": 80.0, "eval/new/acc": 70.0})
    found, said = expand(_metric(), [base], [head])
    assert [(one.name, one.tag) for one in found] == [
        ("acc[a]", "eval/a/acc"),
        ("acc[b]", "eval/b/acc"),
        ("acc[new]", "eval/new/acc"),
    ]
    assert all(one.gate and one.unit == "pp" for one in found)
    assert said == ""
    assert [measured(one, head, {}).value for one in found] == [80.0, None, 70.0]
    assert measured(found[1], head, {}).sentence.startswith("The tag `eval/b/acc` was not found")


def test_a_pattern_that_leaves_one_stays_one() -> None:
    metric = _metric("*/acc")
    base, head = _reading({"version_3:acc": 1.0}), _reading({"version_7:acc": 2.0})
    assert expand(metric, [base], [head]) == ((metric,), "")
    same = _reading({"host-0:acc": 1.0, "host-1:acc": 1.0})
    assert expand(metric, [same], [same]) == ((metric,), "")
    assert expand(metric, [], []) == ((metric,), "")
    plain = complete("acc", {"tag": "acc"})
    assert expand(plain, [_reading({"a:acc": 1.0, "b:acc": 2.0})], []) == ((plain,), "")


def test_curves_are_told_apart_by_their_folder_only_where_their_tag_is_not_enough() -> None:
    one = _reading({"r1:eval/a/acc": 1.0, "r1:eval/b/acc": 2.0})
    two = _reading({"r2:eval/a/acc": 1.0, "r2:eval/b/acc": 2.0})
    found, _ = expand(_metric(), [one], [two])
    assert [one.tag for one in found] == ["eval/a/acc", "eval/b/acc"]
    apart = _reading({"train:eval/a/acc": 3.0, "test:eval/a/acc": 2.0})
    found, _ = expand(_metric(), [apart], [])
    assert [one.tag for one in found] == ["test/eval/a/acc", "train/eval/a/acc"]
    assert [measured(one, apart, {}).value for one in found] == [2.0, 3.0]
    assert [one.name for one in found] == ["acc[test/eval/a/acc]", "acc[train/eval/a/acc]"]


def test_no_new_tag_of_the_head_pushes_out_what_the_base_is_judged_by() -> None:
    base = _reading({f"eval/{number:03}/acc": 1.0 + number for number in range(40)})
    head = _reading({f"eval/!{number:03}/acc": 1.0 + number for number in range(100)})
    found, said = expand(_metric(), [base], [head])
    assert len(found) == MOST
    assert len([one for one in found if one.tag and one.tag in {tag for _, tag in base.curves}]) == 40
    assert said == "acc: `eval/*/acc` fits 140 curves; 50 are compared, those of the base first."


def test_names_of_scripts_are_made_short_and_harmless_and_stay_apart() -> None:
    odd = {f"eval/{part}/acc": float(n) for n, part in enumerate(["a|b", "a`b", "x" * 300, "ä", "*"], 2)}
    found, _ = expand(_metric(), [_reading(odd)], [])
    assert {one.name for one in found} == {"acc[_]", "acc[_ 2]", "acc[a_b]", "acc[a_b 2]", f"acc[{'x' * 59}…]"}
    # a star that a script has written is a star
    star = next(one for one in found if one.tag == "eval/*/acc")
    assert measured(star, _reading(odd), {}).value == 6.0


def test_what_was_compared_stands_for_the_pattern_afterwards() -> None:
    other = complete("loss", {"tag": "loss"})
    found, _ = expand(_metric(), [_reading({"eval/a/acc": 1.0, "eval/b/acc": 2.0})], [])
    assert settled([_metric(), other], [*found, other]) == (*found, other)
    assert settled([_metric(), other], [other]) == (_metric(), other)
    assert {declared(one.name) for one in found} == {"acc"}


def test_many_stars_take_no_time() -> None:
    assert stars("*a" * 50 + "b", "a" * 10_000) is None
