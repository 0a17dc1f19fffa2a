"""The demo's training repository: the starter project as git sees it, and three pull requests that apply to it."""

import subprocess
from pathlib import Path

import pytest

from bot.sandbox.training_repository import TrainingRepository, build

_PROJECT = Path(__file__).resolve().parents[3] / "templates" / "projects" / "resnet"
_LEFT_BY_PYTHON = ("__pycache__", ".egg-info", ".ruff_cache", ".mypy_cache")


def git(repository: TrainingRepository, *words: str) -> str:
    return subprocess.run(
        ["git", f"--git-dir={repository.path}", *words], check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> TrainingRepository:
    return build(tmp_path_factory.mktemp("git") / "digits.git")


def test_main_is_the_starter_project_whole(repository: TrainingRepository) -> None:
    files = [path for path in _PROJECT.rglob("*") if path.is_file()]
    starter = {
        path.relative_to(_PROJECT).as_posix(): path.read_text()
        for path in files
        if not any(part.endswith(_LEFT_BY_PYTHON) for part in path.parts)
    }
    names = git(repository, "ls-tree", "-r", "--name-only", "main").split()
    assert {name: git(repository, "show", f"main:{name}") for name in names} == starter


def test_main_has_moved_on_since_the_pull_requests_left_it(repository: TrainingRepository) -> None:
    assert git(repository, "rev-parse", "main").strip() == repository.main_sha
    assert git(repository, "rev-parse", "main~1").strip() == repository.base_sha
    for pull in repository.pulls:
        assert git(repository, "merge-base", "main", pull.branch).strip() == repository.base_sha


def test_each_pull_request_is_one_commit_on_a_branch_of_its_own(repository: TrainingRepository) -> None:
    assert [pull.branch for pull in repository.pulls] == ["flips-and-turns", "gradient-norms", "one-convolution"]
    for pull in repository.pulls:
        line = git(repository, "log", "--format=%H %P %ae", "--max-count=1", pull.branch).strip()
        assert line == f"{pull.head_sha} {repository.base_sha} {pull.author}@example.org"
        assert (
            git(repository, "log", "--format=%B", "--max-count=1", pull.branch).strip()
            == f"{pull.title}\n\n{pull.body}"
        )


def test_pull_requests_change_code_and_never_what_is_measured(repository: TrainingRepository) -> None:
    changed = [
        git(repository, "diff", "--name-only", repository.base_sha, pull.head_sha).split() for pull in repository.pulls
    ]
    assert changed == [["digits/data.py"], ["train.py"], ["digits/model.py"]]


def test_no_python_in_a_pull_request_is_broken(repository: TrainingRepository) -> None:
    for pull in repository.pulls:
        for name in git(repository, "ls-tree", "-r", "--name-only", pull.head_sha).split():
            if name.endswith(".py"):
                compile(git(repository, "show", f"{pull.head_sha}:{name}"), name, "exec")


def test_the_same_files_give_the_same_shas_whoever_builds(
    repository: TrainingRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "gitconfig"
    settings.write_text("[user]\nname = Somebody\n[commit]\ngpgsign = true\n[core]\nautocrlf = true\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    again = build(tmp_path / "again.git")
    assert (again.main_sha, again.base_sha, again.pulls) == (repository.main_sha, repository.base_sha, repository.pulls)


def test_history_has_several_authors_and_dates_in_order(repository: TrainingRepository) -> None:
    lines = [line.split() for line in git(repository, "log", "--reverse", "--format=%ae %at", "main").splitlines()]
    assert 5 <= len(lines) <= 8
    assert len({author for author, _ in lines}) == 2
    assert [int(at) for _, at in lines] == sorted(int(at) for _, at in lines)


def test_the_repository_is_bare_and_sound(repository: TrainingRepository) -> None:
    assert git(repository, "rev-parse", "--is-bare-repository").strip() == "true"
    assert git(repository, "symbolic-ref", "HEAD").strip() == "refs/heads/main"
    assert git(repository, "fsck", "--strict", "--no-dangling") == ""
    assert not (repository.path / "index").exists()


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="is not empty"):
        build(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
