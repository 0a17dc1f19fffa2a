"""Makes the demo's training repository: the starter project with a history, and three pull requests against it.

The starter comes from the `templates` package, the pull requests from `pulls/*.patch`: a mail header (From, Date,
Subject), the description down to a line of three dashes, the diff. Names, dates and content are fixed, and so are the
commits: the same files always give the same shas. It knows nothing of the bot, nor of how pull requests are served.
"""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from email import message_from_bytes, policy
from email.message import EmailMessage
from email.utils import parseaddr
from importlib import resources
from pathlib import Path

MAIN = "main"


@dataclass(frozen=True, slots=True, kw_only=True)
class PullSeed:
    """One branch with one commit on top of `TrainingRepository.base_sha`; `author` is a GitHub login."""

    branch: str
    title: str
    body: str
    author: str
    head_sha: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRepository:
    """What `build` made. The pull requests left main at `base_sha`, their merge-base; main has moved on since."""

    path: Path
    main_sha: str
    base_sha: str
    pulls: tuple[PullSeed, ...]


@dataclass(frozen=True, slots=True)
class _Commit:
    author: str
    date: str
    message: str
    files: tuple[str, ...] = ()


_ADA = "Ada Lindqvist <ada@example.org>"
_TOMAS = "Tomas Ferreira <tomas@example.org>"
_HISTORY = (
    _Commit(
        _ADA, "2026-09-01T09:12:00+0200", "Start a package for digits", (".gitignore", "README.md", "pyproject.toml")
    ),
    _Commit(_ADA, "2026-09-01T15:40:00+0200", "Read the images and shift them a little", ("digits/data.py",)),
    _Commit(_TOMAS, "2026-09-03T11:05:00+0200", "Add a residual network", ("digits/__init__.py", "digits/model.py")),
    _Commit(_TOMAS, "2026-09-07T17:31:00+0200", "Train it, with logs and checkpoints", ("train.py",)),
    _Commit(_ADA, "2026-09-10T10:02:00+0200", "Check that one step lowers the loss", ("smoke.py",)),
    _Commit(
        _ADA, "2026-09-14T14:20:00+0200", "Measure pull requests before they are merged", (".github/benchmark.yml",)
    ),
    # the pull requests branch off before this one
    _Commit(_TOMAS, "2026-09-22T08:45:00+0200", "Say how a change is measured", ("CONTRIBUTING.md",)),
)


def build(bare: Path) -> TrainingRepository:
    """Make a bare repository at `bare`, which must not exist yet or be empty (FileExistsError otherwise)."""
    if bare.exists() and any(bare.iterdir()):
        raise FileExistsError(f"{bare} is not empty; the training repository needs a folder of its own")
    bare.mkdir(parents=True, exist_ok=True)
    git = _Git(bare)
    git("init", "--quiet", "--bare", "--template=", f"--initial-branch={MAIN}", str(bare))
    shas: list[str] = []
    with resources.as_file(resources.files("templates") / "projects" / "resnet") as project:
        for commit in _HISTORY:
            git(f"--work-tree={project}", "add", "--force", "--", *commit.files)
            shas.append(git.commit(commit, parent=shas[-1] if shas else None))
    git("update-ref", f"refs/heads/{MAIN}", shas[-1])
    folder = resources.files(__package__) / "pulls"
    patches = sorted(
        (patch for patch in folder.iterdir() if patch.name.endswith(".patch")), key=lambda patch: patch.name
    )
    pulls = tuple(_pull(git, patch.name, patch.read_bytes(), base_sha=shas[-2]) for patch in patches)
    (bare / "index").unlink()  # a bare repository has none; it served only to put commits together
    return TrainingRepository(path=bare, main_sha=shas[-1], base_sha=shas[-2], pulls=pulls)


def _pull(git: "_Git", name: str, patch: bytes, *, base_sha: str) -> PullSeed:
    """Commit one patch (`1-some-branch.patch`) on a branch of its own."""
    mail = message_from_bytes(patch, policy=policy.default)
    assert isinstance(mail, EmailMessage)
    title = str(mail["Subject"]).removeprefix("[PATCH] ")
    body = mail.get_content().partition("\n---\n")[0].strip()
    branch = name.removesuffix(".patch").partition("-")[2]
    git("read-tree", base_sha)
    git("apply", "--cached", "-", stdin=patch)
    author = str(mail["From"])
    head_sha = git.commit(_Commit(author, str(mail["Date"]), f"{title}\n\n{body}"), parent=base_sha)
    git("update-ref", f"refs/heads/{branch}", head_sha)
    login = parseaddr(author)[1].partition("@")[0]
    return PullSeed(branch=branch, title=title, body=body, author=login, head_sha=head_sha)


class _Git:
    """git on one bare repository and its index, deaf to the settings of whoever runs it."""

    def __init__(self, bare: Path) -> None:
        self._command = ("git", f"--git-dir={bare}", "-c", "core.fileMode=false", "-c", "core.autocrlf=false")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        self._environment = inherited | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}

    def __call__(self, *words: str, stdin: bytes = b"", extra: Mapping[str, str] | None = None) -> str:
        """What git printed, without the last line's end; RuntimeError with git's own words if it failed."""
        environment = self._environment | dict(extra or {})
        ended = subprocess.run([*self._command, *words], input=stdin, capture_output=True, env=environment, check=False)
        if ended.returncode != 0:
            raise RuntimeError(f"git {' '.join(words)}: {ended.stderr.decode(errors='replace').strip()}")
        return ended.stdout.decode().strip()

    def commit(self, commit: _Commit, *, parent: str | None) -> str:
        """Commit the index and answer the sha; no branch moves."""
        name, address = parseaddr(commit.author)
        who: dict[str, str] = {}
        for role in ("AUTHOR", "COMMITTER"):
            who |= {f"GIT_{role}_NAME": name, f"GIT_{role}_EMAIL": address, f"GIT_{role}_DATE": commit.date}
        parents = ("-p", parent) if parent else ()
        message = commit.message.strip().encode() + b"\n"
        return self("commit-tree", self("write-tree"), *parents, stdin=message, extra=who)
