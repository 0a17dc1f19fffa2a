"""A repository's own settings, by the rules that GitHub sets: its name and its default branch."""

import re

from bot.sandbox import bare
from bot.sandbox.moves import BRANCHES
from bot.sandbox.pull_acts import PullActs
from bot.sandbox.shapes import Json
from bot.sandbox.state import Account, Problem, Repository, invalid


class RepositoryActs(PullActs):
    """Every method changes the state and tells the Apps. Raises Problem where GitHub would refuse."""

    def rename(self, repository: Repository, who: Account, name: str) -> None:
        """Another name; the id stays, and the old name leads to the new one until somebody else takes it."""
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,100}", name) or name in (".", ".."):
            raise invalid("Repository", "name", "may hold letters, digits, dots, dashes and underscores, 100 at most")
        before, wanted = repository.name, f"{repository.owner.login}/{name}".lower()
        taken = [each for each in self.state.repositories.values() if each.full_name.lower() == wanted]
        if taken and taken != [repository]:
            raise invalid("Repository", "name", "already exists on this account")
        self.state.former_names[repository.full_name.lower()] = repository
        self.state.former_names.pop(wanted, None)
        repository.name = name
        self._tell_repository("renamed", repository, who, {"repository": {"name": {"from": before}}})

    async def change_default_branch(self, repository: Repository, who: Account, branch: str) -> None:
        """Another default branch, which must be there."""
        if f"{BRANCHES}{branch}" not in bare.refs(repository.folder):
            raise invalid("Repository", "default_branch", "is not a branch of this repository")
        before, repository.default_branch = repository.default_branch, branch
        await bare.git(repository.folder, "symbolic-ref", "HEAD", f"{BRANCHES}{branch}")
        self._tell_repository("edited", repository, who, {"default_branch": {"from": before}})

    async def move_branch(self, repository: Repository, who: Account, branch: str, target: str) -> str:
        """Let a branch, an old or a new one, name a commit that is there: a push, forced or not. Its sha."""
        sha = await bare.resolve(repository.folder, target)
        try:
            await bare.git(repository.folder, "update-ref", f"{BRANCHES}{branch}", sha)
        except bare.GitFailedError:
            raise invalid("Reference", "ref", "is not a name that git takes") from None
        await self.look_at_branches(repository, who)
        return sha

    async def delete_branch(self, repository: Repository, who: Account, branch: str) -> None:
        """Take a branch away; its open pull requests are closed."""
        if branch == repository.default_branch:
            raise Problem(422, "Cannot delete the default branch")
        if f"{BRANCHES}{branch}" not in bare.refs(repository.folder):
            raise Problem(422, "Reference does not exist")
        await bare.git(repository.folder, "update-ref", "-d", f"{BRANCHES}{branch}")
        await self.look_at_branches(repository, who)

    def _tell_repository(self, action: str, repository: Repository, who: Account, changes: Json) -> None:
        self._tell("repository", {"action": action, "changes": changes}, repository, who)
