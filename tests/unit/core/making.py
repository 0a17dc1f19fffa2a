"""Values for tests of the core: a configuration, people, a pull request, calls."""

from collections.abc import Mapping
from typing import Any

from bot.core.nouns import Call, Command, Hardware, Permission, Person, PullRequest, RepoConfig
from bot.core.repo_config import load

HEAD, NEWER, BASE = "a" * 40, "b" * 40, "c" * 40
HARDWARE: Mapping[str, Hardware] = {
    entry.name: entry
    for entry in (
        Hardware(name="local"),
        Hardware(name="a100x1", backend="gce", price_usd_per_hour=3.6),
        Hardware(name="v5e-4", backend="tpu", price_usd_per_hour=4.8),
    )
}
CONFIG = """\
version: 1
benchmarks:
  resnet50:
    run: python train.py --seed {seed} --batch {batch} {args}
    hardware: [a100x1, v5e-4]
    timeout: 2h
    groups: [classification, "@nightly"]
    paths: [models/resnet/**, train.py]
    parameters: {batch: {default: 256, min: 1, max: 1024}, optimizer: {default: sgd, choices: [sgd, adam]}}
    scenarios: {tiling: {args: --tiling}, default: {}}
    init: {scratch: {}, imagenet: {args: "--weights w.npz"}}
    metrics:
      accuracy: {tag: validation/accuracy, gate: true}
  resnet18:
    run: python train.py --small
    groups: [classification]
  vit:
    run: python vit.py
    paths: [models/vit/]
"""


def config(text: str = CONFIG) -> RepoConfig:
    """The configuration of a text that has no faults."""
    found = load(text, hardware=tuple(HARDWARE))
    assert isinstance(found, RepoConfig), found
    return found


def command(verb: str = "run", *targets: str, **options: str) -> Command:
    """A command; `set_batch` is the option `set.batch`."""
    named = {name.replace("set_", "set."): value for name, value in options.items()}
    return Command(verb=verb, targets=targets, options=named, line=3, text="as typed")


def person(permission: Permission = "write", *, kind: Any = "User", id: int = 1) -> Person:
    """Somebody with this right."""
    return Person(id=id, login=f"user{id}", kind=kind, permission=permission)


def pull(*, author: Person | None = None, head_sha: str = HEAD, from_fork: bool = False, is_open: bool = True) -> Any:
    """A pull request of somebody with write right, as GitHub shows it now."""
    return PullRequest(
        repository_id=5,
        full_name="org/models",
        number=7,
        author=author or person(),
        head_sha=head_sha,
        base_ref="main",
        from_fork=from_fork,
        open=is_open,
    )


def call(given: Command, **changes: Any) -> Call:
    """The call of a command by somebody with write right, under the head HEAD."""
    values: dict[str, Any] = {
        "sender": person(),
        "pull": pull(),
        "head_sha": HEAD,
        "base_sha": BASE,
        "baseline": "merge-base with main",
        "config": config(),
        "config_sha": BASE,
        "hardware": HARDWARE,
    }
    return Call(command=given, **{**values, **changes})
