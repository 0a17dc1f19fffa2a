"""Making one side ready: its checkout, its environment, and the proof that it imports its own code."""

from __future__ import annotations

import json
import os
import pkgutil
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runners import protocol
from runners.agent import environments, frameworks, interpreters, trees
from runners.agent.checkout import CheckoutError, Git
from runners.agent.commands import Ended
from runners.agent.environments import Environment, Layer
from runners.agent.host import Host, StepError
from runners.agent.inputs import locked
from runners.agent.interpreters import Interpreter, InterpreterError
from runners.agent.work import SideWork, Work

# bytes of an environment's inventory
_MOST_SAID = 1_000_000
# environments that no lease has used for this long are removed
_KEEP_S = 14 * 24 * 3600.0


@dataclass(frozen=True)
class Checkout:
    """A side's trees, before anything of them has run."""

    commit: str
    folder: Path
    tree: Path
    scripts: Path | None
    seconds: float


@dataclass(frozen=True)
class Side:
    """A side that is ready. `variables` puts a shell into its environment, `imported` says whose code that is, `phases`
    how many seconds its checkout and its setup line took, `environment` what `inventory` found in it."""

    tree: Path
    variables: Mapping[str, str]
    imported: str
    phases: Mapping[str, float]
    environment: Mapping[str, Any]


def check_out(host: Host, git: Git, side: SideWork) -> Checkout:
    """Check out a side's trees. Raises StepError."""
    folder = host.new_folder("home", "tmp")
    scripts = folder / "scripts" if side.scripts else None
    patience_s = host.options.checkout_patience_s
    began = time.monotonic()
    try:
        git.check_out(side.source, folder / "tree", patience_s)
        if side.scripts and scripts:
            git.check_out(side.scripts, scripts, patience_s)
    except CheckoutError as error:
        raise _stopped(host) or StepError("checkout_failed", str(error)) from error
    return Checkout(side.source.commit, folder, folder / "tree", scripts, time.monotonic() - began)


def _stopped(host: Host) -> StepError | None:
    reason = host.stop.reason
    if not reason:
        return None
    return StepError("timeout" if reason == "deadline" else "cancelled", f"stopped before it began: {reason}")


