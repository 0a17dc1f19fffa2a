"""A lease from claim to finish: the order of its steps, and what becomes of runs that cannot be made."""

from __future__ import annotations

import json
import secrets
import signal
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from runners import protocol
from runners.agent import devices, inputs, trees
from runners.agent.checkout import Git
from runners.agent.commands import TAKEN_AWAY
from runners.agent.courier import Courier, Pulse
from runners.agent.gang import THE_END, Gang, address_towards
from runners.agent.host import Host, StepError
from runners.agent.link import LeaseOverError, Link, RefusedError, SilentError
from runners.agent.logs import LogKeeper
from runners.agent.options import Options
from runners.agent.resuming import bring_back
from runners.agent.shipping import Shipment
from runners.agent.sides import Checkout, Side, Workshop, check_out
from runners.agent.training import Attempt, Result, train
from runners.agent.work import RunWork, Work, read_work

# how long shipping may hold up the next run when the bot is away; what is left goes out at the end
_BETWEEN_RUNS_S = 10.0
# how long the first host waits for the last files of the others
_TOGETHER_S = 60.0
# how often and for how long to ask whether a further run is wanted
_ASK_S = 0.5
_UNDECIDED_S = 120.0
_TERMINATED = 128 + signal.SIGTERM


class _UnhealthyError(Exception):
    """The machine's devices do not work; the text is for people."""


