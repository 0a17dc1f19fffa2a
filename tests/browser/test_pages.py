"""What a visitor sees: types a command on the pull request's page, watches, opens the results and TensorBoard."""

import json
import math

import pytest
from playwright.async_api import Page, expect

from tests.browser.conftest import Visit
from tests.harness.agent import Training
from tests.harness.land import FULL_NAME
from tests.harness.world import World
from tests.unit.measure.records import file_of, places

pytestmark = pytest.mark.browser


async def _fits(page: Page) -> None:
    """Nothing is wider than the window."""
    wide = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0


async def test_a_command_typed_into_the_page_is_answered_on_it(world: World, visit: Visit) -> None:
    page = await visit.page()
    await page.goto(f"{world.sandbox.url}/{FULL_NAME}/pull/1")
    await expect(page.get_by_role("heading", name="Make it faster")).to_be_visible()
    await page.get_by_label("Comment, for example").fill("/benchmark resnet50")
    await (
        page.locator("form", has=page.get_by_label("Comment, for example"))
        .get_by_role("combobox")
        .select_option("maya")
    )
    await page.get_by_role("button", name="Comment", exact=True).click()
    await page.get_by_label("Comment, for example").fill("half a thought")
    await world.settle()
    # the page looks for news by itself, and keeps what is being typed
    await expect(page.locator("#timeline")).to_contain_text("2 no change", timeout=10_000)
    await expect(page.get_by_label("Check runs")).to_contain_text("benchbot / resnet50")
    await expect(page.get_by_label("Comment, for example")).to_have_value("half a thought")
    await expect(page.locator("#timeline")).to_contain_text("🚀")
    await page.get_by_text("Runs (4)").click()
    await expect(page.get_by_role("cell", name="head", exact=True).first).to_be_visible()
    world.read()


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
async def test_results_read_well_on_every_screen(world: World, visit: Visit, width: int, dark: bool) -> None:
    await world.says("maya", "/benchmark resnet50 pairs=1")
    world.read()
    (request,) = await world.requests()
    base = world.services.settings.base_url
    page = await visit.page(width=width, dark=dark)
    await page.goto(f"{base}/requests/{request.id}")
    await expect(page.get_by_role("heading", level=1)).to_be_visible()
    await _fits(page)
    await page.get_by_role("link", name="run", exact=True).first.click()
    await expect(page.get_by_text("training", exact=False).first).to_be_visible()
    await _fits(page)
    await page.goto(base)
    await expect(page.get_by_text("/benchmark resnet50").first).to_be_visible()
    await _fits(page)
    await page.get_by_role("link", name="What they cost").click()
    await expect(page.get_by_role("heading", name="Newest requests")).to_be_visible()
    await _fits(page)
    await page.goto(f"{world.sandbox.url}/{FULL_NAME}/pull/1")
    await _fits(page)


async def test_tensorboard_opens_with_head_and_base(world: World, visit: Visit) -> None:
    await world.says("maya", "/benchmark resnet50 pairs=1")
    world.read()
    (request,) = await world.requests()
    page = await visit.page()
    await page.goto(f"{world.services.settings.base_url}/requests/{request.id}/tensorboard/")
    await expect(page.get_by_text("head/1 seed 1").first).to_be_visible(timeout=20_000)
    await expect(page.get_by_text("base/2 seed 1").first).to_be_visible()
    await expect(page.get_by_text("train/seconds_per_step").first).to_be_visible()


async def test_a_run_is_watched_while_it_trains(world: World, visit: Visit) -> None:
    """Log and curves grow on the open page, and it turns into that of a finished run by itself."""
    world.hold_agents = True
    await world.says("maya", "/benchmark smoke pairs=1")
    agent = await world.agent()
    await agent.claim()
    run = agent.work["runs"][0]["id"]
    page = await visit.page()
    await page.goto(f"{world.services.settings.base_url}/runs/{run}")
    await expect(page.locator("#log-note")).to_have_text("Nothing has been printed yet.")
    await agent.post("event", {"kind": "run_started", "run": run})
    data = file_of("loss", 300)
    cut = places(data)[51]
    await agent.put(f"runs/{run}/files/logs/events.out.tfevents.1?offset=0", data[:cut])
    await agent.put(f"runs/{run}/files/log.txt?offset=0", b"epoch 1\n")
    chart = page.locator("#curves figure")
    await expect(chart).to_have_count(1)
    await expect(chart.locator("strong")).to_have_text("24.5")
    await expect(page.locator("#state")).to_have_text("running")
    await expect(page.locator("#log")).to_have_text("epoch 1\n")
    await agent.put(f"runs/{run}/files/logs/events.out.tfevents.1?offset={cut}", data[cut:])
    await expect(chart.locator("strong")).to_have_text("149.5")
    files = {"logs/events.out.tfevents.1": data}
    agent.script = lambda commit, seed: Training(
        values={"validation/accuracy": 90.0}, files=files, log="epoch 1\nend\n"
    )
    for each in agent.work["runs"]:
        await agent.train(each)
    await agent.post("finish", {"outcome": "done", "sentence": ""})
    await expect(page.locator("#state")).to_have_text("done")
    await expect(page.locator("#log")).to_contain_text("end")
    await expect(chart).to_have_count(2)
    await world.settle()
    world.read()


def _training(at_head: bool, seed: int) -> Training:
    """Two hundred steps; the head learns less, and in one seed it is lost at the end."""
    rows = []
    for step in range(200):
        accuracy = (80 - 4 * at_head + seed) * (1 - math.exp(-step / 40)) + math.sin(step * seed)
        lost = at_head and seed == 2 and step >= 190
        row = {"validation/accuracy": math.nan if lost else accuracy, "train/seconds_per_step": 0.1 * 2 ** (step % 7)}
        rows.append(json.dumps({"step": step, "wall_time": 1000.0 + step} | row))
    return Training(files={"logs/metrics.jsonl": "\n".join(rows).encode() + b"\n"})


async def test_curves_of_head_and_base_lie_over_each_other(world: World, visit: Visit) -> None:
    """The picture becomes charts that tell what is under the pointer, with a table of where both sides got to."""
    world.script = lambda commit, seed: _training(commit == world.pull.head_sha, seed)
    await world.says("maya", "/benchmark resnet50 seeds=2")
    world.read()
    (request,) = await world.requests()
    page = await visit.page()
    await page.goto(f"{world.services.settings.base_url}/requests/{request.id}")
    await expect(page.locator("figure.overlay")).to_have_count(2)
    chart = page.locator("figure.overlay", has=page.get_by_text("accuracy", exact=True))
    await chart.locator("svg").hover(position={"x": 1, "y": 40})
    await expect(chart.locator("output")).to_contain_text("step 0: ")
    await chart.locator("svg").focus()
    await page.keyboard.press("ArrowRight")
    await expect(chart.locator("output")).to_contain_text("step 1: ")
    rows = chart.get_by_role("row")
    await expect(rows.filter(has_text="step 199")).to_contain_text("%")
    await expect(rows.filter(has_text="reaches base's")).to_contain_text("never")
    await expect(rows.filter(has_text="diverges")).to_contain_text("step 190")
    await page.locator("figure.overlay").last.get_by_label("logarithmic").check()
    await _fits(page)
