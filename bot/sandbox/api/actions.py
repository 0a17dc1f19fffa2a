"""Workflows that are started by hand, and their runs. Workflow files are read from git, as far as that needs."""

import re
from collections.abc import Mapping
from typing import Any

from aiohttp import web
from ruamel.yaml import YAML

from bot.sandbox import bare
from bot.sandbox.api.base import Call, Routes
from bot.sandbox.state import Problem, WorkflowRun, not_found

ROUTES = Routes()
_READ, _WRITE = "actions:read", "actions:write"
_LONGEST = 65_535


@ROUTES.below("POST", "/actions/workflows/{workflow}/dispatches", _WRITE, right="write")
async def dispatch(call: Call) -> web.StreamResponse:
    """A new run, as its file says at the ref."""
    sent, file = await call.body(), call.request.match_info["workflow"]
    ref, inputs = str(sent.get("ref", "")), dict(sent.get("inputs") or {})
    await _file(call, call.repository.default_branch, file)
    try:
        sha = await bare.resolve(call.repository.folder, ref)
    except Problem:
        raise Problem(422, f"No ref found for: {ref}") from None
    workflow: Mapping[str, Any] = YAML(typ="safe").load(await _file(call, sha, file))
    if "workflow_dispatch" not in workflow["on"]:
        raise Problem(422, "Workflow does not have 'workflow_dispatch' trigger")
    _check_inputs(workflow["on"]["workflow_dispatch"]["inputs"], inputs)
    (job,) = workflow["jobs"].values()
    state = call.hub.state
    made = WorkflowRun(
        id=state.new_id(),
        job_id=state.new_id(),
        workflow=file,
        title=_filled(workflow["run-name"], inputs),
        label=_filled(job["runs-on"], inputs),
        inputs=inputs,
        actor=call.who,
        ref=ref,
        head_sha=sha,
        created_at=state.clock(),
    )
    call.repository.runs.append(made)
    return web.Response(status=204)


async def _file(call: Call, ref: str, file: str) -> bytes:
    """A workflow's text. Raises Problem 404."""
    return (await bare.blob(call.repository.folder, ref, f".github/workflows/{file}"))[1]


def _check_inputs(known: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    strange = sorted(given.keys() - known.keys())
    if strange:
        raise Problem(422, f"Unexpected inputs provided: {strange}")
    for name, about in known.items():
        if about.get("required") and not given.get(name):
            raise Problem(422, f"Required input '{name}' not provided")
    if sum(len(str(value)) for value in given.values()) > _LONGEST:
        raise Problem(422, "inputs are too large.")


def _filled(text: str, inputs: Mapping[str, Any]) -> str:
    return re.sub(r"\$\{\{ inputs\.(\w+) }}", lambda found: str(inputs[found[1]]), text)


@ROUTES.below("GET", "/actions/workflows/{workflow}/runs", _READ)
async def list_runs(call: Call) -> web.StreamResponse:
    """Runs of a workflow, newest first."""
    query, file = call.request.query, call.request.match_info["workflow"]
    runs = [run for run in reversed(call.repository.runs) if run.workflow == file]
    if not runs:
        await _file(call, call.repository.default_branch, file)
    if "status" in query:
        runs = [run for run in runs if query["status"] in (run.status, run.conclusion)]
    return call.page(runs, lambda run: call.hub.shapes.run(call.repository, run), "workflow_runs")


def _run(call: Call) -> WorkflowRun:
    wanted = call.number("run_id")
    for run in call.repository.runs:
        if run.id == wanted:
            return run
    raise not_found()


@ROUTES.below("GET", "/actions/runs/{run_id}/jobs", _READ)
async def list_jobs(call: Call) -> web.StreamResponse:
    """The one job of a run; none where the workflow could not even begin."""
    run = _run(call)
    begun = [] if run.conclusion == "startup_failure" else [run]
    return call.page(begun, lambda run: call.hub.shapes.job(call.repository, run), "jobs")


@ROUTES.below("POST", "/actions/runs/{run_id}/cancel", _WRITE, right="write")
async def cancel(call: Call) -> web.StreamResponse:
    """Ask a run to end."""
    return _end(_run(call), forced=False)


@ROUTES.below("POST", "/actions/runs/{run_id}/force-cancel", _WRITE, right="write")
async def force_cancel(call: Call) -> web.StreamResponse:
    """Make a run end."""
    return _end(_run(call), forced=True)


def _end(run: WorkflowRun, *, forced: bool) -> web.Response:
    if run.status == "completed":
        raise Problem(409, "Cannot cancel a workflow run that is completed.")
    if forced or not run.deaf:
        run.end("cancelled")
    return web.json_response({}, status=202)
