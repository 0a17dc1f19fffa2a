"""The way in: a local GitHub that is set up by method calls, serves on loopback, and is told what people do."""

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from aiohttp import web
from aiohttp.typedefs import Middleware

from bot.sandbox import api, bare, git_http, pages
from bot.sandbox.acts import Acts
from bot.sandbox.hooks import Hooks
from bot.sandbox.hub import Hub
from bot.sandbox.registering import Registration, account_of, register
from bot.sandbox.release_acts import Draft
from bot.sandbox.shapes import API, Shapes
from bot.sandbox.state import RIGHTS, Account, App, Installation, Pull, Release, Repository, State, Token


class Sandbox:
    """One local GitHub. `clock` gives seconds since the epoch and dates everything but tokens."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.state = State(folder, clock)
        self.shapes = Shapes(self.state.origin, self.state.accounts)
        self.hooks = Hooks(self.state, self.shapes)
        self.acts = Acts(self.state, self.shapes, self.hooks)
        self.hub = Hub(state=self.state, shapes=self.shapes, acts=self.acts, hooks=self.hooks)
        self._runner: web.AppRunner | None = None
        self._sending: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """The web address; pages and git live below it."""
        return self.state.origin

    @property
    def api_url(self) -> str:
        """The base address of the REST API."""
        return self.state.origin + API

    async def start(self, port: int = 0, middlewares: Sequence[Middleware] = ()) -> None:
        """Serve on loopback, on a free port by default, and begin to send webhooks."""
        application = pages.build(self.hub)
        rest = api.build(self.hub)
        rest.middlewares[:0] = middlewares
        application.add_subapp(API, rest)
        git_http.add_routes(application)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", port).start()
        self.state.origin = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        self.shapes.web, self.shapes.api = self.state.origin, self.api_url
        self._sending = asyncio.create_task(self.hooks.run())

    async def stop(self) -> None:
        """Serve and send no more."""
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)
        if self._runner is not None:
            await self._runner.cleanup()

    # ---- setting up -------------------------------------------------------------------------------------------------

    def add_account(self, login: str, kind: str = "User") -> Account:
        """A user or an organisation; the same one for a login that is there."""
        return account_of(self.state, login, kind)

    def token_of(self, login: str) -> str:
        """A new personal token of an account."""
        text = f"ghp_{secrets.token_hex(18)}"
        self.state.tokens[text] = Token(account=self.state.account(login))
        return text

    def add_app(self, owner: str, registration: Registration) -> App:
        """Register an App with a key pair and a secret of its own."""
        return register(self.state, owner, registration)

    def install(self, app: App, account: str) -> Installation:
        """Install an App on all repositories of an account."""
        made = Installation(
            id=self.state.new_id(), app=app, account=self.state.account(account), created_at=self.state.clock()
        )
        self.state.installations[made.id] = made
        return made

    def add_repository(self, full_name: str, bare_folder: Path, *, private: bool = False) -> Repository:
        """A repository over a bare git folder that lies anywhere; `main` is its default branch."""
        owner, _, name = full_name.partition("/")
        repository = Repository(
            id=self.state.new_id(),
            owner=self.add_account(owner, "Organization"),
            name=name,
            folder=bare_folder.resolve(),
            created_at=self.state.clock(),
            private=private,
            refs=bare.refs(bare_folder),
        )
        self.state.repositories[repository.id] = repository
        self.state.former_names.pop(full_name.lower(), None)
        return repository

    async def fork(self, repository: Repository, login: str) -> Repository:
        """A copy of a repository below another account."""
        folder = self.state.folder / f"{login}-{repository.name}.git"
        await bare.git(folder, "clone", "--quiet", "--bare", str(repository.folder), str(folder))
        made = self.add_repository(f"{login}/{repository.name}", folder, private=repository.private)
        made.owner, made.parent = self.add_account(login), repository
        return made

    def permit(self, repository: Repository, login: str, right: str) -> None:
        """Give an account a right on a repository."""
        if right not in RIGHTS:
            raise ValueError(f"{right} is not one of {', '.join(RIGHTS)}")
        repository.rights[self.add_account(login).login] = right

    # ---- what happens without HTTP ----------------------------------------------------------------------------------

    async def open_pull(self, repository: Repository, login: str, branch: str, title: str, body: str = "") -> Pull:
        """A pull request from a branch of the same repository."""
        return await self.acts.open_pull(repository, self.add_account(login), title, body, head=(repository, branch))

    async def push(self, repository: Repository, login: str, branch: str, files: Mapping[str, bytes]) -> str:
        """One commit with these files on top of a branch, as if pushed by the account; its sha."""
        tip = await bare.resolve(repository.folder, f"heads/{branch}")
        made = await commit_files(repository.folder, tip, files, author=login)
        await bare.git(repository.folder, "update-ref", f"refs/heads/{branch}", made)
        await self.acts.look_at_branches(repository, self.add_account(login))
        return made

    async def move_branch(self, repository: Repository, login: str, branch: str, sha: str) -> None:
        """Let a branch, an old or a new one, name a commit that is there: a push of the account, forced or not."""
        await self.acts.move_branch(repository, self.add_account(login), branch, sha)

    async def delete_branch(self, repository: Repository, login: str, branch: str) -> None:
        """Take a branch away; its open pull requests are closed."""
        await self.acts.delete_branch(repository, self.add_account(login), branch)

    def rename(self, repository: Repository, login: str, name: str) -> None:
        """Give a repository another name."""
        self.acts.rename(repository, self.add_account(login), name)

    async def merge(self, repository: Repository, login: str, number: int, *, squash: bool = False) -> str:
        """Merge a pull request; the commit that its base branch has now."""
        await self.acts.close(repository, number, self.add_account(login), merge=True, squash=squash)
        return repository.pulls[number].merge_sha

    async def release(self, repository: Repository, login: str, wanted: Draft) -> Release:
        """Publish a release, or keep it as a draft."""
        return await self.acts.release(repository, self.add_account(login), wanted)

    async def add_release(self, repository: Repository, tag: str, sha: str) -> Release:
        """Tag a commit and release it, as the owner."""
        return await self.acts.release(repository, repository.owner, Draft(tag=tag, target=sha))

    async def move_tag(self, repository: Repository, login: str, tag: str, sha: str) -> None:
        """Let a tag, an old or a new one, name this commit, as a forced push of the account."""
        await bare.git(repository.folder, "update-ref", f"refs/tags/{tag}", sha)
        await self.acts.look_at_branches(repository, self.add_account(login))

    async def delivered(self) -> None:
        """Returns when no webhook waits."""
        await self.hooks.delivered()


async def commit_files(folder: Path, parent: str, files: Mapping[str, bytes], *, author: str) -> str:
    """A commit on top of `parent` in which these files have these bytes; no branch moves.

    It is dated a minute after its parent, so that the same pushes make the same commits.
    """
    lines = [f"{line}\n" for line in (await bare.git(folder, "ls-tree", "-r", parent)).decode().splitlines()]
    kept = [line for line in lines if line.rstrip("\n").partition("\t")[2] not in files]
    for path, data in files.items():
        blob = (await bare.git(folder, "hash-object", "-w", "--stdin", stdin=data)).decode().strip()
        kept.append(f"100644 blob {blob}\t{path}\n")
    tree = await _tree(folder, kept)
    identity = ("-c", f"user.name={author}", "-c", f"user.email={author}@localhost")
    message = f"Change {', '.join(sorted(files))}"
    at = int(await bare.git(folder, "show", "--no-patch", "--format=%ct", parent)) + 60
    dated = {"GIT_AUTHOR_DATE": f"@{at} +0000", "GIT_COMMITTER_DATE": f"@{at} +0000"}
    words = ("commit-tree", tree, "-p", parent, "-m", message)
    return (await bare.git(folder, *identity, *words, extra=dated)).decode().strip()


async def _tree(folder: Path, lines: list[str]) -> str:
    """A tree object from `ls-tree -r` lines, folder by folder."""
    here: list[str] = []
    below: dict[str, list[str]] = {}
    for line in lines:
        head, _, path = line.rstrip("\n").partition("\t")
        first, slash, rest = path.partition("/")
        if slash:
            below.setdefault(first, []).append(f"{head}\t{rest}\n")
        else:
            here.append(f"{head}\t{path}\n")
    for name, inner in below.items():
        here.append(f"040000 tree {await _tree(folder, inner)}\t{name}\n")
    return (await bare.git(folder, "mktree", stdin="".join(here).encode())).decode().strip()
