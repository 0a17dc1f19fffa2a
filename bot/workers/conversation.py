"""A person's words become answers: facts are asked from GitHub, each line goes to its command, and every command gets
exactly one visible answer."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Executable, insert

from bot.commands import handlers, specs
from bot.commands.desk import Desk, Outcome
from bot.core.grammar import parse_lines
from bot.core.markdown import Line, new_lines
from bot.core.nouns import Call, Command, ConfigFault, Person, PullRequest, Refusal, RepoConfig
from bot.core.planning import triggered
from bot.core.reasons import reason
from bot.core.repo_config import CONFIG_PATH, load
from bot.core.targets import resolve_targets
from bot.core.trust import may
from bot.github.client import Compared, Gone, PullFacts, Where
from bot.github.events import CheckAsked, Event, Reviewed
from bot.report.comment import Reply, render_reply
from bot.services import Services
from bot.store import codec
from bot.store.facts import allow, allowed_shas, cancel_requests, comment_body, head_at, remember_comment
from bot.store.messages import show
from bot.store.requests import new_request
from bot.store.tables import Head, Request
from bot.workers.baselines import Ends, baseline_of
from bot.workers.outbox import marker

# verbs whose answer depends on the configuration at the base
WITH_CONFIG = frozenset(("run", "plan", "list"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What GitHub and our own log say, when one comment is answered. `config` holds faults when it cannot be used."""

    where: Where
    sender: Person
    pull: PullRequest
    head_sha: str
    compared: Compared
    allowed: frozenset[str]
    config: RepoConfig | tuple[ConfigFault, ...] | None

    @property
    def moved(self) -> bool:
        """The head is not the one that the comment was written under."""
        return self.head_sha != self.pull.head_sha


def where_of(event: Event) -> Where:
    """The repository of an event, as the client addresses it."""
    return Where(repository_id=event.repository_id, installation_id=event.installation_id)


