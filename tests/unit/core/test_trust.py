"""Who may do what, and which commits may run."""

from collections.abc import Mapping
from typing import Any

import pytest

from bot.commands import specs
from bot.core.nouns import Call, Command, Permission, Person, Refusal
from bot.core.trust import ignores, is_trusted, may, may_approve, may_cancel
from tests.unit.core.making import HEAD, NEWER, call, command, person, pull

RIGHTS: tuple[Permission, ...] = ("admin", "maintain", "write", "triage", "read", "none")
# the lowest right that each verb needs; `cancel` and `confirm` are decided when the request is known
LOWEST: Mapping[str, Permission] = {
    "run": "triage",
    "retry": "triage",
    "allow": "write",
    "plan": "none",
    "status": "none",
    "list": "none",
    "help": "none",
    "cancel": "none",
    "confirm": "none",
}
STRANGER = person("read", id=9)


def _may(given: Call, *, head_moved: bool = False) -> Refusal | None:
    return may(specs()[given.command.verb], given, head_moved=head_moved)


def _command(verb: str, **options: str) -> Command:
    return command(verb, *((HEAD[:10],) if verb == "allow" else ()), **options)


def _code(given: Call, **facts: Any) -> str:
    refusal = _may(given, **facts)
    assert refusal is not None
    assert refusal.line == given.command.line
    return refusal.code


def _run(sender: Permission = "write", *, author: Person | None = None, from_fork: bool = False, **more: Any) -> Call:
    """`/benchmark resnet50` under a pull request."""
    options = more.pop("options", {})
    changes = {"sender": person(sender, id=2), "pull": pull(author=author, from_fork=from_fork), **more}
    return call(command("run", "resnet50", **options), **changes)


@pytest.mark.parametrize("verb", sorted(specs()))
@pytest.mark.parametrize("permission", RIGHTS)
def test_every_row_of_the_table_of_rights(verb: str, permission: Permission) -> None:
    refusal = _may(call(_command(verb), sender=person(permission, id=2)))
    if RIGHTS.index(permission) <= RIGHTS.index(LOWEST[verb]):
        assert refusal is None
    else:
        assert refusal is not None
        assert refusal.code == "not_allowed"
        assert f"needs {LOWEST[verb]} right or more" in refusal.sentence
        assert f"you have {permission}." in refusal.sentence


@pytest.mark.parametrize("verb", sorted(specs()))
@pytest.mark.parametrize("kind", ["Bot", "Organization"])
def test_only_people_give_commands(verb: str, kind: str) -> None:
    assert _code(call(_command(verb), sender=person("admin", kind=kind))) == "not_allowed"


def test_bots_are_not_answered_and_nobody_speaks_with_another_s_words() -> None:
    # C14: the editor of a comment need not be its author
    alice, bob, robot = person(id=1), person(id=2), person(id=3, kind="Bot")
    assert not ignores(alice, alice)
    assert ignores(bob, alice)
    assert ignores(robot, robot)
    assert ignores(alice, robot)


@pytest.mark.parametrize("permission", RIGHTS)
@pytest.mark.parametrize("from_fork", [False, True])
def test_a_head_is_trusted_when_its_author_may_write_and_it_is_no_fork(permission: Permission, from_fork: bool) -> None:
    # W10: a head repository that is gone counts as a fork
    trusted = is_trusted(pull(author=person(permission), from_fork=from_fork))
    assert trusted == (permission in ("admin", "maintain", "write") and not from_fork)


@pytest.mark.parametrize(("author", "from_fork"), [(STRANGER, True), (STRANGER, False), (person(), True)])
@pytest.mark.parametrize("verb", ["run", "retry"])
def test_an_untrusted_commit_needs_a_word_for_exactly_this_commit(verb: str, author: Person, from_fork: bool) -> None:
    facts = {"sender": person(id=2), "pull": pull(author=author, from_fork=from_fork)}
    refusal = _may(call(command(verb), **facts))
    assert refusal is not None
    assert refusal.code == "untrusted_commit"
    assert ("a fork" if from_fork else "an author without write right") in refusal.sentence
    assert f"sha={HEAD}" in refusal.hint
    assert f"`/benchmark allow {HEAD}`" in refusal.hint
    # somebody with write right names the commit
    assert _may(call(command(verb, sha=HEAD[:10]), **facts)) is None
    # or has allowed it; another commit's permission is worth nothing
    assert _may(call(command(verb), **facts, allowed_shas=frozenset({HEAD}))) is None
    assert _code(call(command(verb), **facts, allowed_shas=frozenset({NEWER}))) == "untrusted_commit"
    # planning starts nothing
    assert _may(call(command("plan"), **facts)) is None


