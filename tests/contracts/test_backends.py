"""What every backend owes, whatever its cloud does: the same faults, over each stand-in that can have them.

What is particular to one backend is tested in the file of its name.
"""

from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from runners.backends.base import Backend, BackendError
from tests.contracts.clouds import LEASE, NAME, Cloud, Refusal, all_clouds

CLOUDS = all_clouds()
PATIENCE = 60
AWAY = "cannot be reached|come again later|Server Error"


@pytest.fixture
async def cloud(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Cloud]:
    made: Cloud = request.param(tmp_path)
    async with made.open():
        yield made


def every(*faults: str) -> pytest.MarkDecorator:
    """The test is run over each cloud to which all of this can happen."""
    able = [each for each in CLOUDS if all(vars(Cloud)[fault] is not getattr(each, fault) for fault in faults)]
    return pytest.mark.parametrize("cloud", able, indirect=True, ids=lambda each: each.name)


def every_answer(kind: str) -> pytest.MarkDecorator:
    """The test is run over each answer of this kind of each cloud."""
    pairs = [(each, answer) for each in CLOUDS for answer in getattr(each, kind)]
    names = [f"{each.name}-{at}" for each in CLOUDS for at, _ in enumerate(getattr(each, kind))]
    return pytest.mark.parametrize(("cloud", "answer"), pairs, indirect=["cloud"], ids=names)


async def ordered(cloud: Cloud) -> Backend:
    """A backend that has ordered the machine."""
    backend = cloud.backend()
    await backend.create(await cloud.order(backend))
    await cloud.settle()
    return backend


async def state(cloud: Cloud, backend: Backend) -> str:
    return (await backend.observe(NAME, cloud.zone)).state


async def cleared(cloud: Cloud, backend: Backend) -> None:
    """Deleted as the bot does it, again and again until it is absent; and absent is only what is not there."""
    for _ in range(PATIENCE):
        with suppress(OSError):
            await backend.delete(NAME, cloud.zone)
        if await state(cloud, backend) == "absent":
            assert await cloud.is_empty()
            return
        await cloud.later(2)
    raise AssertionError("it does not go")


@every()
async def test_a_machine_from_order_to_absence(cloud: Cloud) -> None:
    """Ordered twice it is one; listed by its label; deleted until it is absent, and deleted once more."""
    backend = cloud.backend()
    assert await state(cloud, backend) == "absent"
    wanted = await cloud.order(backend)
    assert wanted.offer.zone == cloud.zone
    await backend.create(wanted)
    await backend.create(wanted)
    await cloud.settle()
    assert cloud.made() == 1
    seen = await backend.observe(NAME, cloud.zone)
    (owned,) = await cloud.backend().list_owned()
    assert (seen.name, seen.state, owned.name, owned.state) == (NAME, "running", NAME, "running")
    if cloud.labelled:
        for one in (seen, owned):
            assert (one.zone, one.lease_id, one.deadline_at) == (cloud.zone, LEASE, wanted.deadline_at)
    assert cloud.last_words in await backend.diagnose(NAME, cloud.zone)
    await cleared(cloud, backend)
    await backend.delete(NAME, cloud.zone)
    assert await backend.list_owned() == ()
    assert "stage: booted" not in await backend.diagnose(NAME, cloud.zone)


@every_answer("early")
async def test_refused_at_once(cloud: Cloud, answer: Refusal) -> None:
    """Each with what is to be left alone for a while, and the cloud's own sentence; nothing is there."""
    cloud.refuse(answer.answer)
    backend = cloud.backend()
    wanted = await cloud.order(backend)
    with pytest.raises(BackendError) as refused:
        await backend.create(wanted)
    assert (refused.value.code, refused.value.scope) == (answer.code, answer.scope)
    assert answer.said in refused.value.sentence
    assert await state(cloud, backend) == "absent"
    assert await cloud.is_empty()


@every_answer("late")
async def test_refused_after_it_was_accepted(cloud: Cloud, answer: Refusal) -> None:
    """The answer was good, the truth comes later; until then nothing is called absent, and what is left goes."""
    cloud.refuse_late(answer.answer)
    backend = await ordered(cloud)
    assert await state(cloud, backend) in ("starting", "waiting", "stopped")
    await cloud.later(cloud.late_s)
    seen = await backend.observe(NAME, cloud.zone)
    assert seen.state in ("absent", "stopped")
    assert (seen.code, seen.scope) == (answer.code, answer.scope)
    assert answer.said in seen.evidence
    await cleared(cloud, backend)


@every("refuse_late")
async def test_deleted_before_it_is_refused(cloud: Cloud) -> None:
    """It cannot go yet, and is not called absent while it may still come."""
    cloud.refuse_late(cloud.late[0].answer)
    backend = await ordered(cloud)
    await cleared(cloud, backend)
    await cloud.later(cloud.late_s)
    assert await state(cloud, backend) == "absent"
    assert await cloud.is_empty()


@every_answer("busy")
async def test_come_again_later(cloud: Cloud, answer: object) -> None:
    """A busy cloud is not out of stock: the same order is repeated."""
    cloud.refuse(answer)
    backend = cloud.backend()
    wanted = await cloud.order(backend)
    with pytest.raises(OSError, match=AWAY):
        await backend.create(wanted)
    cloud.accept()
    await backend.create(wanted)
    await cloud.settle()
    assert await state(cloud, backend) == "running"


