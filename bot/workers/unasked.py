"""Calls that nobody typed: a command line on a commit of the default branch, from its own configuration."""

from bot.commands import specs
from bot.core.grammar import parse
from bot.core.markdown import Line
from bot.core.nouns import Call, Command, Person, PullRequest, Refusal, RepoConfig
from bot.core.planning import triggered
from bot.core.repo_config import CONFIG_PATH, load
from bot.core.targets import resolve_targets
from bot.core.wording import code
from bot.github.client import Gone, Where
from bot.services import Services
from bot.store.tables import Repository
from bot.workers.baselines import Ends, baseline_of

# what GitHub lists of a comparison; where it is as much as that, there may be more
MOST_PATHS = 300


class NothingToRun(Exception):
    """Why a line that nobody typed makes no request; the text is for people."""


def where_is(repository: Repository) -> Where:
    """A repository as the client addresses it."""
    return Where(repository_id=repository.id, installation_id=repository.installation_id)


async def call_on(services: Services, repository: Repository, sha: str, line: str, who: str, since: str = "") -> Call:
    """The call of a command line, without its prefix, on a commit of the default branch.

    `who` stands for the person who asked; it has the right of those who merged. `since` is the commit that was last
    measured: benchmarks are left out when nothing that they are about has changed. Without `vs=` head is run alone and
    compared with what the branch was before. Raises NothingToRun, and Gone and Denied as the client does.
    """
    where = where_is(repository)
    config = await config_at(services, where, sha)
    command = parse(Line(0, f"{services.settings.prefix} {line}"), specs())
    resolved = command if isinstance(command, Refusal) else resolve_targets(command.targets, config)
    if isinstance(command, Refusal) or isinstance(resolved, Refusal):
        raise NothingToRun(_said(command if isinstance(command, Refusal) else resolved))
    if since:
        resolved = await _changed(services, where, config, resolved, (since, sha))
    base_sha, baseline = await _base(services, where, repository, command, sha)
    nobody = Person(id=0, login=who, kind="Bot", permission="write")
    return Call(
        command=command,
        sender=nobody,
        pull=PullRequest(
            repository_id=repository.id,
            full_name=repository.full_name,
            number=0,
            author=nobody,
            head_sha=sha,
            base_ref=repository.default_branch,
            from_fork=False,
            private=repository.private,
        ),
        head_sha=sha,
        base_sha=base_sha,
        baseline=baseline,
        config=config,
        config_sha=sha,
        hardware=services.settings.hardware,
        resolved=resolved,
        head_only=() if base_sha else resolved,
        limits=services.settings.limits,
        scripts_sha=await _scripts(services, where, config),
    )


async def config_at(services: Services, where: Where, sha: str) -> RepoConfig:
    """The configuration at a commit. Raises NothingToRun where none can be used."""
    text = await services.api.file(where, CONFIG_PATH, sha)
    if text is None:
        raise NothingToRun(f"There is no {code(CONFIG_PATH)} at {code(sha[:10])}.")
    config = load(text, hardware=services.settings.hardware)
    if isinstance(config, tuple):
        first = config[0]
        raise NothingToRun(f"{code(CONFIG_PATH)} at {code(sha[:10])}, line {first.line}: {first.sentence}")
    return config


async def _changed(
    services: Services, where: Where, config: RepoConfig, resolved: tuple[str, ...], between: tuple[str, str]
) -> tuple[str, ...]:
    """The benchmarks that something has changed for; all of them where that cannot be told."""
    before, after = between
    try:
        paths = () if before == after else (await services.api.compare(where, before, after)).paths
    except Gone:
        return resolved  # pushed away by force
    touched = triggered(config, paths)
    wanted = resolved if len(paths) >= MOST_PATHS else tuple(name for name in resolved if name in touched)
    if not wanted:
        raise NothingToRun(f"Nothing that its benchmarks are about has changed since {code(before[:10])}.")
    return wanted


async def _base(
    services: Services, where: Where, repository: Repository, command: Command, sha: str
) -> tuple[str, str]:
    if "vs" not in command.options:
        return "", f"what {repository.default_branch} was before"
    ends = Ends(head_sha=sha, base_ref=repository.default_branch, base_sha=sha, merge_base_sha=sha)
    found = await baseline_of(services.api, where, str(command.options["vs"]), ends)
    if isinstance(found, Refusal):
        raise NothingToRun(_said(found))
    return found


async def _scripts(services: Services, where: Where, config: RepoConfig) -> str:
    if config.scripts is None:
        return ""
    return await services.api.commit_of(config.scripts.repository, config.scripts.ref, where)


def _said(no: object) -> str:
    return f"{no.sentence} {no.hint}".strip() if isinstance(no, Refusal) else ""
