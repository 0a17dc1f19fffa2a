"""Docs that say what the code says, and a project that speaks of itself alone."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from bot.__main__ import subcommands
from bot.commands import handlers, specs
from bot.core.lifecycle import LIFECYCLES
from bot.web.webhook import EVENTS
from runners.backends import find_backends
from tests.rules.docs import PAGES

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", PAGES)
def test_generated_pages_are_fresh(name: str) -> None:
    assert (ROOT / "docs" / name).read_text() == PAGES[name](), "run `make docs`"


def test_the_commands_of_the_readme_exist() -> None:
    text = (ROOT / "README.md").read_text()
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z]+)", text)) <= targets
    assert set(re.findall(r"\bbenchbot ([a-z]+)\b(?=[^|]*\n)", text)) & set(subcommands())
    for name in re.findall(r"^(?:\.venv/bin/)?benchbot ([a-z]+)", text, re.MULTILINE):
        assert name in subcommands()


def test_links_of_the_docs_lead_somewhere() -> None:
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name} points to {target}"


def test_every_verb_has_a_handler_and_stands_in_the_readme() -> None:
    assert set(specs()) == set(handlers())
    text = (ROOT / "README.md").read_text()
    for verb in specs():
        assert verb == "run" or verb in text


def test_the_manifest_asks_for_what_the_bot_hears() -> None:
    manifest = YAML(typ="safe").load((ROOT / "app.yml").read_text())
    assert set(manifest["default_events"]) == EVENTS - {"installation", "installation_repositories"}
    assert manifest["default_permissions"] == {
        "metadata": "read",
        "contents": "read",
        "pull_requests": "write",
        "issues": "write",
        "checks": "write",
    }


def test_the_processes_of_the_procfile_are_commands() -> None:
    lines = dict(line.split(": ") for line in (ROOT / "Procfile").read_text().splitlines())
    assert lines == {
        "release": "benchbot migrate",
        "web": "benchbot serve --no-worker",
        "worker": "benchbot work",
    }


def test_every_state_that_is_not_final_says_what_wakes_it() -> None:
    for states in LIFECYCLES.values():
        for name, state in states.items():
            assert state.final or state.woken, name
            assert all(after in states for after in state.after), name


def test_the_makefile_has_its_targets() -> None:
    text = (ROOT / "Makefile").read_text()
    for target in ("help", "setup", "demo", "serve", "test", "check", "story", "bench", "docs"):
        assert re.search(rf"^{target}:.*## ", text, re.MULTILINE), target
    ci = (ROOT / ".ci" / "run").read_text()
    assert "make check" in ci
    assert "make test" in ci


def test_the_extras_are_there() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {"gcp", "kubernetes", "postgres", "demo", "test"} <= set(extras)


def test_no_path_of_a_machine_stands_in_the_project() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    pattern = re.compile(r"/(?:root/|work/(?:main|shared)|home/[a-z]+/)")
    found = []
    for name in listed.split("\0"):
        path = ROOT / name
        if path.suffix in (".png", ".ambr") or not path.is_file():
            continue
        found += [f"{name}: {line.strip()[:80]}" for line in path.read_text().splitlines() if pattern.search(line)]
    assert found == []


def test_every_backend_stands_in_the_index() -> None:
    text = (ROOT / "docs/backends/README.md").read_text()
    for name in find_backends():
        assert re.search(rf"^\| `{name}` \|.*\]\(", text, re.MULTILINE), name
    for page in (ROOT / "docs/backends").glob("*.md"):
        assert page.name == "README.md" or f"]({page.name}" in text, page.name