class Lease:
    """One lease on this machine."""

    def __init__(self, options: Options, host: Host) -> None:
        self._options = options
        self._host = host
        self._stop = host.stop
        self._link = Link(options.server, host.stop.gone)
        self.deadline_at = options.deadline_at
        self._ready: dict[str, Side] = {}
        self._trouble: dict[str, StepError] = {}
        self._pending: list[Shipment] = []
        self._running = ""
        self._runs = host.state / "runs"
        self._runs.mkdir(exist_ok=True)

    def work(self) -> None:
        """Do all of it. Raises LeaseOverError when the bot does not want us, SilentError when it cannot be reached."""
        answer = self._claim()
        work = read_work(answer["work"])
        self._interruptible = work.interruptible
        self._devices = work.devices
        self._gang = Gang(self._link, self._stop, self._options.member, work.hosts)
        self._hear(answer)
        self._courier = Courier(self._host.state / "spool", self._link, self._stop.gone, self._over)
        self._pulse = Pulse(self._link, float(answer["heartbeat_s"]), self._hear)
        self._host.sweep()
        try:
            self._prepare(work)
            ill = [trouble for trouble in self._trouble.values() if trouble.reason == protocol.DEVICE_UNHEALTHY]
            self._look_at_devices()
            if ill:
                # nothing that this machine could measure would mean anything
                raise _UnhealthyError(ill[0].sentence)
            for run in work.runs:
                if run.asks and not self._is_wanted(run):
                    break
                if not (self._runs / f"{run.id}.json").exists():
                    self._run(run)
                    self._look_at_devices()
            self._collect(work)
            outcome, sentence = ("cancelled", self._stop.reason) if self._stop.reason else ("done", "")
            if self._taken_away():
                outcome = protocol.INTERRUPTED
        except (LeaseOverError, SilentError):
            raise
        except _UnhealthyError as error:
            outcome, sentence = protocol.DEVICE_UNHEALTHY, str(error)
        except Exception:
            # the bot hears that it is our fault; where exactly stands in our own log
            traceback.print_exc()
            outcome, sentence = "failed", "the agent failed; its log on the machine says where"
        if self._stop.gone.is_set():
            raise LeaseOverError("the bot does not know the lease any more")
        self._courier.flush(self._patience())
        self._gang.meet(THE_END, _TOGETHER_S)
        self._link.post("finish", {"outcome": outcome, "sentence": sentence}, self._patience())

    def _claim(self) -> dict[str, Any]:
        kept = self._host.state / "nonce"
        if not kept.exists():
            fresh = kept.with_suffix(".new")
            fresh.write_text(secrets.token_hex(16))
            fresh.rename(kept)
        proof = self._options.proof_file.read_text().strip()
        message = {
            "lease": self._options.lease,
            self._options.proof: proof,
            "nonce": kept.read_text(),
            "agent": protocol.VERSION,
            "member": self._options.member,
            "address": address_towards(self._options.server),
        }
        answer = self._link.post("claim", message, patience_s=self.deadline_at - time.time())
        self._link.credential = str(answer["credential"])
        self._host.masked = (proof, self._link.credential)
        return answer

    def _hear(self, answer: Mapping[str, Any]) -> None:
        if answer.get("over"):
            self._over()
        with self._stop.changed:
            # an answer that comes after the end of its run is about nothing
            if answer.get("abort") and answer["abort"] == self._running:
                self._stop.abort(str(answer.get("why", "")))
        if answer.get("stop"):
            self._stop.set(str(answer["stop"]))
        if answer.get("deadline_at"):
            self.deadline_at = float(answer["deadline_at"])

    def _over(self) -> None:
        self._stop.gone.set()
        self._stop.set("lease over")

    def _patience(self) -> float:
        """How long to wait for a silent bot while nothing runs."""
        left_s = self.deadline_at + self._options.grace_s - time.time()
        return max(0.0, min(self._options.silence_s, left_s))

    def _phase(self, phase: str, *, side: str = "", run: str = "") -> None:
        self._pulse.now(phase, run)
        self._courier.tell(protocol.EVENT_PHASE, phase=phase, side=side, run=run)

    def _prepare(self, work: Work) -> None:
        checkouts = self._check_out(work)
        self._set_up(work, checkouts)
        self._machine = _machine() if self._ready else {}
        self._inputs: dict[str, Path] = {}
        self._inputs_s, began = 0.0, time.monotonic()
        if not work.inputs or not self._ready:
            return
        self._phase("inputs")
        try:
            for item in work.inputs:
                self._inputs[item.name] = inputs.fetch(item, self._options.cache, self._stop)
        except inputs.InputError as error:
            trouble = StepError("cancelled" if self._stop.reason else "input_failed", str(error))
            self._trouble.update(dict.fromkeys(work.sides, trouble))
        self._inputs_s = time.monotonic() - began

    def _check_out(self, work: Work) -> dict[str, Checkout]:
        git = Git(
            self._host.state / "git",
            self._stop,
            server=self._options.server,
            credential=self._link.credential,
            uid=self._options.uid,
        )
        for side in work.sides:
            self._phase("checkout", side=side)
        return self._each(work.sides, lambda side: check_out(self._host, git, work.sides[side]))

    def _set_up(self, work: Work, checkouts: Mapping[str, Checkout]) -> None:
        if not checkouts:
            return
        for side in checkouts:
            self._phase("setup", side=side)
        layers = {}
        try:
            workshop = Workshop(self._host, work)
        except StepError as trouble:
            self._trouble.update(dict.fromkeys(checkouts, trouble))
            return
        # one after the other: the second one mostly finds what the first one made
        for side in sorted(checkouts):
            try:
                layers[side] = workshop.dependencies(checkouts[side])
            except StepError as trouble:
                self._trouble[side] = trouble
        self._ready = self._each(layers, lambda side: workshop.prepare(checkouts[side], layers[side]))
        self._host.sweep()

    def _each(self, sides: Mapping[str, object], step: Callable[[str], Any]) -> dict[str, Any]:
        """A step for all sides at once; a side whose step fails is remembered with its trouble and left out."""
        done = {}
        with ThreadPoolExecutor(max_workers=max(1, len(sides))) as pool:
            futures = {side: pool.submit(step, side) for side in sides}
        for side, future in futures.items():
            try:
                done[side] = future.result()
            except StepError as trouble:
                self._trouble[side] = trouble
        return done

    def _is_wanted(self, run: RunWork) -> bool:
        """Whether what has been measured leaves something to decide; yes where nobody can tell."""
        until = time.monotonic() + _UNDECIDED_S
        # without their files nothing can be decided
        while not self._pending and not self._stop.reason and time.monotonic() < until:
            try:
                answer = self._link.post(f"runs/{run.id}/wanted", {}, patience_s=5.0)
            except (RefusedError, SilentError):
                return True
            if not answer.get("later"):
                return bool(answer.get("wanted", True))
            with self._stop.changed:
                self._stop.changed.wait(_ASK_S)
        return True

    def _run(self, run: RunWork) -> None:
        """Make one run, tell its end, and ship its files as far as the bot is there."""
        if self._taken_away() or not self._gang.meet(run.id):
            return
        self._running = run.id
        outputs = self._host.new_folder("home", "tmp", protocol.LOG_FOLDER, protocol.CHECKPOINT_FOLDER)
        folder = self._runs / outputs.name
        folder.mkdir(exist_ok=True)
        shipment = self._shipment(run, outputs)
        shipment.checkpoints_early = self._interruptible
        with (folder / protocol.LOG_FILE).open("wb") as file:
            log = LogKeeper(file)
            trouble = self._trouble.get(run.side)
            if self._stop.reason:
                reason = "timeout" if self._stop.reason == "deadline" else "cancelled"
                result = Result(None, 0.0, reason, f"stopped before it began: {self._stop.reason}")
            elif trouble:
                log.add(trouble.log.decode("utf-8", "replace").splitlines())
                result = Result(None, 0.0, trouble.reason, trouble.sentence, log_tail=log.last_lines())
            else:
                self._phase("run", side=run.side, run=run.id)
                self._courier.tell(protocol.EVENT_RUN_STARTED, run=run.id)
                resumes = bring_back(self._link, run, outputs, self._options.uid, log)
                with shipment.streaming():
                    together = self._gang.variables(self._devices)
                    side = self._ready[run.side]
                    before = {**side.phases, "inputs": self._inputs_s}
                    attempt = Attempt(run, side, self._inputs, outputs, resumes, together, before)
                    result = train(self._host, attempt, log)
                    result = replace(result, environment={**side.environment, **self._machine})
            shipment.look()
            log.add(f"[benchbot] {note}" for note in sorted(shipment.notes))
            log.close()
        with self._stop.changed:
            aborted, self._running = self._stop.aborted, ""
            self._stop.abort("")
        if aborted:
            result = replace(result, reason="user_error", sentence=aborted)
        if result.exit and self._taken_away(wait_s=1.0 if result.exit == _TERMINATED else 0.0):
            self._courier.flush(_BETWEEN_RUNS_S)
            shipment.complete(_BETWEEN_RUNS_S, at_its_end=False)
            return
        self._courier.tell(protocol.EVENT_RUN_ENDED, run=run.id, **asdict(result))
        (self._runs / f"{run.id}.json").write_text(json.dumps({"outputs": outputs.name}))
        if not (self._courier.flush(_BETWEEN_RUNS_S) and shipment.complete(_BETWEEN_RUNS_S)):
            self._pending.append(shipment)
            return
        trees.remove(outputs)

    def _look_at_devices(self) -> None:
        """Raises _UnhealthyError when devices have fallen ill: then what was measured meanwhile means nothing."""
        trouble = devices.lack(self._devices.kind, self._devices.count) if self._devices else ""
        if trouble:
            raise _UnhealthyError(trouble)

    def _taken_away(self, wait_s: float = 0.0) -> bool:
        """Whether the machine is going away. Its end may be told to the code a moment before it is told to us."""
        with self._stop.changed:
            self._stop.changed.wait_for(lambda: bool(self._stop.reason), wait_s)
        return self._stop.reason == TAKEN_AWAY

    def _shipment(self, run: RunWork, outputs: Path) -> Shipment:
        log = self._runs / outputs.name / protocol.LOG_FILE
        return Shipment(self._link, run.id, log, outputs, self._options.uid)

    def _collect(self, work: Work) -> None:
        """Ship what could not be shipped between the runs, and by an agent on this machine before us."""
        shipments = list(self._pending)
        mine = {shipment.outputs.name for shipment in shipments}
        for run in work.runs:
            kept = self._runs / f"{run.id}.json"
            name = json.loads(kept.read_text())["outputs"] if kept.exists() else ""
            if name and name not in mine and (self._host.work / name).exists():
                shipments.append(self._shipment(run, self._host.work / name))
        if not shipments:
            return
        self._phase("collect")
        for shipment in shipments:
            if not (self._courier.flush(self._patience()) and shipment.complete(self._patience(), last=True)):
                raise SilentError("the bot could not be reached to take the results")


def _machine() -> dict[str, Any]:
    """Driver and names of the devices that there are."""
    found = [device for device in devices.probe() if not device.trouble]
    drivers = ", ".join(dict.fromkeys(device.driver for device in found if device.driver))
    return {"driver": drivers, "devices": [device.name for device in found]}


def watch(lease: Lease, host: Host, give_up: Callable[[], None]) -> None:
    """Start the watchdog: at the deadline everything is told to end, after the grace it is made to."""

    def run() -> None:
        while True:
            now = time.time()
            if now >= lease.deadline_at:
                host.stop.set("deadline")
            if now >= lease.deadline_at + host.options.grace_s:
                give_up()
                return
            time.sleep(0.5)

    threading.Thread(target=run, daemon=True).start()
