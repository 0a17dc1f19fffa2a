"""Pull requests and the branches they live on: opened, pushed to, merged, closed, by the rules that GitHub sets."""

import asyncio
from typing import Any

from bot.sandbox import bare
from bot.sandbox.hooks import Happening, Hooks
from bot.sandbox.moves import BRANCHES, Move, Push, moves_between, push_fields, told
from bot.sandbox.shapes import Shapes
from bot.sandbox.state import Account, App, Pull, Repository, State, invalid, pull_of


class PullActs:
    """Every method changes the state and tells the Apps. Raises Problem where GitHub would refuse."""

    def __init__(self, state: State, shapes: Shapes, hooks: Hooks) -> None:
        self.state = state
        self.shapes = shapes
        self.hooks = hooks
        self._looking = asyncio.Lock()

    # ---- pull requests ----------------------------------------------------------------------------------------------

    async def open_pull(
        self,
        repository: Repository,
        who: Account,
        title: str,
        body: str,
        *,
        head: tuple[Repository, str],
        base: str = "",
    ) -> Pull:
        """A pull request from a branch of this repository or of a fork."""
        source, branch = head
        base_ref = base or repository.default_branch
        head_sha = await bare.resolve(source.folder, f"heads/{branch}")
        now = self.state.clock()
        pull = Pull(
            id=self.state.new_id(),
            number=repository.new_number(),
            author=who,
            title=title,
            body=body,
            base_ref=base_ref,
            base_sha=await bare.resolve(repository.folder, f"heads/{base_ref}"),
            head_repository=source,
            head_ref=branch,
            head_sha=head_sha,
            created_at=now,
            updated_at=now,
        )
        await self._bring_head(repository, pull)
        repository.pulls[pull.number] = pull
        await self._tell_pull("opened", repository, pull, who)
        return pull

    async def close(
        self, repository: Repository, number: int, who: Account, *, merge: bool = False, squash: bool = False
    ) -> None:
        """Close a pull request. A merge moves the base branch to a merge commit, or to one commit with all changes."""
        pull = pull_of(repository, number)
        if merge:
            pull.merge_sha = await self._merge(repository, pull, who, squash=squash)
        await self._closed(repository, pull, who, merged=merge)
        await self.look_at_branches(repository, who)

    async def reopen(self, repository: Repository, number: int, who: Account) -> None:
        """Open a closed pull request again."""
        pull = pull_of(repository, number)
        source = pull.head_repository
        if pull.open or pull.merged or source is None or f"{BRANCHES}{pull.head_ref}" not in bare.refs(source.folder):
            raise invalid("PullRequest", "state", "cannot be reopened")
        pull.closed_at, pull.updated_at = None, self.state.clock()
        pull.happenings.append((pull.updated_at, f"{who.login} reopened this"))
        await self._tell_pull("reopened", repository, pull, who)

    async def _closed(self, repository: Repository, pull: Pull, who: Account, *, merged: bool) -> None:
        pull.closed_at = pull.updated_at = self.state.clock()
        pull.merged, pull.merged_by = merged, who if merged else None
        pull.happenings.append((pull.closed_at, f"{who.login} {'merged' if merged else 'closed'} this"))
        await self._tell_pull("closed", repository, pull, who)

    async def _merge(self, repository: Repository, pull: Pull, who: Account, *, squash: bool) -> str:
        """The new tip of the base branch. It is dated now, but never before what it merges."""
        folder = repository.folder
        base = await bare.resolve(folder, f"heads/{pull.base_ref}")
        tree = (await bare.git(folder, "merge-tree", "--write-tree", base, pull.head_sha)).decode().split()[0]
        identity = ("-c", f"user.name={who.login}", "-c", f"user.email={who.login}@localhost")
        message, parents = f"Merge pull request #{pull.number} from {pull.head_ref}\n\n{pull.title}", ["-p", base]
        if squash:
            message = f"{pull.title} (#{pull.number})"
        else:
            parents += ["-p", pull.head_sha]
        dates = (await bare.git(folder, "show", "--no-patch", "--format=%ct", base, pull.head_sha)).decode().split()
        at = max(int(self.state.clock()), *(int(date) + 1 for date in dates))
        dated = {"GIT_AUTHOR_DATE": f"@{at} +0000", "GIT_COMMITTER_DATE": f"@{at} +0000"}
        made = await bare.git(folder, *identity, "commit-tree", tree, *parents, "-m", message, extra=dated)
        sha = made.decode().strip()
        await bare.git(folder, "update-ref", f"{BRANCHES}{pull.base_ref}", sha, base)
        return sha

    async def _bring_head(self, repository: Repository, pull: Pull) -> None:
        """The head under `refs/pull/N/head`, fetched from the fork where it comes from one."""
        ref = f"refs/pull/{pull.number}/head"
        source = pull.head_repository
        if source is not None and source is not repository:
            await bare.git(
                repository.folder, "fetch", "--quiet", str(source.folder), f"+{BRANCHES}{pull.head_ref}:{ref}"
            )
        else:
            await bare.git(repository.folder, "update-ref", ref, pull.head_sha)

    async def files(self, repository: Repository, pull: Pull) -> list[bare.Changed]:
        """What the pull request changes, from where it left its base."""
        base = await bare.merge_base(repository.folder, pull.base_sha, pull.head_sha) or pull.base_sha
        return await bare.changed(repository.folder, base, pull.head_sha)

    # ---- branches ---------------------------------------------------------------------------------------------------

    async def look_at_branches(self, source: Repository, who: Account) -> None:
        """After a push: tell what moved, and bring every open pull request up to it."""
        async with self._looking:
            before, source.refs = source.refs, bare.refs(source.folder)
            moves = moves_between(before, source.refs)
            for move in told(moves):
                push = Push(repository=source, move=move, who=who, known=tuple(before.values()))
                self._tell("push", await push_fields(self.shapes, push), source, who)
            for repository in list(self.state.repositories.values()):
                for pull in [each for each in repository.pulls.values() if each.open]:
                    for move in moves:
                        await self._follow(repository, pull, source, move, who)

    async def _follow(self, repository: Repository, pull: Pull, source: Repository, move: Move, who: Account) -> None:
        """What a moved branch means for an open pull request: a new head, a merge by hand, the end."""
        heads = source is pull.head_repository and move.branch == pull.head_ref
        bases = source is repository and move.branch == pull.base_ref
        if not pull.open or not (heads or bases):
            return
        if move.deleted:
            await self._closed(repository, pull, who, merged=False)
        elif heads and move.after != pull.head_sha:
            await self._new_head(repository, pull, move.after, who)
        elif bases and await self._holds(source, pull, move):
            pull.merge_sha = await bare.first_with(source.folder, pull.head_sha, move.after)
            await self._closed(repository, pull, who, merged=True)

    async def _holds(self, repository: Repository, pull: Pull, move: Move) -> bool:
        """Whether the push brought the head of the pull request into its base."""
        return await bare.leads_to(repository.folder, pull.head_sha, move.after) and not await bare.leads_to(
            repository.folder, pull.head_sha, move.before
        )

    async def _new_head(self, repository: Repository, pull: Pull, tip: str, who: Account) -> None:
        before, pull.head_sha = pull.head_sha, tip
        pull.updated_at = self.state.clock()
        pull.happenings.append((pull.updated_at, f"{who.login} pushed {tip[:10]}"))
        await self._bring_head(repository, pull)
        await self._tell_pull("synchronize", repository, pull, who, before=before, after=tip)

    # ---- telling ----------------------------------------------------------------------------------------------------

    async def _tell_pull(self, action: str, repository: Repository, pull: Pull, who: Account, **more: Any) -> None:
        files = await self.files(repository, pull)
        commits = len(await bare.commits_between(repository.folder, pull.base_sha, pull.head_sha))
        whole = self.shapes.whole_pull(repository, pull, files, commits)
        fields = {"action": action, "number": pull.number, "pull_request": whole, **more}
        self._tell("pull_request", fields, repository, who)

    def _tell(
        self, event: str, fields: dict[str, Any], repository: Repository, who: Account, only: App | None = None
    ) -> None:
        self.hooks.tell(Happening(event=event, fields=fields, repository=repository, sender=who, only=only))
