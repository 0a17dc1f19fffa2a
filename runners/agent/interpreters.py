"""Which Python a side gets, and making it reachable for a user who may not go where it lies."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from runners.agent import trees
from runners.agent.inputs import locked

_ASK = """
import glob, json, os, sys, sysconfig
try:
    import ensurepip
    bundled = os.path.join(os.path.dirname(ensurepip.__file__), "_bundled")
except ImportError:
    bundled = ""
wheels = glob.glob(os.path.join(bundled, "pip-*.whl")) or glob.glob("/usr/share/python-wheels/pip-*.whl")
print(json.dumps({
    "version": "%d.%d.%d" % sys.version_info[:3], "prefix": sys.base_prefix,
    "executable": os.path.realpath(sys.executable), "pip": wheels[0] if wheels else "",
}))
"""
# parts of an interpreter that no environment uses
_UNUSED = frozenset({"test", "idlelib", "site-packages", "dist-packages", "turtledemo"})


class InterpreterError(Exception):
    """No Python of the wanted version; the text is for people."""


@dataclass(frozen=True)
class Interpreter:
    """A Python: its program, its full version, the wheel of pip that it brings along ("" when none), and where its
    shared library lies when that has to be said, because the program is a copy that looks in the old place."""

    executable: Path
    version: str
    pip: str
    library: Path | None = None

    @property
    def short(self) -> str:
        """Such as "3.11"."""
        return ".".join(self.version.split(".")[:2])


def find(version: str | None, base: Path | None, cache: Path, private: bool) -> Interpreter:
    """The Python for a version such as "3.11"; without one the base environment's, else our own.

    With `private` the code runs as another user, and an interpreter out of its reach is mirrored into `cache`.
    Raises InterpreterError naming what there is.
    """
    tried = []
    for path in _candidates(version, base):
        answer = _ask(path, cache)
        if answer is None:
            continue
        tried.append(answer["version"])
        if version is None or (answer["version"] + ".").startswith(version + "."):
            executable = Path(answer["executable"])
            if not private:
                return Interpreter(executable, answer["version"], answer["pip"])
            prefix = Path(answer["prefix"]).resolve()
            place = mirror(prefix, executable, cache, skip=_UNUSED)
            shared = place != prefix and any((place / "lib").glob("libpython*.so*"))
            copy = place / executable.relative_to(prefix)
            return Interpreter(copy, answer["version"], answer["pip"], place / "lib" if shared else None)
    there = ", ".join(sorted(set(tried) | {found.version for found in _everything(cache)})) or "none"
    raise InterpreterError(f"Python {version} is not on this machine; there is: {there}")


def _candidates(version: str | None, base: Path | None) -> list[Path]:
    paths = [base / "bin" / "python"] if base else []
    if version is None:
        return [*paths, Path(sys.executable)]
    minor = ".".join(version.split(".")[:2])
    if base is not None and not (base / "lib" / f"python{minor}").is_dir():
        paths = []
    return [*paths, Path(sys.executable), *_named(f"python{minor}")]


def _named(name: str) -> list[Path]:
    folders = [Path(part) for part in os.environ.get("PATH", os.defpath).split(":") if part and "/shims" not in part]
    folders += [Path("/usr/local/bin"), Path("/usr/bin")]
    for place in (Path.home() / ".pyenv/versions", Path.home() / ".local/share/uv/python", Path("/opt/python")):
        folders += [folder / "bin" for folder in sorted(place.glob("*"), reverse=True)]
    return [folder / name for folder in folders if os.access(folder / name, os.X_OK)]


def _everything(cache: Path) -> list[Interpreter]:
    found = []
    for minor in range(8, 20):
        for path in _named(f"python3.{minor}")[:1]:
            answer = _ask(path, cache)
            if answer:
                found.append(Interpreter(Path(answer["executable"]), answer["version"], answer["pip"]))
    return found


def _ask(path: Path, cache: Path) -> dict[str, str] | None:
    """What an interpreter says of itself; remembered for as long as its program stays the same."""
    try:
        info = path.stat()
    except OSError:
        return None
    folder = cache / "interpreters"
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o711)
    kept = folder / f"{_digest(str(path), str(info.st_mtime_ns), str(info.st_size))}.json"
    if not kept.exists():
        asked = subprocess.run([str(path), "-I", "-c", _ASK], capture_output=True, check=False, env={}, cwd="/")
        if asked.returncode:
            return None
        fresh = kept.with_suffix(f".{os.getpid()}")
        fresh.write_bytes(asked.stdout)
        fresh.rename(kept)
    answer: dict[str, str] = json.loads(kept.read_text())
    return answer


def mirror(folder: Path, marker: Path, cache: Path, skip: frozenset[str] = frozenset()) -> Path:
    """`folder`, or a copy of it that everybody can read when others cannot reach it.

    The copy is made of hard links where that works, once for as long as `marker` keeps its time of change. Names in
    `skip` are left out below lib/pythonX.Y.
    """
    if _open_to_all(folder):
        return folder
    digest = _digest(str(folder), str(marker.stat().st_mtime_ns))
    place = cache / "interpreters"
    place.mkdir(parents=True, exist_ok=True)
    place.chmod(0o711)
    kept = place / digest
    with locked(place / f"{digest}.lock"):
        if not kept.exists():
            fresh = place / f"{digest}.new"
            if fresh.exists():
                trees.remove(fresh)
            _copy(folder, fresh, folder, kept, skip)
            fresh.rename(kept)
    return kept


def _open_to_all(folder: Path) -> bool:
    real = folder.resolve()
    if real.stat().st_mode & 0o005 != 0o005:
        return False
    return all(parent.stat().st_mode & stat.S_IXOTH for parent in real.parents)


def _copy(source: Path, target: Path, root: Path, kept: Path, skip: frozenset[str]) -> None:
    target.mkdir(mode=0o755)
    for entry in os.scandir(source):
        path = target / entry.name
        if entry.is_symlink():
            goal = os.readlink(entry.path)
            if goal.startswith(f"{root}/"):
                goal = f"{kept}{goal[len(str(root)) :]}"
            path.symlink_to(goal)
        elif entry.is_dir():
            if not (entry.name in skip and source.parent.name in ("lib", "lib64")):
                _copy(Path(entry.path), path, root, kept, skip)
        elif entry.is_file():
            _link(entry, path)


def _link(entry: os.DirEntry[str], path: Path) -> None:
    mode = entry.stat().st_mode
    if mode & stat.S_IROTH:
        try:
            os.link(entry.path, path)
        except OSError:
            shutil.copy2(entry.path, path)
        return
    shutil.copy2(entry.path, path)
    path.chmod(0o755 if mode & stat.S_IXUSR else 0o644)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
