"""JSON of releases and tags, one method per kind of thing. See `shapes`."""

from urllib.parse import quote

from bot.sandbox.repository_shapes import Json, RepositoryShapes, node_id
from bot.sandbox.state import Release, Repository, iso


class ReleaseShapes(RepositoryShapes):
    """Renders state for one origin, such as `http://127.0.0.1:8000`."""

    def release(self, repository: Repository, release: Release) -> Json:
        """release"""
        url, web = f"{self.api}/repos/{repository.full_name}", f"{self.web}/{repository.full_name}"
        this, tag = f"{url}/releases/{release.id}", quote(release.tag, safe="")
        return {
            "id": release.id,
            "node_id": node_id("Release", release.id),
            "url": this,
            "assets_url": f"{this}/assets",
            "upload_url": f"{this}/assets{{?name,label}}",
            "html_url": f"{web}/releases/tag/{tag}",
            "tarball_url": None if release.draft else f"{url}/tarball/{tag}",
            "zipball_url": None if release.draft else f"{url}/zipball/{tag}",
            "tag_name": release.tag,
            "target_commitish": release.target,
            "name": release.name,
            "body": release.body,
            "draft": release.draft,
            "prerelease": release.prerelease,
            "immutable": False,
            "created_at": iso(release.created_at),
            "updated_at": iso(release.published_at or release.created_at),
            "published_at": None if release.published_at is None else iso(release.published_at),
            "author": self.user(release.author),
            "assets": [],
        }

    def tag(self, repository: Repository, name: str, sha: str) -> Json:
        """tag"""
        url = f"{self.api}/repos/{repository.full_name}"
        return {
            "name": name,
            "commit": {"sha": sha, "url": f"{url}/commits/{sha}"},
            "zipball_url": f"{url}/zipball/refs/tags/{quote(name)}",
            "tarball_url": f"{url}/tarball/refs/tags/{quote(name)}",
            "node_id": node_id("Ref", repository.id) + name,
        }
