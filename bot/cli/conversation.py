"""A pull request as a person sees it: typed into and read through GitHub's API, and told as text for a terminal."""

import re
import textwrap
from dataclasses import dataclass

from github import Auth, Github
from github.CheckRun import CheckRun
from github.PullRequest import PullRequest
from github.Repository import Repository

WIDTH = 100
SIGNS = {"eyes": "👀", "rocket": "🚀", "confused": "😕", "+1": "👍", "-1": "👎"}
_HIDDEN = re.compile(r"<!--.*?-->\n?", re.DOTALL)
_FOLDED = re.compile(r"<details><summary>(.*?)</summary>.*?</details>\n?", re.DOTALL)
_PICTURE = re.compile(r'<img src="([^"]*)"[^>]*>')
_LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]*)\)")
_TAG = re.compile(r"</?(?:sub|sup|b|br)/?>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One comment of a conversation: who, how people reacted, and the Markdown as it stands."""

    author: str
    signs: tuple[str, ...]
    body: str
    url: str


class Maintainer:
    """A person with a personal token on one repository. Its methods block."""

    def __init__(self, api_url: str, token: str, full_name: str) -> None:
        # the pauses that PyGithub makes between calls are for GitHub's limits
        self._github = Github(
            base_url=api_url,
            auth=Auth.Token(token),
            retry=None,
            seconds_between_requests=None,
            seconds_between_writes=None,
        )
        self._repository: Repository = self._github.get_repo(full_name)

    def pull(self, number: int) -> PullRequest:
        """The pull request as it is now."""
        return self._repository.get_pull(number)

    def comment(self, number: int, body: str) -> None:
        """Type a comment."""
        self.pull(number).create_issue_comment(body)

    def entries(self, number: int) -> tuple[Entry, ...]:
        """The conversation so far."""
        return tuple(
            Entry(
                author=comment.user.login,
                signs=tuple(SIGNS.get(reaction.content, reaction.content) for reaction in comment.get_reactions()),
                body=comment.body,
                url=comment.html_url,
            )
            for comment in self.pull(number).get_issue_comments()
        )

    def checks(self, number: int) -> tuple[CheckRun, ...]:
        """The check runs of its head."""
        head = self._repository.get_commit(self.pull(number).head.sha)
        return tuple(head.get_check_runs())

    def close(self) -> None:
        """Give the connections back."""
        self._github.close()


def tell(maintainer: Maintainer, number: int) -> str:
    """The whole conversation as text: title, comments, check runs."""
    pull = maintainer.pull(number)
    title = f"{pull.base.repo.full_name} #{number}  {pull.title}"
    lines = ["━" * WIDTH, title, f"{pull.user.login} wants to merge {pull.head.ref} into {pull.base.ref}", "━" * WIDTH]
    for entry in maintainer.entries(number):
        lines += [f"── {entry.author}  {' '.join(entry.signs)}".rstrip(), "", _indented(readable(entry.body)), ""]
    for check in maintainer.checks(number):
        lines.append(f"── check run {check.name}: {check.conclusion or check.status}: {check.output.title}")
    return "\n".join([*lines, ""])


def readable(markdown: str) -> str:
    """A comment as its reader sees it before unfolding anything: no hidden text, one line for what is folded."""
    text = _HIDDEN.sub("", markdown)
    text = _FOLDED.sub(lambda found: f"▸ {_TAG.sub('', found[1])}\n", text)
    text = _PICTURE.sub(lambda found: f"[picture: {found[1]}]", text)
    text = _LINK.sub(lambda found: f"{found[1]} <{found[2]}>", text)
    text = _TAG.sub("", text)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def _indented(text: str) -> str:
    lines = []
    for line in text.splitlines():
        # tables are not wrapped: their columns would be lost
        lines += [line] if line.startswith("|") or len(line) <= WIDTH else textwrap.wrap(line, WIDTH)
    return "\n".join(f"   {line}".rstrip() for line in lines)
