"""JSON of issues and of what is said in a conversation, one method per kind of thing. See `shapes`."""

from urllib.parse import quote

from bot.sandbox.repository_shapes import Json, RepositoryShapes, association, node_id
from bot.sandbox.state import REACTIONS, Comment, Issue, Pull, Reaction, Repository, Thread, iso


class IssueShapes(RepositoryShapes):
    """Renders state for one origin, such as `http://127.0.0.1:8000`."""

    def issue(self, repository: Repository, thread: Thread) -> Json:
        """issue; also a pull request as the issue that its conversation is."""
        url = f"{self.api}/repos/{repository.full_name}/issues/{thread.number}"
        shape = {
            "url": url,
            "repository_url": f"{self.api}/repos/{repository.full_name}",
            "labels_url": f"{url}/labels{{/name}}",
            "comments_url": f"{url}/comments",
            "events_url": f"{url}/events",
            "timeline_url": f"{url}/timeline",
            "html_url": self._page(repository, thread),
            "id": thread.id,
            "node_id": node_id("PullRequest" if isinstance(thread, Pull) else "Issue", thread.id),
            "number": thread.number,
            "title": thread.title,
            "user": self.user(thread.author),
            "labels": [self.label(repository, name) for name in thread.labels],
            "state": "open" if thread.open else "closed",
            "locked": thread.locked,
            "assignee": None,
            "assignees": [],
            "milestone": None,
            "comments": len(thread.comments),
            "created_at": iso(thread.created_at),
            "updated_at": iso(thread.updated_at),
            "closed_at": None if thread.closed_at is None else iso(thread.closed_at),
            "author_association": association(repository, thread.author),
            "active_lock_reason": None,
            "body": thread.body,
            "reactions": self._reactions(f"{url}/reactions", thread.reactions),
            "performed_via_github_app": self.app(thread.app) if thread.app else None,
            "state_reason": thread.state_reason if isinstance(thread, Issue) else None,
        }
        if isinstance(thread, Pull):
            shape |= {"draft": False, "pull_request": self._pull_links(repository, thread)}
        return shape

    def _pull_links(self, repository: Repository, pull: Pull) -> Json:
        web = self._page(repository, pull)
        return {
            "url": f"{self.api}/repos/{repository.full_name}/pulls/{pull.number}",
            "html_url": web,
            "diff_url": f"{web}.diff",
            "patch_url": f"{web}.patch",
            "merged_at": iso(pull.closed_at) if pull.merged and pull.closed_at else None,
        }

    def _page(self, repository: Repository, thread: Thread) -> str:
        kind = "pull" if isinstance(thread, Pull) else "issues"
        return f"{self.web}/{repository.full_name}/{kind}/{thread.number}"

    def label(self, repository: Repository, name: str) -> Json:
        """label"""
        number = repository.labels[name]
        return {
            "id": number,
            "node_id": node_id("Label", number),
            "url": f"{self.api}/repos/{repository.full_name}/labels/{quote(name)}",
            "name": name,
            "color": "ededed",
            "default": False,
            "description": None,
        }

    def comment(self, repository: Repository, thread: Thread, comment: Comment) -> Json:
        """issue-comment"""
        url = f"{self.api}/repos/{repository.full_name}/issues"
        web = self._page(repository, thread)
        return {
            "url": f"{url}/comments/{comment.id}",
            "html_url": f"{web}#issuecomment-{comment.id}",
            "issue_url": f"{url}/{thread.number}",
            "id": comment.id,
            "node_id": node_id("IssueComment", comment.id),
            "user": self.user(comment.author),
            "created_at": iso(comment.created_at),
            "updated_at": iso(comment.updated_at),
            "author_association": association(repository, comment.author),
            "body": comment.body,
            "reactions": self._reactions(f"{url}/comments/{comment.id}/reactions", comment.reactions),
            "performed_via_github_app": self.app(comment.app) if comment.app else None,
        }

    def reaction(self, reaction: Reaction) -> Json:
        """reaction"""
        return {
            "id": reaction.id,
            "node_id": node_id("Reaction", reaction.id),
            "user": self.user(reaction.author),
            "content": reaction.content,
            "created_at": iso(reaction.created_at),
        }

    def _reactions(self, url: str, reactions: list[Reaction]) -> Json:
        counts = {sign: sum(reaction.content == sign for reaction in reactions) for sign in REACTIONS}
        return {"url": url, "total_count": len(reactions), **counts}
