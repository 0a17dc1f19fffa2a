"""Self-hosted runners of GitHub Actions, or scale sets of actions-runner-controller, in a repository of the operator's.

A machine is one run of a workflow that the operator has put there (templates/machines/actions.yml). The run's name is
the machine's name and attempt, so that it is found again without any memory of ours. Its agent has no token: it
claims with the identity that GitHub gives to the run.

Options of `[backends.actions]`: `repository` ("owner/name"); `workflow` (benchbot.yml), `ref` (main); `patience_s`
(1800: how long a run may wait for a runner); `ephemeral` ("true": every runner is thrown away after one job);
`issuer` (another address that identities come from).
There or in `[hardware.NAME]`: `label` (what the runner is labelled with; several are tried in order); `device` (cuda,
rocm, xpu or tpu) with `count` (1), what frameworks must see on it.
"""

import asyncio
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from math import ceil
from typing import Any
from urllib.parse import quote

import jwt

from runners.backends.base import Backend, BackendError, BackendSettings
from runners.spec import GitHubCaller, GitHubRefusal, MachineOrder, Offer, Sighting

_ISSUER = "https://token.actions.githubusercontent.com"
_GRACE_S = 900
# GitHub ends a job of a self-hosted runner after five days
_LONGEST_MINUTES = 5 * 24 * 60
_OLDEST_S = 6 * 86_400.0
_PAGE, _MOST_PAGES = 50, 20
# after this long a run that was asked to end is made to
_FORCE_S = 120.0
_ACTIVE = ("queued", "in_progress", "waiting", "pending", "requested")
_LEEWAY_S = 60
_LAST_WORDS = 1000
_DEVICES = ("cuda", "rocm", "xpu", "tpu")

Run = Mapping[str, Any]


