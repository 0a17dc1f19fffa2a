"""Fetching GitHub's descriptions, with a package client of the test's own in front of the real one."""

import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness import fetch_contracts, github_contract
from tests.harness.fetch_contracts import PACKAGES, main

Client = Callable[[str], None]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty place for descriptions, on a laptop."""
    monkeypatch.setattr(fetch_contracts, "FOLDER", tmp_path / "contracts")
    monkeypatch.setattr(github_contract, "FOLDER", tmp_path / "contracts")
    monkeypatch.setenv("CI", "")
    return tmp_path / "contracts"


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    """Puts a shell script in the place of npm; `log` gets the names that it was asked for."""
    programs = tmp_path / "programs"
    programs.mkdir()

    def put(script: str) -> None:
        (programs / "npm").write_text(f'#!/bin/sh\necho "$3" >> {tmp_path}/log\n{script}\n')
        (programs / "npm").chmod(0o755)

    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    return put


def _pack(folder: Path, **content: object) -> None:
    """An archive that holds, under every path that we look for, the JSON of a name and of `content`."""
    with tarfile.open(folder / "all.tgz", "w:gz") as archive:
        for inside in {inside for _, _, inside, _ in PACKAGES}:
            (folder / "file").write_text(json.dumps({"inside": inside, **content}))
            archive.add(folder / "file", inside)


def test_each_file_is_fetched_once_and_again_for_a_new_version(
    folder: Path, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _pack(tmp_path)
    client(f"cp {tmp_path}/all.tgz .")
    assert main() == 0
    log = tmp_path / "log"
    assert log.read_text().split() == [f"{package}@{version}" for package, version, _, _ in PACKAGES]
    for _, _, inside, name in PACKAGES:
        assert json.loads((folder / name).read_text())["inside"] == inside
    assert main() == 0
    assert len(log.read_text().split()) == len(PACKAGES)
    newer = tuple((package, "99.0.0", inside, name) for package, _, inside, name in PACKAGES)
    monkeypatch.setattr(fetch_contracts, "PACKAGES", newer)
    _pack(tmp_path, newer=True)
    assert main() == 0
    assert all(json.loads((folder / name).read_text())["newer"] for _, _, _, name in PACKAGES)


def test_a_file_that_was_deleted_is_fetched_again(folder: Path, client: Client, tmp_path: Path) -> None:
    _pack(tmp_path)
    client(f"cp {tmp_path}/all.tgz .")
    assert main() == 0
    (folder / "rest.json").unlink()
    assert main() == 0
    assert (folder / "rest.json").is_file()


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo first >&2; echo no network >&2; exit 1", "cannot be fetched: no network"),
        ("exit 1", "npm said nothing"),
        ("exit 0", "npm said nothing"),
        ("echo this is no archive > all.tgz", "is broken"),
        ("tar czf all.tgz --files-from /dev/null", "holds no package/generated"),
    ],
)
@pytest.mark.parametrize("ci", [False, True])
@pytest.mark.usefixtures("folder")
def test_what_cannot_be_fetched_fails_in_ci_only(
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    script: str,
    said: str,
    ci: bool,
) -> None:
    client(script)
    monkeypatch.setenv("CI", "true" if ci else "")
    assert main() == (1 if ci else 0)
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
    assert ("will be skipped" in told) is not ci
    assert not list(fetch_contracts.FOLDER.glob("*.json"))


def test_no_npm_at_all_is_said(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main() == 0
    assert "npm is not installed" in capsys.readouterr().err


def test_a_missing_description_skips_on_a_laptop_and_fails_in_ci(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(pytest.skip.Exception, match="fetch_contracts"):
        github_contract.contracts_or_skip("rest.json")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="fetch_contracts"):
        github_contract.contracts_or_skip("rest.json")
