"""Check runs. Only an App makes them, and only its own can it change."""

from aiohttp import web

from bot.sandbox import bare
from bot.sandbox.api.base import Call, Routes
from bot.sandbox.state import CheckRun, Problem, invalid, iso, not_found

ROUTES = Routes()
_READ, _WRITE = "checks:read", "checks:write"
_STATUS = ("queued", "in_progress", "completed")
_CONCLUSIONS = ("action_required", "cancelled", "failure", "neutral", "success", "skipped", "stale", "timed_out")


def _check(call: Call) -> CheckRun:
    wanted = call.number("check_run_id")
    for check in call.repository.checks:
        if check.id == wanted:
            return check
    raise not_found()


async def _fields(call: Call) -> dict[str, object]:
    """What was sent, within GitHub's rules; times are filled in as GitHub does."""
    sent = await call.body()
    if sent.get("status", "queued") not in _STATUS:
        raise invalid("CheckRun", "status", "is not queued, in_progress or completed")
    if sent.get("conclusion") not in (None, *_CONCLUSIONS):
        raise invalid("CheckRun", "conclusion", "is not a conclusion")
    if len(sent.get("actions") or ()) > 3:
        raise invalid("CheckRun", "actions", "are more than 3")
    limits = {"label": 20, "description": 40, "identifier": 20}
    for action in sent.get("actions") or ():
        for name, most in limits.items():
            if not 0 < len(str(action.get(name, ""))) <= most:
                raise invalid("CheckRun", f"actions.{name}", f"has not 1 to {most} characters")
    output = sent.get("output") or {}
    if len(output.get("annotations") or ()) > 50:
        raise invalid("CheckRun", "output.annotations", "are more than 50")
    for name in ("summary", "text"):
        if len(output.get(name) or "") > 65_535:
            raise invalid("CheckRun", f"output.{name}", "is too long (maximum is 65535 characters)")
    now = iso(call.hub.state.clock())
    if sent.get("conclusion"):
        sent.setdefault("completed_at", now)
    return sent


@ROUTES.below("POST", "/check-runs", _WRITE, right="admin")
async def create_check(call: Call) -> web.StreamResponse:
    """A new one on a commit of this repository."""
    app, fields = call.acting_app, await _fields(call)
    sha = str(fields.pop("head_sha", ""))
    if not fields.get("name") or not sha:
        raise invalid("CheckRun", "name", "or head_sha is missing")
    try:
        await bare.commit(call.repository.folder, sha)
    except Problem:
        raise invalid("CheckRun", "head_sha", f"has no commit {sha}") from None
    fields.setdefault("started_at", iso(call.hub.state.clock()))
    check = call.hub.acts.check(call.repository, app, sha, fields)
    return web.json_response(call.hub.shapes.check(call.repository, check), status=201)


@ROUTES.below("PATCH", "/check-runs/{check_run_id}", _WRITE, right="admin")
async def update_check(call: Call) -> web.StreamResponse:
    """What the App says now."""
    app, check = call.acting_app, _check(call)
    if check.app is not app:
        raise Problem(403, "Invalid app_id. It is not the App that made this check run.")
    call.hub.acts.update_check(call.repository, check, await _fields(call))
    return web.json_response(call.hub.shapes.check(call.repository, check))


@ROUTES.below("GET", "/check-runs/{check_run_id}", _READ)
async def show_check(call: Call) -> web.StreamResponse:
    """One check run."""
    return web.json_response(call.hub.shapes.check(call.repository, _check(call)))


@ROUTES.below("GET", "/check-runs/{check_run_id}/annotations", _READ)
async def list_annotations(call: Call) -> web.StreamResponse:
    """Its annotations."""
    blank = {"start_column": None, "end_column": None, "title": None, "raw_details": None}
    of_jobs = {run.job_id: run.annotations for run in call.repository.runs}
    job_id = call.number("check_run_id")
    noted = of_jobs[job_id] if job_id in of_jobs else _check(call).annotations
    return call.page(noted, lambda each: {**blank, "blob_href": call.hub.state.origin, **each})


@ROUTES.below("POST", "/check-runs/{check_run_id}/rerequest", _WRITE, right="write")
async def rerequest(call: Call) -> web.StreamResponse:
    """As if somebody pressed "re-run"."""
    call.hub.acts.rerequest(call.repository, _check(call), call.who)
    return web.json_response({}, status=201)


@ROUTES.below("GET", "/commits/{ref:.+}/check-runs", _READ)
async def list_checks(call: Call) -> web.StreamResponse:
    """Check runs of a commit; the newest of each name unless `filter=all`."""
    query = call.request.query
    sha = await bare.resolve(call.repository.folder, call.request.match_info["ref"])
    checks = [check for check in reversed(call.repository.checks) if check.head_sha == sha]
    if query.get("filter", "latest") == "latest":
        newest: dict[tuple[int, str], CheckRun] = {}
        for check in checks:
            newest.setdefault((check.app.id, check.fields["name"]), check)
        checks = list(newest.values())
    for name, key in (("check_name", "name"), ("status", "status")):
        if name in query:
            checks = [check for check in checks if check.fields[key] == query[name]]
    if "app_id" in query:
        checks = [check for check in checks if str(check.app.id) == query["app_id"]]
    return call.page(checks, lambda check: call.hub.shapes.check(call.repository, check), "check_runs")
