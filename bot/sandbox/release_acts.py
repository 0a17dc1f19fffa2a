"""Releases and the tags that they stand on, by the rules that GitHub sets."""

import re
from dataclasses import dataclass
from typing import Any

from bot.sandbox import bare
from bot.sandbox.moves import TAGS
from bot.sandbox.pull_acts import PullActs
from bot.sandbox.state import Account, Problem, Release, Repository, invalid

LATEST = ("true", "false", "legacy")
# git has more rules; what it still refuses is refused by it
_TAG = re.compile(r"[^\s~^:?*\[\\\x00-\x1f-][^\s~^:?*\[\\\x00-\x1f]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a release shall be; None leaves a field as it is, or takes what GitHub takes for a new one.

    `latest` is true (what is published now is the latest), false, or legacy (the newest commit decides).
    """

    tag: str | None = None
    target: str | None = None
    name: str | None = None
    body: str | None = None
    draft: bool | None = None
    prerelease: bool | None = None
    latest: str | None = None


class ReleaseActs(PullActs):
    """Every method changes the state and tells the Apps. Raises Problem where GitHub would refuse."""

    async def release(self, repository: Repository, who: Account, wanted: Draft) -> Release:
        """A new release; unless it is a draft its tag is made from the target where it is missing."""
        tag, now = wanted.tag or "", self.state.clock()
        self._free(repository, tag, None)
        made = Release(
            id=self.state.new_id(),
            author=who,
            tag=tag,
            target=wanted.target or repository.default_branch,
            name=wanted.name or tag,
            body=wanted.body or "",
            created_at=now,
            draft=bool(wanted.draft),
            prerelease=bool(wanted.prerelease),
        )
        if not made.draft:
            await self._publish(repository, made, who)
        repository.releases.append(made)
        self._point(repository, made, wanted.latest or ("false" if made.draft else "true"))
        self._tell_release("created", repository, made, who)
        if not made.draft:
            self._tell_published(repository, made, who)
        return made

    async def edit_release(self, repository: Repository, release: Release, who: Account, wanted: Draft) -> None:
        """Other fields. A draft that is none any more is published, with its tag."""
        tag = release.tag if wanted.tag is None else wanted.tag
        self._free(repository, tag, release)
        changes: dict[str, Any] = {}
        for name in ("name", "body"):
            text, before = getattr(wanted, name), getattr(release, name)
            if text is not None and text != before:
                changes[name] = {"from": before}
                setattr(release, name, text)
        release.tag, release.target = tag, wanted.target or release.target
        before = (release.draft, release.prerelease)
        release.prerelease = release.prerelease if wanted.prerelease is None else wanted.prerelease
        release.draft = release.draft if wanted.draft is None else wanted.draft
        if not release.draft:
            await self._publish(repository, release, who)
        newly = before[0] and not release.draft
        self._point(repository, release, wanted.latest or ("true" if newly else "false"))
        self._tell_edited(repository, release, who, before, changes)

    def _point(self, repository: Repository, release: Release, latest: str) -> None:
        """Say which release is the latest."""
        if latest == "legacy":
            repository.latest_release = None
        elif latest == "true" and not release.draft and not release.prerelease:
            repository.latest_release = release

    def _tell_edited(
        self, repository: Repository, release: Release, who: Account, before: tuple[bool, bool], changes: dict[str, Any]
    ) -> None:
        draft, prerelease = before
        if draft and not release.draft:
            self._tell_published(repository, release, who)
        elif release.draft and not draft:
            self._tell_release("unpublished", repository, release, who)
        else:
            self._tell_release("edited", repository, release, who, changes=changes)
            if prerelease and not release.prerelease and not draft:
                self._tell_release("released", repository, release, who)

    def delete_release(self, repository: Repository, release: Release, who: Account) -> None:
        """Take a release away; its tag stays."""
        repository.releases.remove(release)
        self._tell_release("deleted", repository, release, who)

    async def _publish(self, repository: Repository, release: Release, who: Account) -> None:
        """Its tag, and the time of its commit."""
        ref = f"{TAGS}{release.tag}"
        if ref not in bare.refs(repository.folder):
            try:
                sha = await bare.resolve(repository.folder, release.target)
            except Problem:
                raise invalid("Release", "target_commitish", "is invalid") from None
            try:
                await bare.git(repository.folder, "update-ref", ref, sha, "")
            except bare.GitFailedError:
                raise invalid("Release", "tag_name", "is not a valid tag") from None
            await self.look_at_branches(repository, who)
        commit = await bare.commit(repository.folder, await bare.resolve(repository.folder, f"tags/{release.tag}"))
        release.created_at = commit.committer.at
        release.published_at = release.published_at or self.state.clock()

    def _free(self, repository: Repository, tag: str, release: Release | None) -> None:
        if not _TAG.fullmatch(tag):
            raise invalid("Release", "tag_name", "is not a valid tag")
        if any(each.tag == tag and each is not release for each in repository.published):
            error = {"resource": "Release", "code": "already_exists", "field": "tag_name"}
            raise Problem(422, "Validation Failed", (error,))

    def _tell_published(self, repository: Repository, release: Release, who: Account) -> None:
        for action in ("published", "prereleased" if release.prerelease else "released"):
            self._tell_release(action, repository, release, who)

    def _tell_release(self, action: str, repository: Repository, release: Release, who: Account, **more: Any) -> None:
        fields = {"action": action, "release": self.shapes.release(repository, release), **more}
        self._tell("release", fields, repository, who)