class Conversation:
    """Answers what one event says. Its methods return the statements to write together with the event's end."""

    def __init__(self, services: Services, event: Event, delivery_id: str, received_at: float) -> None:
        self.services = services
        self.event = event
        self.delivery_id = delivery_id
        self.received_at = received_at

    # ---- comments -------------------------------------------------------------------------------------------------

    async def comment(
        self, key: str, number: int, body: str, body_before: str, reaction_on: int | None
    ) -> list[Executable]:
        """The commands of a comment or review body that were not there before; `key` names it for ever."""
        async with self.services.database.read() as tx:
            seen = await comment_body(tx, key)
        prefix = self.services.settings.prefix
        lines = new_lines(seen if seen is not None else body_before, body, prefix)
        about = {"id": key, "repository_id": self.event.repository_id, "number": number}
        writes = [remember_comment(self.services.database, {**about, "body": body, "seen_at": self.received_at})]
        if not lines:
            return writes
        await self._react(reaction_on, number, "eyes")
        try:
            facts = await self._facts(number)
        except Gone:
            return writes  # the pull request or we ourselves were removed meanwhile: nobody is left to answer
        replies, made = await self._answer(facts, lines)
        return [*writes, *made, *self._say(number, replies, reaction_on)]

    async def _answer(self, facts: Facts, lines: tuple[Line, ...]) -> tuple[list[Reply], list[Executable]]:
        replies: list[Reply] = []
        writes: list[Executable] = []
        typed = {line.number: line.text for line in lines}
        for parsed in parse_lines(lines, specs()):
            number = parsed.line or 0
            outcome = Outcome(refusal=parsed) if isinstance(parsed, Refusal) else await self._one(facts, parsed)
            writes += outcome.writes
            replies.append(
                Reply(
                    line=number,
                    typed=typed.get(number, ""),
                    text=outcome.text,
                    refusal=outcome.refusal,
                    request_id=outcome.request_id,
                )
            )
        return replies, writes

    async def _one(self, facts: Facts, command: Command) -> Outcome:
        call = await self._call(facts, command)
        if isinstance(call, Refusal):
            return Outcome(refusal=replace(call, line=command.line))
        refusal = may(specs()[command.verb], call, head_moved=facts.moved, prefix=self.services.settings.prefix)
        if refusal is not None:
            return Outcome(refusal=replace(refusal, line=command.line))
        trigger = f"{self.event.repository_id}:{self.delivery_id}:{command.line}"
        outcome = await handlers()[command.verb](call, self._desk(trigger))
        if outcome.refusal is not None:
            return replace(outcome, refusal=replace(outcome.refusal, line=command.line))
        return outcome

    def _desk(self, trigger: str) -> Desk:
        services = self.services
        return Desk(
            database=services.database,
            now=services.clock(),
            new_id=services.new_id,
            base_url=services.settings.base_url,
            prefix=services.settings.prefix,
            trigger=trigger,
        )

    # ---- approvals and buttons ------------------------------------------------------------------------------------

    async def approval(self, event: Reviewed) -> list[Executable]:
        """An approving review by somebody with write right: allows its commit, and runs what the base says."""
        try:
            facts = await self._facts(event.number)
        except Gone:
            return []
        if not facts.sender.may_write or not event.commit_sha:
            return []
        about = {"repository_id": event.repository_id, "number": event.number, "sha": event.commit_sha}
        by = {"by_login": event.sender.login, "allowed_at": self.received_at}
        writes = [allow(self.services.database, {**about, **by})]
        config = facts.config
        if not isinstance(config, RepoConfig) or config.on_approval is None or event.commit_sha != facts.pull.head_sha:
            return writes  # an approval of a commit that is no longer the head is void
        facts = replace(facts, head_sha=event.commit_sha, allowed=facts.allowed | {event.commit_sha})
        prefix = self.services.settings.prefix
        (command,) = parse_lines((Line(0, f"{prefix} {config.on_approval.text}"),), specs())
        if isinstance(command, Refusal):
            return writes
        call = await self._call(facts, command)
        if isinstance(call, Refusal):
            return writes
        touched = triggered(config, facts.compared.paths)
        wanted = tuple(name for name in call.resolved if name in touched)
        if not wanted:
            return writes
        call = replace(call, resolved=wanted)
        trigger = f"review:{event.review_id}:{event.commit_sha}"
        request = self.services.new_id()
        made = new_request(self.services.database, request, trigger, "approval", call, self.services.clock())
        return [*writes, made]

    async def button(self, event: CheckAsked, requests: Sequence[Request]) -> list[Executable]:
        """Re-run (check or suite), or one of our own buttons; the presser needs the same right as for a comment."""
        if not requests:
            return []
        where = where_of(self.event)
        right = await self.services.api.permission(where, event.sender.login)
        sender = replace(event.sender, permission=right)
        if event.sender.kind == "Bot" or not sender.may_run:
            return []
        if event.identifier == "cancel":
            mine = [r.id for r in requests if sender.may_write or r.requester_id == sender.id]
            return [cancel_requests(codec.dump(reason("cancelled")), Request.id.in_(mine))]
        writes: list[Executable] = []
        newest = {request.command: request for request in requests if request.state == "done"}
        for request in newest.values():
            settings = self.services.settings
            before = codec.load(Call, request.call)
            call = replace(before, sender=sender, hardware=settings.hardware, limits=settings.limits)
            trigger = f"{self.event.repository_id}:{self.delivery_id}:{request.id}"
            new_id = self.services.new_id()
            kind = "approval" if request.kind == "approval" else "button"
            writes.append(new_request(self.services.database, new_id, trigger, kind, call, self.services.clock()))
        return writes

    # ---- facts ----------------------------------------------------------------------------------------------------

    async def _facts(self, number: int) -> Facts:
        github, where, event = self.services.api, where_of(self.event), self.event
        seen = await github.pull(where, number)
        pinned = await self._pinned(seen)
        right = await github.permission(where, event.sender.login)
        author_right = right if seen.author.id == event.sender.id else await github.permission(where, seen.author.login)
        compared = await github.compare(where, seen.base_ref, pinned)
        async with self.services.database.read() as tx:
            allowed = await allowed_shas(tx, event.repository_id, number)
        pull = PullRequest(
            repository_id=event.repository_id,
            full_name=event.full_name,
            number=number,
            author=replace(seen.author, permission=author_right),
            head_sha=seen.head_sha,
            base_ref=seen.base_ref,
            # a head repository that is gone is a stranger's: least trust
            from_fork=seen.head_repository_id != event.repository_id,
            title=seen.title,
            open=seen.open,
            private=event.private,
        )
        return Facts(
            where=where,
            sender=replace(event.sender, permission=right),
            pull=pull,
            head_sha=pinned,
            compared=compared,
            allowed=allowed,
            config=await self._config(where, compared.base_sha),
        )

    async def _pinned(self, seen: PullFacts) -> str:
        """The head when the comment arrived, from our own log; what GitHub shows now if we knew none."""
        async with self.services.database.write() as tx:
            known = await head_at(tx, self.event.repository_id, seen.number, self.received_at)
            if known is not None:
                return known
            about = {"repository_id": self.event.repository_id, "number": seen.number}
            await tx.execute(insert(Head).values(sha=seen.head_sha, received_at=self.received_at, **about))
            return seen.head_sha

    async def _config(self, where: Where, sha: str) -> RepoConfig | tuple[ConfigFault, ...] | None:
        text = await self.services.api.file(where, CONFIG_PATH, sha)
        return None if text is None else load(text, hardware=self.services.settings.hardware)

    async def _call(self, facts: Facts, command: Command) -> Call | Refusal:
        """The command with all that its handler may know; a refusal when the facts do not allow one."""
        config, config_sha = facts.config, facts.compared.base_sha
        base_names = frozenset(config.benchmarks) if isinstance(config, RepoConfig) else frozenset()
        if command.options.get("config") == "head":
            config_sha = facts.head_sha
            config = await self._config(facts.where, config_sha)
        if command.verb in WITH_CONFIG and not isinstance(config, RepoConfig):
            return _no_config(config, config_sha, self.services.settings.prefix)
        resolved: tuple[str, ...] | Refusal = ()
        if isinstance(config, RepoConfig) and command.verb in ("run", "plan"):
            resolved = resolve_targets(command.targets, config)
        if isinstance(resolved, Refusal):
            return resolved
        baseline = await self._baseline(facts, command)
        if isinstance(baseline, Refusal):
            return baseline
        base_sha, name = baseline
        return Call(
            command=command,
            sender=facts.sender,
            pull=facts.pull,
            head_sha=facts.head_sha,
            base_sha=base_sha,
            baseline=name,
            config=config if isinstance(config, RepoConfig) else None,
            config_sha=config_sha,
            hardware=self.services.settings.hardware,
            resolved=resolved,
            head_only=tuple(benchmark for benchmark in resolved if benchmark not in base_names),
            allowed_shas=facts.allowed,
            changed_paths=facts.compared.paths,
            limits=self.services.settings.limits,
            scripts_sha=await self._scripts(facts.where, config),
        )

    async def _scripts(self, where: Where, config: object) -> str:
        if not isinstance(config, RepoConfig) or config.scripts is None:
            return ""
        return await self.services.api.commit_of(config.scripts.repository, config.scripts.ref, where)

    async def _baseline(self, facts: Facts, command: Command) -> tuple[str, str] | Refusal:
        """The commit that `vs=` means now, and its name for people."""
        ends = Ends(
            head_sha=facts.head_sha,
            base_ref=facts.pull.base_ref,
            base_sha=facts.compared.base_sha,
            merge_base_sha=facts.compared.merge_base_sha,
        )
        word = str(command.options.get("vs", "merge-base"))
        return await baseline_of(self.services.api, facts.where, word, ends)

    # ---- answers --------------------------------------------------------------------------------------------------

    async def _react(self, comment_id: int | None, number: int, content: str) -> None:
        """The first sign, before anything is asked: written by itself, so that the outbox can send it meanwhile."""
        if comment_id is None:
            return
        async with self.services.database.write() as tx:
            await tx.execute(self._reaction(comment_id, number, content))
        self.services.wake()

    def _reaction(self, comment_id: int, number: int, content: str) -> Executable:
        wanted = {"comment_id": comment_id, "content": content}
        key = f"reaction:{self.delivery_id}:{content}"
        return self._message(key, "reaction", number, wanted)

    def _say(self, number: int, replies: list[Reply], reaction_on: int | None) -> list[Executable]:
        refused = any(reply.refusal for reply in replies)
        writes = []
        if reaction_on is not None:
            writes.append(self._reaction(reaction_on, number, "confused" if refused else "rocket"))
        if refused or len(replies) > 1 or any(reply.text for reply in replies):
            key = f"reply:{self.delivery_id}"
            body = f"{render_reply(replies)}\n{marker(key)}"
            writes.append(self._message(key, "reply", number, {"body": body}))
        return writes

    def _message(self, key: str, kind: str, number: int, wanted: dict[str, object]) -> Executable:
        place: dict[str, Any] = {
            "kind": kind,
            "repository_id": self.event.repository_id,
            "number": number,
            "request_id": None,
        }
        return show(self.services.database, key, wanted, now=self.services.clock(), **place)


def _no_config(config: object, sha: str, prefix: str) -> Refusal:
    if not isinstance(config, tuple):
        return Refusal(
            code="no_config",
            sentence=f"There is no `{CONFIG_PATH}` at `{sha[:10]}`, so there is nothing to run.",
            hint=f"`benchbot init` writes one to start from. If this pull request adds it: `{prefix} all config=head`.",
        )
    first = "; ".join(f"line {fault.line}: {fault.sentence}" for fault in config[:3])
    more = f" (and {len(config) - 3} more)" if len(config) > 3 else ""
    return Refusal(
        code="bad_config",
        sentence=f"`{CONFIG_PATH}` at `{sha[:10]}` cannot be used: {first}{more}",
        hint="A pull request that mends the file gets a check run that shows every fault in its place.",
    )