@every("lose_reply")
async def test_the_answer_to_an_order_is_lost(cloud: Cloud) -> None:
    """The order stands; repeating it makes no second machine."""
    cloud.lose_reply()
    backend = cloud.backend()
    wanted = await cloud.order(backend)
    with pytest.raises(OSError, match=AWAY):
        await backend.create(wanted)
    assert await state(cloud, backend) != "absent"
    await backend.create(wanted)
    await cloud.settle()
    assert cloud.made() == 1
    assert await state(cloud, backend) == "running"


@every("lose_reply")
async def test_an_order_whose_answer_was_lost_is_cancelled(cloud: Cloud) -> None:
    """What it made is found by its name, and goes."""
    cloud.lose_reply()
    backend = cloud.backend()
    wanted = await cloud.order(backend)
    with pytest.raises(OSError, match=AWAY):
        await backend.create(wanted)
    await cleared(cloud, backend)


@every("boot_slowly")
async def test_cancelled_in_the_middle_of_the_order(cloud: Cloud) -> None:
    """Whether it can be deleted while it is made or not: it is gone in the end, and does not come after that."""
    cloud.boot_slowly(60)
    backend = await ordered(cloud)
    assert await state(cloud, backend) in ("starting", "waiting")
    await cleared(cloud, backend)
    await cloud.later(61)
    assert await state(cloud, backend) == "absent"


@every("never_boot")
async def test_it_never_boots(cloud: Cloud) -> None:
    """It is starting for as long as somebody waits for it, and it can be deleted."""
    cloud.never_boot()
    backend = await ordered(cloud)
    await cloud.later(900)
    assert await state(cloud, backend) in ("starting", "waiting")
    await cleared(cloud, backend)


@every("preempt")
async def test_preempted(cloud: Cloud) -> None:
    """The cloud took it back: said so, and not called lost; what it leaves goes."""
    backend = await ordered(cloud)
    assert await state(cloud, backend) == "running"
    cloud.preempt()
    seen = await backend.observe(NAME, cloud.zone)
    assert seen.state in ("absent", "stopped")
    assert seen.code == "preempted"
    await cleared(cloud, backend)


@every("fail_deletes")
async def test_deleting_fails_twenty_times(cloud: Cloud) -> None:
    """Each time it is still there, and in the end it is gone."""
    backend = await ordered(cloud)
    cloud.fail_deletes(20)
    for _ in range(20):
        with suppress(OSError):
            await backend.delete(NAME, cloud.zone)
        assert await state(cloud, backend) == "running"
    await cleared(cloud, backend)


@every("delete_slowly")
async def test_the_name_is_still_being_deleted(cloud: Cloud) -> None:
    """Not absent before it is, and deleting it again harms nothing; then the name can be had again."""
    cloud.delete_slowly(30)
    backend = await ordered(cloud)
    assert await state(cloud, backend) == "running"
    for _ in range(2):
        await backend.delete(NAME, cloud.zone)
        assert await state(cloud, backend) == "stopped"
    await cloud.later(31)
    await cleared(cloud, backend)
    await backend.create(await cloud.order(backend, attempt=2))
    await cloud.settle()
    assert cloud.made() == 2
    assert await state(cloud, backend) == "running"


@pytest.mark.parametrize(
    "cloud", [each for each in CLOUDS if each.ends_itself is not None], indirect=True, ids=lambda each: each.name
)
async def test_nobody_is_there_for_a_day(cloud: Cloud) -> None:
    """A machine ends by itself, or is found with the deadline that it is past."""
    backend = await ordered(cloud)
    assert await state(cloud, backend) == "running"
    other = cloud.backend()
    for hours in (2, 10, 12):
        await cloud.later(3600 * hours)
        owned = await other.list_owned()
    if cloud.ends_itself:
        assert owned == ()
        assert await state(cloud, other) == "absent"
        assert await cloud.is_empty()
    else:
        (left,) = owned
        assert (left.name, left.state) == (NAME, "running")
        assert left.deadline_at is not None
        assert left.deadline_at < cloud.clock()


@every("disown")
async def test_machines_of_other_deployments_are_not_ours(cloud: Cloud) -> None:
    """The label decides."""
    backend = await ordered(cloud)
    assert await state(cloud, backend) == "running"
    cloud.disown()
    assert await backend.list_owned() == ()


@every("distrust")
async def test_credentials_that_are_not_known(cloud: Cloud) -> None:
    """The operator's to mend."""
    backend = cloud.backend()
    cloud.distrust()
    with pytest.raises(BackendError, match="credentials") as refused:
        await backend.list_owned()
    assert refused.value.code == "config"


@every("go_away")
async def test_the_cloud_is_away(cloud: Cloud) -> None:
    """The worker comes again."""
    backend = await ordered(cloud)
    await cloud.go_away()
    for call in (backend.list_owned(), backend.observe(NAME, cloud.zone), backend.delete(NAME, cloud.zone)):
        with pytest.raises(OSError, match=AWAY):
            await call
