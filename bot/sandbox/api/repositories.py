"""A repository: its rights, commits, files, comparisons and releases."""

from aiohttp import web

from bot.sandbox import bare
from bot.sandbox.api.base import APP_ITSELF, Call, Routes
from bot.sandbox.state import Problem, invalid, not_found

ROUTES = Routes()
# how GitHub's five roles look to those who know only the older four
_OLDER = {"triage": "read", "maintain": "write"}


@ROUTES.below("GET", "", "metadata:read")
async def show_repository(call: Call) -> web.StreamResponse:
    """The repository itself."""
    return web.json_response(call.hub.shapes.repository(call.repository))


@ROUTES.below("PATCH", "", "administration:write", right="admin")
async def update_repository(call: Call) -> web.StreamResponse:
    """Another name or default branch."""
    sent, repository = await call.body(), call.repository
    unknown = set(sent) - {"name", "default_branch"}
    if unknown:
        raise invalid("Repository", min(unknown), "cannot be changed on this local GitHub: leave it out")
    if sent.get("default_branch") not in (None, repository.default_branch):
        await call.hub.acts.change_default_branch(repository, call.who, str(sent["default_branch"]))
    if sent.get("name") not in (None, repository.name):
        call.hub.acts.rename(repository, call.who, str(sent["name"]))
    return web.json_response(call.hub.shapes.repository(repository))


@ROUTES.below("GET", "/installation", APP_ITSELF)
async def show_installation(call: Call) -> web.StreamResponse:
    """The installation that reaches this repository."""
    for installation in call.hub.state.installations_of(call.repository):
        return web.json_response(call.hub.shapes.installation(installation))
    raise not_found()


@ROUTES.below("GET", "/collaborators/{login}/permission", "metadata:read")
async def show_permission(call: Call) -> web.StreamResponse:
    """The right of an account on this repository."""
    account = call.hub.state.account(call.request.match_info["login"])
    role = call.repository.right(account)
    plain = _OLDER.get(role, role)
    levels = ("read", "triage", "write", "maintain", "admin")
    names = {"read": "pull", "write": "push"}
    flags = {names.get(level, level): call.repository.allows(account, level) for level in levels}
    user = call.hub.shapes.user(account) | {"permissions": flags, "role_name": role}
    return web.json_response({"permission": plain, "role_name": role, "user": user})


@ROUTES.below("GET", "/commits/{sha}/pulls", "pull_requests:read")
async def list_pulls_of_commit(call: Call) -> web.StreamResponse:
    """Merged pull requests that brought a commit of the default branch; for another commit, open ones that hold it."""
    folder, repository = call.repository.folder, call.repository
    sha = await bare.resolve(folder, call.request.match_info["sha"])
    main = await bare.resolve(folder, f"heads/{repository.default_branch}")
    arrived = await bare.leads_to(folder, sha, main)
    found = []
    for pull in repository.pulls.values():
        if pull.merged if arrived else pull.open:
            held = await bare.commits_between(folder, pull.base_sha, pull.head_sha)
            if sha == pull.merge_sha or sha in held:
                found.append(pull)
    return call.page(found, lambda pull: call.hub.shapes.pull(call.repository, pull))


@ROUTES.below("GET", "/commits", "contents:read")
async def list_commits(call: Call) -> web.StreamResponse:
    """All that a ref leads to, newest first; by author (login or mail address), time and path."""
    query, repository = call.request.query, call.repository
    tip = await bare.resolve(repository.folder, query.get("sha") or repository.default_branch)
    words = [f"--{name}={query[name]}" for name in ("since", "until") if query.get(name)]
    if query.get("author"):
        # everybody's mail address begins with the login here
        name = query["author"]
        words += ["--fixed-strings", f"--author=<{name}" + (">" if "@" in name else "@")]
    if query.get("path"):
        words += ["--", f":(literal){query['path']}"]
    commits = await bare.log(repository.folder, tip, *words)
    return call.page(commits, lambda commit: call.hub.shapes.commit(repository, commit))


@ROUTES.below("GET", "/branches/{branch:.+}", "contents:read")
async def show_branch(call: Call) -> web.StreamResponse:
    """One branch, with the commit at its tip."""
    name, folder = call.request.match_info["branch"], call.repository.folder
    sha = bare.refs(folder).get(f"refs/heads/{name}")
    if sha is None:
        raise Problem(404, "Branch not found")
    return web.json_response(call.hub.shapes.branch(call.repository, name, await bare.commit(folder, sha)))


@ROUTES.below("GET", "/commits/{ref:.+}", "contents:read")
async def show_commit(call: Call) -> web.StreamResponse:
    """One commit, with the files that it changed."""
    folder = call.repository.folder
    commit = await bare.commit(folder, await bare.resolve(folder, call.request.match_info["ref"]))
    files = await bare.changed(folder, commit.parents[0], commit.sha) if commit.parents else []
    added, removed = sum(file.additions for file in files), sum(file.deletions for file in files)
    shape = call.hub.shapes.commit(call.repository, commit) | {
        "stats": {"additions": added, "deletions": removed, "total": added + removed},
        "files": [call.hub.shapes.changed(call.repository, file, commit.sha) for file in files],
    }
    return web.json_response(shape)


@ROUTES.below("GET", "/compare/{basehead:.+}", "contents:read")
async def compare(call: Call) -> web.StreamResponse:
    """Two commits: where they parted, what the second has more."""
    first, dots, second = call.request.match_info["basehead"].partition("...")
    folder, repository, shapes = call.repository.folder, call.repository, call.hub.shapes
    if not dots:
        raise not_found()
    base, head = await bare.resolve(folder, first), await bare.resolve(folder, second)
    parted = await bare.merge_base(folder, base, head)
    if parted is None:
        raise not_found()
    ahead, behind = await bare.commits_between(folder, base, head), await bare.commits_between(folder, head, base)
    status = {(True, True): "diverged", (True, False): "ahead", (False, True): "behind", (False, False): "identical"}
    web_url = f"{call.hub.state.origin}/{repository.full_name}/compare/{base}...{head}"
    files = await bare.changed(folder, parted, head)
    shape = {
        "url": f"{shapes.api}/repos/{repository.full_name}/compare/{base}...{head}",
        "html_url": web_url,
        "permalink_url": web_url,
        "diff_url": f"{web_url}.diff",
        "patch_url": f"{web_url}.patch",
        "base_commit": shapes.commit(repository, await bare.commit(folder, base)),
        "merge_base_commit": shapes.commit(repository, await bare.commit(folder, parted)),
        "status": status[bool(ahead), bool(behind)],
        "ahead_by": len(ahead),
        "behind_by": len(behind),
        "total_commits": len(ahead),
        "commits": [shapes.commit(repository, await bare.commit(folder, sha)) for sha in ahead[:250]],
        "files": [shapes.changed(repository, file, head) for file in files[:300]],
    }
    return web.json_response(shape)


@ROUTES.below("GET", "/contents/{path:.+}", "contents:read")
async def show_content(call: Call) -> web.StreamResponse:
    """A file at a ref, the default branch without one."""
    path = call.request.match_info["path"]
    ref = call.request.query.get("ref") or call.repository.default_branch
    commit = await bare.resolve(call.repository.folder, ref)
    blob = await bare.blob(call.repository.folder, commit, path)
    return web.json_response(call.hub.shapes.content(call.repository, path, ref, blob))
