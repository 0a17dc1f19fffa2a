"""Numbers and bytes of checkpoints, as the real writer makes them; nothing is believed that does not add up."""

import json
from pathlib import Path

import pytest

from bot.measure.weights import Weights, counted, header_end, last_checkpoint, weights_of


def _file(folder: Path, name: str, header: object, room: int) -> None:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(len(text).to_bytes(8, "little") + text + bytes(room))


def _tensor(shape: list[int], start: int, end: int, dtype: str = "F32") -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


def test_the_last_checkpoint_counts(tmp_path: Path) -> None:
    _file(tmp_path, "step-9.safetensors", {"w": _tensor([10], 0, 40)}, 40)
    _file(tmp_path, "step-100.safetensors", {"w": _tensor([2, 3], 0, 24), "b": _tensor([], 24, 28)}, 28)
    assert weights_of(tmp_path) == Weights(7, 28)


def test_a_checkpoint_in_several_files(tmp_path: Path) -> None:
    header = {"w": _tensor([4], 0, 8, "BF16"), "__metadata__": {"format": "pt"}}
    for part in (1, 2):
        _file(tmp_path, f"best/model-0000{part}-of-00002.safetensors", header, 8)
    assert weights_of(tmp_path) == Weights(8, 16)


def test_no_checkpoint(tmp_path: Path) -> None:
    assert weights_of(tmp_path / "none") is None
    (tmp_path / "model.pt").write_bytes(b"PK")
    assert weights_of(tmp_path) is None


@pytest.mark.parametrize(
    ("header", "room"),
    [
        (b"", 0),
        (b"{", 10),
        (b"[]", 10),
        (b"[" * 5_000, 10),
        ({"w": _tensor([10], 0, 40)}, 39),
        ({"w": _tensor([10], 0, 20)}, 40),
        ({"w": _tensor([10], 40, 0)}, 40),
        ({"w": _tensor([-10], 0, 40)}, 40),
        ({"w": _tensor([True], 0, 4)}, 40),
        ({"w": {"dtype": "F32"}}, 40),
        ({"w": 3}, 40),
    ],
)
def test_headers_that_lie(tmp_path: Path, header: object, room: int) -> None:
    _file(tmp_path, "model.safetensors", header, room)
    assert weights_of(tmp_path) is None


def test_a_header_that_claims_to_be_endless(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes((2**63).to_bytes(8, "little") + b"{}")
    assert weights_of(tmp_path) is None


def test_a_file_without_tensors_holds_nothing(tmp_path: Path) -> None:
    _file(tmp_path, "model.safetensors", {}, 0)
    assert weights_of(tmp_path) == Weights(0, 0)


def test_the_beginning_of_a_file_is_enough(tmp_path: Path) -> None:
    _file(tmp_path, "model.safetensors", {"w": _tensor([10], 0, 40)}, 40)
    whole = (tmp_path / "model.safetensors").read_bytes()
    end = header_end(whole[:8], len(whole))
    assert end == len(whole) - 40
    assert counted(whole[:end], len(whole)) == Weights(10, 40)
    assert counted(whole[: end - 1], len(whole)) is None
    assert header_end(whole[:7], len(whole)) is None
    assert header_end(whole[:8], end - 1) is None


def test_which_files_are_the_last_checkpoint() -> None:
    names = ["a/m-00001-of-00002.safetensors", "b/m-00001-of-00002.safetensors", "b/m-00002-of-00002.safetensors"]
    assert last_checkpoint([*names, "z.pt"]) == tuple(names[1:])
    assert last_checkpoint(["z.pt"]) == ()