class Workshop:
    """Makes environments for the sides of one lease."""

    def __init__(self, host: Host, work: Work) -> None:
        """Finds the Python and what lies below every environment. Raises StepError."""
        options = host.options
        self._host = host
        self._work = work
        self._one_at_a_time = threading.Lock()
        # code that is not trusted must not fill what the leases of others read
        shared = options.trusted or host.uid is None
        self._cache = (options.cache if shared else host.work / "cache") / "environments"
        self._shared_hits = options.cache / "environments"
        private = host.uid is not None
        try:
            self._interpreter = self._find(work.python, options.base_environment, private)
        except InterpreterError as error:
            raise StepError("setup_failed", str(error)) from error
        base = self._base(options.base_environment, private)
        pip = None
        if base is None or not (base.site / "pip").is_dir():
            pip = environments.pip_layer(self._interpreter, options.cache)
        self._below = tuple(layer for layer in (base, pip) if layer is not None)
        for folder in (self._cache, self._shared_hits):
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o711)

    def _find(self, version: str | None, base: Path | None, private: bool) -> Interpreter:
        return interpreters.find(version, base, self._host.options.cache, private)

    def _base(self, base: Path | None, private: bool) -> Layer | None:
        layer = environments.base_layer(base, self._interpreter)
        if base is None or layer is None or not private:
            return layer
        return environments.base_layer(
            interpreters.mirror(base, layer.site, self._host.options.cache), self._interpreter
        )

    def dependencies(self, checkout: Checkout) -> Layer | None:
        """The cached environment with what the setup line brings besides the project; made when there is none.

        Runs nothing of a checkout when it is there already. Raises StepError.
        """
        work = self._work
        if not work.setup.strip():
            return None
        contents = environments.contents_of(checkout.tree, work.setup_inputs)
        key = environments.key_of(work.setup, self._interpreter, self._below, contents)
        for place in dict.fromkeys((self._shared_hits, self._cache)):
            if (place / key / "complete").exists():
                os.utime(place / key)
                return Environment(place / key, self._interpreter).as_layer()
        self._prune()
        with locked(self._cache / f"{key}.lock"):
            if not (self._cache / key / "complete").exists():
                self._build(self._cache / key, checkout)
        return Environment(self._cache / key, self._interpreter).as_layer()

    def _build(self, folder: Path, checkout: Checkout) -> None:
        host = self._host
        if folder.exists():
            trees.remove(folder)
        environment = environments.make(folder, self._interpreter, self._below)
        trees.hand_over(folder, host.uid)
        self._set_up(environment, checkout)
        names = [str(found["name"]) for found in self._own(environment, checkout)]
        variables = self._variables(environment, checkout)
        if names:
            words = (str(environment.python), "-m", "pip", "uninstall", "-q", "-y", *names)
            host.ask(words, checkout.folder, variables)
        host.sweep()
        if host.uid is not None:
            trees.take_back(folder)
        left = self._own(environment, checkout)
        for path in (*environment.site.glob("*.pth"), *environment.site.glob("*.egg-link")):
            if str(checkout.tree) in path.read_text(errors="replace"):
                path.unlink()
        if left:
            raise StepError("setup_failed", f"{left[0]['name']} could not be taken out of the shared dependencies")
        (folder / "complete").touch()

    def prepare(self, checkout: Checkout, dependencies: Layer | None) -> Side:
        """A side's own environment, with the setup line run afresh in its checkout. Raises StepError."""
        layers = (dependencies, *self._below) if dependencies else self._below
        environment = environments.make(checkout.folder / "env", self._interpreter, layers)
        trees.hand_over(environment.folder, self._host.uid)
        began = time.monotonic()
        if self._work.setup.strip():
            self._set_up(environment, checkout)
        phases = {"checkout": checkout.seconds, "setup": time.monotonic() - began}
        imported = self._imported(environment, checkout)
        variables = environment.variables()
        if checkout.scripts:
            variables["BENCHBOT_SCRIPTS"] = str(checkout.scripts)
        self._look_at_devices(environment, checkout)
        return Side(checkout.tree, variables, imported, phases, self._inventory(environment, checkout))

    def _inventory(self, environment: Environment, checkout: Checkout) -> Mapping[str, Any]:
        """What is installed; empty where the environment's Python does not say."""
        text = (pkgutil.get_data("runners.agent", "inventory.py") or b"").decode()
        words = (str(environment.python), "-I", "-c", text)
        said = self._host.ask(words, checkout.folder, self._variables(environment, checkout))
        try:
            found = json.loads(said[:_MOST_SAID].decode("utf-8", "replace").splitlines()[-1])
        except (ValueError, IndexError):
            return {}
        return found if isinstance(found, dict) else {}

    def _look_at_devices(self, environment: Environment, checkout: Checkout) -> None:
        """Raises StepError when a framework of the side does not see the devices that were ordered."""
        devices = self._work.devices
        if devices is None:
            return
        words = (str(environment.python), "-c", frameworks.ASK, devices.kind)
        variables = self._variables(environment, checkout)
        with self._one_at_a_time:
            # a TPU is held by one process alone
            said = self._host.ask(words, checkout.folder, variables, frameworks.PATIENCE_S)
        blind = frameworks.judge(said, devices)
        if blind:
            raise StepError(protocol.DEVICE_UNHEALTHY if blind.unhealthy else "setup_failed", blind.sentence)

    def _variables(self, environment: Environment, checkout: Checkout) -> dict[str, str]:
        variables = {
            **self._host.variables(checkout.folder),
            **environment.variables(),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_NO_INPUT": "1",
        }
        if checkout.scripts:
            variables["BENCHBOT_SCRIPTS"] = str(checkout.scripts)
        return variables

    def _set_up(self, environment: Environment, checkout: Checkout) -> None:
        timeout_s = self._work.setup_timeout_s
        ended, log = self._host.shell(
            self._work.setup, checkout.tree, self._variables(environment, checkout), timeout_s
        )
        if ended.exit or ended.cause:
            raise _stopped(self._host) or StepError("setup_failed", _why(ended, log, timeout_s), log)

    def _own(self, environment: Environment, checkout: Checkout) -> list[dict[str, object]]:
        """What in an environment was installed from the checkout, as `probe` tells it."""
        text = (pkgutil.get_data("runners.agent", "probe.py") or b"").decode()
        words = (str(environment.python), "-I", "-c", text, str(checkout.tree), str(environment.site))
        said = self._host.ask(words, checkout.folder, self._variables(environment, checkout))
        try:
            found = json.loads(said)
        except ValueError:
            return []
        return found if isinstance(found, list) else []

    def _imported(self, environment: Environment, checkout: Checkout) -> str:
        """What a run would import, such as "digits from src/digits at <commit>". Raises StepError for other code."""
        tree, site = str(checkout.tree.resolve()), str(environment.site.resolve())
        parts = []
        for found in self._own(environment, checkout):
            modules = found["modules"] if isinstance(found["modules"], dict) else {}
            for module, place in modules.items():
                if place is None:
                    continue
                real = os.path.realpath(place)
                if real.startswith(f"{tree}/"):
                    parts.append(f"{module} from {os.path.relpath(real, tree)}")
                elif real.startswith(f"{site}/"):
                    parts.append(f"{module} from site-packages, built from the checkout")
                else:
                    raise StepError("setup_failed", f"{module} would be imported from {place}, not from the checkout")
            if not any(modules.values()):
                parts.append(f"{found['name']} from the checkout")
        return f"{', '.join(parts) or 'nothing installed, the checkout itself'} at {checkout.commit}"

    def _prune(self) -> None:
        """Remove environments that have not been used for long."""
        for marker in self._cache.glob("*/complete"):
            folder = marker.parent
            if folder.stat().st_mtime < time.time() - _KEEP_S:
                trees.remove(folder)


def _why(ended: Ended, log: bytes, timeout_s: float) -> str:
    if ended.cause == "timeout":
        return f"setup took longer than {timeout_s:g} s"
    lines = [line for line in log.decode("utf-8", "replace").splitlines() if line.strip()]
    return f"setup ended with status {ended.exit}" + (f": {lines[-1][:300]}" if lines else "")
