"""Secrets do not get out of logs: not whole, not in lines, not encoded, not in pieces."""

import base64
import json
import secrets as dice
from itertools import pairwise
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.report.masking import MASK, Masker, mask

TOKEN = "s3cr3t/Tok+en=42"
KEY = "first-line-of-key\nsecond line here\nthird/line+of=key"


def streamed(text: str, cuts: list[int], known: tuple[str, ...] = ()) -> str:
    masker = Masker(known)
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    return "".join(masker.feed(text[a:b]) for a, b in pairwise(places)) + masker.close()


@pytest.mark.parametrize(
    "hidden",
    [
        TOKEN,
        quote(TOKEN, safe=""),
        base64.b64encode(TOKEN.encode()).decode().rstrip("="),
        base64.urlsafe_b64encode(TOKEN.encode()).decode().rstrip("="),
        TOKEN.encode().hex(),
        json.dumps(TOKEN)[1:-1],
    ],
)
def test_a_known_value_is_hidden_in_every_disguise(hidden: str) -> None:
    shown = mask(f"a {hidden} b", [TOKEN])
    assert hidden not in shown
    assert shown.startswith("a ")
    assert shown.endswith(" b")


@pytest.mark.parametrize("before", ["", "u", "us", "use", "user:"])
def test_base64_is_found_wherever_the_value_begins(before: str) -> None:
    encoded = base64.b64encode(f"{before}{TOKEN}\n".encode()).decode()
    assert base64.b64encode(TOKEN.encode()).decode()[4:-4] not in mask(encoded, [TOKEN])
    assert MASK in mask(encoded, [TOKEN])


def test_base64_in_lines_of_76_is_hidden() -> None:
    key = "k" * 30 + "l" * 30 + "m" * 60
    shown = mask(base64.encodebytes(key.encode()).decode(), [key])
    assert shown.count(MASK) == 3
    assert len(shown.replace(MASK, "").strip()) < 12


def test_a_key_of_three_lines_is_hidden_line_by_line() -> None:
    shown = mask("".join(f"> {line}\n" for line in KEY.split("\n")), [KEY])
    assert shown == f"> {MASK}\n> {MASK}\n> {MASK}\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("git clone https://user:token@github.com/x", f"git clone https://{MASK}@github.com/x"),
        ("git clone https://user:p@ss@github.com/x", f"git clone https://{MASK}@github.com/x"),
        ("ghp_" + "a1B2" * 9, MASK),
        ("ghs_" + "a1B2" * 9 + " ok", f"{MASK} ok"),
        ("github_pat_" + "a1_B2" * 9, MASK),
        ("key AKIAABCDEFGHIJKLMNOP.", f"key {MASK}."),
        ("Authorization: Bearer abcdefghijklmnopqrst", f"Authorization: Bearer {MASK}"),
        ("mask-rcnn-resnet50-fpn-coco-2017 is a name", "mask-rcnn-resnet50-fpn-coco-2017 is a name"),
        ("see https://host/a@b and me@host", "see https://host/a@b and me@host"),
        ("loss 0.123 at step 4567", "loss 0.123 at step 4567"),
    ],
)
def test_tokens_are_known_by_their_shape(text: str, shown: str) -> None:
    assert mask(text) == shown


def test_private_keys_are_hidden_to_their_end() -> None:
    text = "a -----BEGIN RSA PRIVATE KEY-----\nMIIabc\n\nMIIdef\n-----END RSA PRIVATE KEY----- b\nc\n"
    assert mask(text) == f"a {MASK}\n{MASK}\n\n{MASK}\n{MASK} b\nc\n"
    assert mask("-----BEGIN PRIVATE KEY-----abc-----END PRIVATE KEY----- d") == f"{MASK} d"


def test_a_key_without_end_does_not_swallow_the_log() -> None:
    text = "-----BEGIN PRIVATE KEY-----\n" + "x\n" * 300 + "last words\n"
    assert mask(text).endswith("last words\n")


@given(st.lists(st.integers(0, 200), max_size=6), st.sampled_from(["\n", "\r", "\r\n", " "]))
def test_pieces_hide_the_same_as_the_whole(cuts: list[int], ending: str) -> None:
    text = ending.join(("start", TOKEN, f"x{TOKEN}y", "ghp_" + "Ab1" * 10, "https://u:p@h/", "end"))
    assert streamed(text, cuts, (TOKEN,)) == mask(text, (TOKEN,))
    assert TOKEN not in streamed(text, cuts, (TOKEN,))


@pytest.mark.parametrize("where", [64 * 1024 - 4, 64 * 1024, 56 * 1024 - 3, 69_627, 73_720, 81_900])
def test_a_line_without_end_comes_out_and_still_hides(where: int) -> None:
    text = "." * where + TOKEN + "." * 100_000
    masker = Masker((TOKEN,))
    early = "".join(masker.feed(text[at : at + 4096]) for at in range(0, len(text), 4096))
    assert len(early) > 60_000
    assert early + masker.close() == text.replace(TOKEN, MASK)


def test_short_and_empty_values_do_not_shred_the_log() -> None:
    assert mask("a bc def", ["", "a", "bc", " "]) == "a bc def"


def test_four_letters_are_hidden_as_they_are() -> None:
    assert mask("pin x7Kq, again x7Kq", ["x7Kq"]) == f"pin {MASK}, again {MASK}"


def test_random_values_never_get_through() -> None:
    for _ in range(20):
        value = dice.token_urlsafe(24)
        assert value not in mask(f"x={value}; {value}{value}", [value])