class ActionsBackend(Backend):
    """Runs of one workflow."""

    name = "actions"
    billed = False

    def __init__(self, settings: BackendSettings) -> None:
        super().__init__(settings)
        issuer = settings.options.get("issuer", _ISSUER).rstrip("/")
        self._issuer, self._keys = issuer, jwt.PyJWKClient(f"{issuer}/.well-known/jwks", timeout=10)
        # when this process asked a machine's run to end; a new process asks again
        self._asked: dict[str, float] = {}

    def isolates(self) -> str:
        """Runners stay what they are from job to job, unless the operator says otherwise."""
        if self.settings.options.get("ephemeral") == "true":
            return ""
        return (
            "Self-hosted runners are shared from job to job, so a stranger's code is not run on them. "
            "If yours are thrown away after one job, set ephemeral = true in [backends.actions]."
        )

    async def offers(self, options: Mapping[str, str]) -> tuple[Offer, ...]:
        """One for each label, in order."""
        merged = {**self.settings.options, **options}
        labels, device, count = merged.get("label", ""), merged.get("device", ""), merged.get("count", "1")
        if not labels.strip():
            raise BackendError("config", "Set `label`, a label of your runners, in [backends.actions] or the hardware.")
        if not re.fullmatch("[0-9]{1,6}", self.settings.options.get("patience_s", "0")):
            raise BackendError("config", "patience_s in [backends.actions] is a whole number of seconds.")
        if device not in ("", *_DEVICES) or not re.fullmatch("[1-9][0-9]{0,2}", count):
            raise BackendError("config", f"device is one of {', '.join(_DEVICES)}, and count is how many of them.")
        devices = int(count) if device else 0
        return tuple(
            Offer(backend=self.name, zone=label, queued=True, device=device, devices=devices)
            for label in re.split(r"[\s,]+", labels.strip())
        )

    async def create(self, order: MachineOrder) -> None:
        """Start the workflow, unless a run of this name and attempt is there."""
        if order.member:
            raise BackendError("config", "GitHub's runners do not reach each other: hosts = 1 for this hardware.")
        if not order.trusted and self.isolates():
            raise BackendError("untrusted", self.isolates())
        title = f"{order.name}/{order.attempt}"
        if any(run["display_title"] == title for run in await self._runs(order.name)):
            return
        left_s = order.deadline_at - self.settings.clock() + _GRACE_S
        inputs = {
            "machine": title,
            "lease": order.lease_id,
            "server": order.server_url,
            "deadline": str(int(order.deadline_at)),
            "trusted": "true" if order.trusted else "false",
            "label": order.offer.zone,
            "minutes": str(min(_LONGEST_MINUTES, max(1, ceil(left_s / 60)))),
        }
        ref = self.settings.options.get("ref", "main")
        await self._post(f"{self._workflow()}/dispatches", {"ref": ref, "inputs": inputs})

    async def observe(self, name: str, zone: str) -> Sighting:
        """The run; one that is completed holds no runner any more, so it is absent, and says how it ended."""
        run = await self._run(name)
        if run is None:
            return Sighting(name=name, state="absent", zone=zone)
        if run["status"] == "completed":
            return await self._ended(run, name, zone)
        if run["status"] == "in_progress":
            return Sighting(name=name, state="running", zone=zone)
        waited_s = self.settings.clock() - datetime.fromisoformat(run["created_at"]).timestamp()
        sentence = f"No runner with the label {zone} has taken it"
        if waited_s < float(self.settings.options.get("patience_s", "1800")):
            return Sighting(name=name, state="waiting", zone=zone, evidence=f"{sentence} yet.")
        told = f"{sentence} in {int(waited_s / 60)} min; is one online in {self._repository()}, and idle?"
        return Sighting(name=name, state="stopped", zone=zone, code="no_capacity", evidence=told)

    async def delete(self, name: str, zone: str) -> None:
        """Ask the run to end, once; when it does not listen, make it."""
        run, now = await self._run(name), self.settings.clock()
        if run is None or run["status"] == "completed":
            self._asked.pop(name, None)
        elif name not in self._asked:
            await self._cancel(run, "cancel")
            self._asked[name] = now
        elif now - self._asked[name] >= _FORCE_S:
            await self._cancel(run, "force-cancel")

    async def list_owned(self) -> tuple[Sighting, ...]:
        """Runs of the workflow that are not completed and carry this deployment's name."""
        found = {}
        for status in _ACTIVE:
            page = await self._get(f"{self._workflow()}/runs?status={status}&per_page=100&exclude_pull_requests=true")
            for run in page["workflow_runs"]:
                name = run["display_title"].partition("/")[0]
                if name.startswith(f"bb-{self.settings.deployment}-"):
                    state = "running" if run["status"] == "in_progress" else "waiting"
                    found[name] = Sighting(name=name, state=state)
        return tuple(found.values())

    async def diagnose(self, name: str, zone: str) -> str:
        """The steps of the job with how they ended, and what was noted beside them."""
        run = await self._run(name)
        return "no run was found" if run is None else f"{run['html_url']}\n{await self._last_words(run)}"

    async def doubts(self, identity: str, name: str, audience: str) -> str:
        """GitHub's signature first, then what it says of the run, and last whether that run is this machine."""
        try:
            key = await asyncio.to_thread(self._keys.get_signing_key_from_jwt, identity)
            claims = jwt.decode(
                identity,
                key,
                algorithms=["RS256"],
                audience=audience,
                issuer=self._issuer,
                leeway=_LEEWAY_S,
                options={"require": ["exp", "iat", "iss", "aud"]},
            )
        except jwt.PyJWKClientConnectionError as error:
            raise ConnectionError("GitHub's keys cannot be fetched") from error
        except jwt.PyJWTError as error:
            return f"it is not GitHub's, or not for us now ({error})"
        repository, ref = self._repository(), self.settings.options.get("ref", "main")
        path = f"{repository}/.github/workflows/{self._file()}@refs"
        if str(claims.get("repository", "")).lower() != repository.lower():
            return "it is of another repository"
        places = {f"{path}/{kind}/{ref}".lower() for kind in ("heads", "tags")}
        if str(claims.get("workflow_ref", "")).lower() not in places:
            return "it is of another workflow, or of another branch"
        run = await self._run(name)
        if run is None or claims.get("run_id") != str(run["id"]) or run["status"] == "completed":
            return "it is of another run"
        return ""

    # ---- inside -----------------------------------------------------------------------------------------------------

    async def _ended(self, run: Run, name: str, zone: str) -> Sighting:
        """What became of a completed run."""
        told = f"The run on GitHub ended with {run['conclusion'] or 'no conclusion'}."
        if run["conclusion"] not in ("success", "cancelled"):
            told = f"{told} {await self._last_words(run, notes_only=True)}".strip()
        code = "config" if run["conclusion"] == "startup_failure" else "agent_lost"
        return Sighting(name=name, state="absent", zone=zone, code=code, evidence=told)

    async def _run(self, name: str) -> Run | None:
        """The run of the machine's last attempt. An order whose answer was lost may have made two: the older one is
        the machine, the other is ended."""
        runs = await self._runs(name)
        if not runs:
            return None
        last = max(int(run["display_title"].partition("/")[2]) for run in runs)
        first, *others = sorted(
            (run for run in runs if run["display_title"] == f"{name}/{last}"), key=lambda run: int(run["id"])
        )
        for run in others:
            if run["status"] != "completed":
                await self._cancel(run, "cancel")
        return first

    async def _runs(self, name: str) -> list[Run]:
        """All runs of a machine: GitHub lists the newest first, and they were made one soon after the other."""
        since = datetime.fromtimestamp(self.settings.clock() - _OLDEST_S, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        query = f"event=workflow_dispatch&created={quote('>=' + since)}&exclude_pull_requests=true&per_page={_PAGE}"
        title = re.compile(re.escape(name) + r"/[0-9]+")
        for page in range(1, _MOST_PAGES + 1):
            runs = (await self._get(f"{self._workflow()}/runs?{query}&page={page}"))["workflow_runs"]
            found = [run for run in runs if title.fullmatch(run["display_title"])]
            if found or len(runs) < _PAGE:
                return found
        return []

    async def _last_words(self, run: Run, *, notes_only: bool = False) -> str:
        """Steps and annotations of the run's job; what GitHub does not give now is left out."""
        words: list[str] = []
        try:
            for job in (await self._get(f"/actions/runs/{run['id']}/jobs"))["jobs"]:
                if not notes_only:
                    words.append(f"runner: {job['runner_name'] or 'none'}")
                    words += [f"{step['name']}: {step['conclusion'] or step['status']}" for step in job["steps"]]
                notes = await self._get(f"/check-runs/{job['id']}/annotations")
                words += [note["message"] for note in notes if note["annotation_level"] == "failure"]
        except BackendError:
            words.append("GitHub does not say more")
        return "\n".join(words)[-_LAST_WORDS:]

    async def _cancel(self, run: Run, verb: str) -> None:
        try:
            await self._github().post(self._repository(), f"/actions/runs/{run['id']}/{verb}", {})
        except GitHubRefusal as refusal:
            # 409: it is ending, or has ended; the next look tells
            if refusal.status not in (404, 409):
                raise self._told(refusal) from None

    async def _get(self, path: str) -> Any:
        try:
            return await self._github().get(self._repository(), path)
        except GitHubRefusal as refusal:
            raise self._told(refusal) from None

    async def _post(self, path: str, body: Mapping[str, Any]) -> None:
        try:
            await self._github().post(self._repository(), path, body)
        except GitHubRefusal as refusal:
            raise self._told(refusal) from None

    def _told(self, refusal: GitHubRefusal) -> BackendError:
        where = self._repository()
        if refusal.status == 404:
            told = f"GitHub shows this App no workflow {self._file()} in {where}: is it there, and the App installed?"
        elif refusal.status == 403:
            told = f"GitHub refused: {refusal.sentence}. The App needs the permission Actions: write in {where}."
        else:
            told = f"GitHub refused: {refusal.sentence}. Is {self._file()} in {where} this version's?"
        return BackendError("config", told)

    def _github(self) -> GitHubCaller:
        if self.settings.github is None:
            raise BackendError("config", "The backend actions needs a GitHub App; run `benchbot setup`.")
        return self.settings.github

    def _repository(self) -> str:
        repository = self.settings.options.get("repository", "")
        if not re.fullmatch(r"[\w.-]+/[\w.-]+", repository):
            raise BackendError("config", 'Set `repository` in [backends.actions] to "owner/name".')
        return repository

    def _file(self) -> str:
        return self.settings.options.get("workflow", "benchbot.yml")

    def _workflow(self) -> str:
        return f"/actions/workflows/{quote(self._file(), safe='')}"
