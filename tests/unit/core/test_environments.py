"""What an agent tells of an environment: whatever it is, it fits into a row and a page."""

import hashlib

import pytest

from bot.core.environments import MOST_PACKAGES, Environment, differences, heard


def test_what_is_told_is_kept() -> None:
    told = {"python": "3.9.2", "frameworks": {"torch": "2.8"}, "packages": ["a==1", "b==2 @ https://x/b.whl"]}
    found = heard(told)
    assert found == Environment(
        python="3.9.2", frameworks={"torch": "2.8"}, packages=("a==1", "b==2 @ https://x/b.whl")
    )
    assert found.packages_sha256 == hashlib.sha256(b"a==1\nb==2 @ https://x/b.whl\n").hexdigest()


@pytest.mark.parametrize("told", [None, {}, [], "x", 3])
def test_an_older_agent_tells_nothing(told: object) -> None:
    assert heard(told) is None


def test_anything_else_is_cut_to_size() -> None:
    found = heard(
        {
            "python": ["3"],
            "platform": "x" * 1000 + "\n",
            "driver": "5\x1b[31m\ud800",
            "devices": {"a": 1},
            "frameworks": {str(n): "1" for n in range(99)},
            "cuda": {"torch": None, "": "1", "runtime": "12\u202e"},
            "packages": [f"p{n}==1" for n in range(MOST_PACKAGES + 9)] + [7],
        }
    )
    assert found is not None
    assert (found.python, found.driver, found.devices, found.cuda) == ("", "5[31m", (), {"runtime": "12"})
    assert (len(found.platform), len(found.frameworks), len(found.packages)) == (200, 20, MOST_PACKAGES)


def test_what_differs_between_two() -> None:
    one = Environment(packages=("a==1", "b==2", "c==3"))
    other = Environment(packages=("a==1", "b==4", "d==1"))
    assert differences(one, other) == ("- b==2", "+ b==4", "- c==3", "+ d==1")
    assert differences(one, one) == ()