def test_triage_starts_what_is_trusted_and_cannot_vouch_for_a_commit() -> None:
    assert _may(_run("triage")) is None
    refusal = _may(_run("triage", author=STRANGER, from_fork=True, options={"sha": HEAD}))
    assert refusal is not None
    assert refusal.code == "untrusted_commit"
    assert "Ask somebody with write right" in refusal.hint
    allowed = _run("triage", author=STRANGER, from_fork=True, allowed_shas=frozenset({HEAD}))
    assert _may(allowed) is None


def test_the_author_of_a_fork_cannot_allow_the_own_commit() -> None:
    mine = {"sender": STRANGER, "pull": pull(author=STRANGER, from_fork=True)}
    assert _code(call(command("allow", HEAD), **mine)) == "not_allowed"
    assert _code(call(command("run", "all", sha=HEAD), **mine)) == "not_allowed"


def test_a_moved_head_is_refused_with_the_ready_command() -> None:
    # C13: what was meant is the head of the comment; the new one was not seen
    moved = _run(pull=pull(head_sha=NEWER), options={"pairs": "3"})
    refusal = _may(moved, head_moved=True)
    assert refusal is not None
    assert refusal.code == "head_moved"
    assert f"`/benchmark resnet50 pairs=3 sha={NEWER}`" in refusal.hint
    assert HEAD[:10] in refusal.sentence
    assert _code(_run(pull=pull(head_sha=NEWER), options={"sha": HEAD}), head_moved=True) == "head_moved"


def test_a_sha_that_is_not_the_head_is_refused_with_the_one_that_is() -> None:
    refusal = _may(_run(options={"sha": "d" * 10}))
    assert refusal is not None
    assert refusal.code == "other_head"
    assert f"sha={HEAD}" in refusal.hint
    assert _may(_run(options={"sha": HEAD[:7]})) is None


def test_allow_is_only_for_the_head_that_was_seen() -> None:
    assert _may(call(command("allow", HEAD[:7]))) is None
    refusal = _may(call(command("allow", NEWER[:10])))
    assert refusal is not None
    assert refusal.code == "other_head"
    assert f"`/benchmark allow {HEAD}`" in refusal.hint


def test_the_pull_request_s_own_file_needs_write_right() -> None:
    assert _code(_run("triage", options={"config": "head"})) == "not_allowed"
    assert _may(_run("triage", options={"config": "base"})) is None
    assert _may(_run("write", options={"config": "head"})) is None


@pytest.mark.parametrize("verb", sorted(specs()))
def test_a_closed_pull_request_starts_nothing_but_still_answers(verb: str) -> None:
    refusal = _may(call(_command(verb), pull=pull(is_open=False)))
    assert (refusal.code if refusal else None) == ("closed" if verb in ("run", "retry") else None)


def test_another_prefix_stands_in_what_to_type() -> None:
    given = _run(author=STRANGER, from_fork=True)
    refusal = may(specs()["run"], given, prefix="@bench")
    assert refusal is not None
    assert f"`@bench resnet50 sha={HEAD}`" in refusal.hint
    assert f"`@bench allow {HEAD}`" in refusal.hint


@pytest.mark.parametrize("permission", RIGHTS)
def test_cancel_is_for_who_asked_and_for_those_who_may_write(permission: Permission) -> None:
    other = may_cancel(person(permission, id=2), requester_id=1)
    assert (other is None) == (permission in ("admin", "maintain", "write"))
    assert may_cancel(person(permission, id=1), requester_id=1) is None
    assert may_cancel(person("none", id=1, kind="Bot"), requester_id=1) is not None


@pytest.mark.parametrize("permission", RIGHTS)
def test_an_approval_counts_from_people_who_may_write(permission: Permission) -> None:
    # W16: anybody may press the button on a public repository
    writes = permission in ("admin", "maintain", "write")
    refusal = may_approve(person(permission), HEAD, HEAD)
    assert (refusal.code if refusal else None) == (None if writes else "not_allowed")
    assert may_approve(person(permission, kind="Bot"), HEAD, HEAD) is not None


@pytest.mark.parametrize("reviewed", [NEWER, "", HEAD[:10]])
def test_an_approval_of_another_commit_than_the_head_is_void(reviewed: str) -> None:
    # W17
    refusal = may_approve(person("admin"), reviewed, HEAD)
    assert refusal is not None
    assert refusal.code == "head_moved"
