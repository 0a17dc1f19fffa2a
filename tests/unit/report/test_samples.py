"""Samples as JSON lines and CSV: what goes out comes in again, and what cannot be read is told with its line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.records import SampleLine
from bot.report.samples import BadLine, read, to_csv, to_jsonl

SHA = "0123456789abcdef" * 2 + "01234567"
LINE = SampleLine(benchmark="resnet50", metric="accuracy", commit=SHA, value=76.25)
names = st.text(st.characters(categories=("L", "N", "P", "Zs")), min_size=1, max_size=20).map(
    lambda text: text.strip() or "x"
)
lines = st.builds(
    SampleLine,
    benchmark=names,
    metric=names,
    commit=st.just(SHA),
    value=st.floats(allow_nan=False, allow_infinity=False),
    seed=st.integers(0, 2**63 - 1),
    machine=names,
    at=st.floats(0, 1e10),
)


@given(st.lists(lines, min_size=1, max_size=5))
def test_what_goes_out_comes_in_again(given_lines: list[SampleLine]) -> None:
    assert list(read(to_jsonl(given_lines))) == given_lines
    assert list(read(to_csv(given_lines))) == given_lines


def test_what_is_not_said_is_assumed() -> None:
    text = f'{{"benchmark": "resnet50", "metric": "accuracy", "commit": "{SHA.upper()}", "value": 76.25}}\r\n\r\n'
    assert list(read("\ufeff" + text)) == [LINE]
    assert list(read(f"benchmark,metric,commit,value,seed\nresnet50,accuracy,{SHA},76.25,\n")) == [LINE]


@pytest.mark.parametrize(
    ("text", "number", "told"),
    [
        ("{}", 1, "missing required field `benchmark`"),
        ('\n{"benchmark": 1}', 2, "Expected `str`"),
        ('{"benchmark": "a", "metric": "m", "commit": "abc", "value": 1}', 1, "40 hex digits"),
        (f'{{"benchmark": "a", "metric": "m", "commit": "{SHA}", "value": 1e999}}', 1, "out of range"),
        (f'{{"benchmark": "a", "metric": "m", "commit": "{SHA}", "value": NaN}}', 1, "malformed"),
        (f'{{"benchmark": "a", "metric": "m", "commit": "{SHA}", "value": 1, "sead": 1}}', 1, "unknown field `sead`"),
        ("{" * 5_000, 1, ""),
        ("benchmark,metric,value\na,m,1\n", 1, "the column commit is missing"),
        (f"benchmark,metric,commit,value,colour\na,m,{SHA},1,red\n", 1, "there is no column colour"),
        (f"benchmark,metric,commit,value\na,m,{SHA},fast\n", 2, "value"),
        (f"benchmark,metric,commit,value\na,m,{SHA},nan\n", 2, "finite"),
        (f"benchmark,metric,commit,value\na,m,{SHA}\n", 2, "4 values"),
        (f"benchmark,metric,commit,value\na,m,{SHA},1,2\n", 2, "4 values"),
    ],
)
def test_what_cannot_be_read(text: str, number: int, told: str) -> None:
    (bad,) = read(text)
    assert isinstance(bad, BadLine)
    assert bad.number == number
    assert told in bad.sentence


def test_the_rest_is_used() -> None:
    good = to_jsonl([LINE])
    found = list(read(f"{good}no json\n{good}"))
    assert [isinstance(one, BadLine) for one in found] == [False, True, False]


def test_an_empty_file_holds_nothing() -> None:
    assert [one for one in read("") if isinstance(one, SampleLine)] == []
