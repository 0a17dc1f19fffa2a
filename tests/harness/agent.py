"""A scripted agent: says over HTTP what a real one would say, about trainings that the story made up."""

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import ClientSession

from runners.protocol import LOG_FILE, LOG_FOLDER, PREFIX, VERSION, is_log
from runners.spec import MachineOrder


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """What one training does: values by metric tag, or how it fails; `seconds` is its wall time, `told` what else its
    agent says of its end."""

    values: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""
    sentence: str = ""
    exit: int = 0
    log: str = "training\n"
    seconds: float = 20.0
    files: Mapping[str, bytes] = field(default_factory=dict)
    told: Mapping[str, Any] = field(default_factory=dict)


# commit, seed -> what happens
Script = Callable[[str, int], Training]


class Gone(Exception):
    """The server told the agent that its lease has ended."""


class ScriptedAgent:
    """One machine's agent. `run` plays the whole lease, `claim` and `train` its parts."""

    def __init__(
        self,
        session: ClientSession,
        order: MachineOrder,
        script: Script,
        by_run: Callable[[str, Training], Training] = lambda run_id, training: training,
        meanwhile: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        self.session = session
        self.order = order
        self.script = script
        self.by_run = by_run
        # what goes on while the agent waits for an answer
        self.meanwhile = meanwhile
        self.credential = ""
        self.work: dict[str, Any] = {}

    async def run(self) -> None:
        """Claim, train everything, finish."""
        await self.claim()
        for run in self.work["runs"]:
            if run["asks"] and not await self.is_wanted(run):
                break
            if not self.order.member:
                await self.train(run)
        await self.post("finish", {"outcome": "done", "sentence": ""})

    async def claim(self, nonce: str = "") -> None:
        """Claim with a nonce that is the machine's name, so that a second try is the same agent's."""
        # three parts with points between them are a signed identity
        proof = "identity" if self.order.token.count(".") == 2 else "token"
        claim = {"lease": self.order.lease_id, proof: self.order.token, "nonce": nonce or self.order.name}
        who = {"member": self.order.member, "address": f"10.0.0.{self.order.member + 1}"}
        answer = await self.post("claim", {**claim, **who, "agent": "scripted", "version": VERSION})
        self.credential, self.work = answer["credential"], answer["work"]

    async def is_wanted(self, run: Mapping[str, Any]) -> bool:
        """Whether a run that may not be needed any more is."""
        for _ in range(100):
            answer = await self.post(f"runs/{run['id']}/wanted", {})
            if not answer.get("later"):
                return bool(answer["wanted"])
            assert self.meanwhile, "nobody looks at what was measured"
            await self.meanwhile()
        raise AssertionError("nobody decides whether more is to be run")

    async def train(self, run: Mapping[str, Any]) -> None:
        """One run: started, files, ended, manifest."""
        commit = self.work["sides"][run["side"]]["source"]["commit"]
        training = self.by_run(run["id"], self.script(commit, run["seed"]))
        await self.post("event", {"kind": "run_started", "run": run["id"]})
        files = {LOG_FILE: training.log.encode(), **training.files}
        if training.values:
            lines = [json.dumps({"step": step, **training.values}) for step in (1, 2, 3)]
            files[f"{LOG_FOLDER}/metrics.jsonl"] = ("\n".join(lines) + "\n").encode()
        for path, data in files.items():
            if is_log(path):
                await self.put(f"runs/{run['id']}/files/{path}?offset=0", data)
        ended = {"kind": "run_ended", "run": run["id"], "exit": training.exit, "seconds": training.seconds}
        about = {"reason": training.reason, "sentence": training.sentence, "imported": f"digits at {commit}"}
        await self.post("event", {**ended, **about, **training.told, "log_tail": training.log[-500:]})
        await self.ship(run, files, complete=True)

    async def save(self, run: Mapping[str, Any], path: str, data: bytes) -> None:
        """Ship a checkpoint while the run goes on: under another name first, as the real agent does."""
        await self.post("event", {"kind": "run_started", "run": run["id"]})
        await self.ship(run, {path: data}, complete=False)

    async def ship(self, run: Mapping[str, Any], files: Mapping[str, bytes], *, complete: bool) -> None:
        """A manifest, what it asks for, and a second one that asks for nothing."""
        manifest = [
            {
                "path": path,
                "sent_as": path if is_log(path) else f"{path}.part",
                "size": len(data),
                "sha256": hashlib.sha256(data).hexdigest(),
                "md5": hashlib.md5(data).hexdigest(),
            }
            for path, data in files.items()
        ]
        message = {"files": manifest, "complete": complete}
        answer = await self.post(f"runs/{run['id']}/manifest", message)
        for item in answer["wanted"]:
            path, data = item["path"], files[item["path"]]
            if "url" not in item:
                await self.put(f"runs/{run['id']}/files/{path}.part?offset={item['offset']}", data)
                continue
            header = {"Content-Range": f"bytes 0-{len(data) - 1}/{len(data)}"}
            async with self.session.put(item["url"], data=data, headers=header) as response:
                assert response.status == 200, await response.text()
        answer = await self.post(f"runs/{run['id']}/manifest", message)
        assert answer["wanted"] == [], "what was sent has arrived"

    async def kept(self, run: Mapping[str, Any]) -> dict[str, bytes]:
        """What an earlier machine had shipped of a run."""
        found = {}
        for file in run["kept"]:
            url = f"{self.order.server_url}{PREFIX}/runs/{run['id']}/files/{file['path']}"
            async with self.session.get(url, headers=self._headers()) as response:
                found[file["path"]] = await response.read()
        return found

    async def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        url = f"{self.order.server_url}{PREFIX}/{path}"
        async with self.session.post(url, json=dict(body), headers=self._headers()) as response:
            return await self._read(response)

    async def put(self, path: str, data: bytes) -> dict[str, Any]:
        url = f"{self.order.server_url}{PREFIX}/{path}"
        async with self.session.put(url, data=data, headers=self._headers()) as response:
            return await self._read(response)

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.credential}"} if self.credential else {}

    async def _read(self, response: Any) -> dict[str, Any]:
        if response.status == 401:
            raise Gone
        answer: dict[str, Any] = await response.json()
        assert response.status < 300, answer
        return answer
