"""Python environments: light ones that lie in layers over others, and the cache of those that hold dependencies.

A side's environment is made afresh for every lease and holds what its own checkout installs. Below it lie, in this
order, the cached dependencies, the machine's base environment, and pip.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from runners.agent.inputs import locked
from runners.agent.interpreters import Interpreter

# part of every key: another way of making environments must not find the old ones
_LAYOUT = "1"
_LONGEST_SHEBANG = 120
_OURS = ("python", "pip", "activate", "Activate")


@dataclass(frozen=True)
class Layer:
    """An environment below another one. With `hooks` its .pth files count, too."""

    site: Path
    programs: Path | None = None
    hooks: bool = False


@dataclass(frozen=True)
class Environment:
    """A folder that Python takes for a virtual environment."""

    folder: Path
    interpreter: Interpreter

    @property
    def programs(self) -> Path:
        return self.folder / "bin"

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def site(self) -> Path:
        return self.folder / "lib" / f"python{self.interpreter.short}" / "site-packages"

    def as_layer(self) -> Layer:
        """This environment as something to lie below others."""
        return Layer(self.site, self.programs, hooks=True)

    def variables(self) -> dict[str, str]:
        """What a shell needs to be in this environment."""
        variables = {
            "PATH": f"{self.programs}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "VIRTUAL_ENV": str(self.folder),
        }
        if self.interpreter.library is not None:
            variables["LD_LIBRARY_PATH"] = str(self.interpreter.library)
        return variables


def make(folder: Path, interpreter: Interpreter, layers: Iterable[Layer]) -> Environment:
    """Make an environment over `layers`, the first one winning. Takes milliseconds: nothing is installed."""
    environment = Environment(folder, interpreter)
    environment.programs.mkdir(parents=True)
    environment.site.mkdir(parents=True)
    (folder / "lib64").symlink_to("lib")
    home = interpreter.executable.parent
    (folder / "pyvenv.cfg").write_text(
        f"home = {home}\ninclude-system-site-packages = false\nversion = {interpreter.version}\n"
    )
    environment.python.symlink_to(interpreter.executable)
    for name in ("python3", f"python{interpreter.short}"):
        (environment.programs / name).symlink_to("python")
    lines = []
    for layer in layers:
        lines.append(f"import site; site.addsitedir({str(layer.site)!r})" if layer.hooks else str(layer.site))
        if layer.programs:
            _borrow(layer.programs, environment)
    (environment.site / "_layers.pth").write_text("\n".join(lines) + "\n")
    for name in ("pip", "pip3", f"pip{interpreter.short}"):
        _write_program(environment.programs / name, f'#!/bin/sh\nexec "{environment.python}" -m pip "$@"\n'.encode())
    return environment


def _borrow(programs: Path, environment: Environment) -> None:
    """Offer a layer's programs; those that Python runs are made to run in this environment."""
    for entry in sorted(programs.iterdir()):
        mine = environment.programs / entry.name
        if entry.name.startswith(_OURS) or mine.is_symlink() or mine.exists() or not entry.is_file():
            continue
        with entry.open("rb") as file:
            start = file.read(2)
            if start != b"#!":
                mine.symlink_to(entry)
                continue
            text = start + file.read()
        first, _, rest = text.partition(b"\n")
        if b"python" in first:
            _write_program(mine, _shebang(environment.python) + rest)
        elif rest.startswith(b"'''exec'") and b"python" in rest[:500]:
            _write_program(mine, _shebang(environment.python) + rest.split(b"\n' '''\n", 1)[-1])
        else:
            mine.symlink_to(entry)


def _shebang(python: Path) -> bytes:
    line = f"#!{python}\n"
    if len(line) > _LONGEST_SHEBANG:
        # kernels cut long first lines; the shell reads the second one, Python takes it for a string
        line = f"#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''\n"
    return line.encode()


def _write_program(path: Path, text: bytes) -> None:
    path.write_bytes(text)
    path.chmod(0o755)


def base_layer(base: Path | None, interpreter: Interpreter) -> Layer | None:
    """The machine's base environment as the lowest layer; None when it is for another Python."""
    if base is None:
        return None
    site = base / "lib" / f"python{interpreter.short}" / "site-packages"
    return Layer(site, base / "bin") if site.is_dir() else None


def pip_layer(interpreter: Interpreter, cache: Path) -> Layer | None:
    """pip itself, unpacked once from the wheel that comes with Python; None when it comes with none."""
    if not interpreter.pip:
        return None
    key = hashlib.sha256(f"{interpreter.executable}\0{interpreter.pip}".encode()).hexdigest()[:32]
    place = cache / "interpreters"
    kept = place / f"pip-{key}"
    with locked(place / f"pip-{key}.lock"):
        if not kept.exists():
            fresh = place / f"pip-{key}.{os.getpid()}"
            with zipfile.ZipFile(interpreter.pip) as wheel:
                wheel.extractall(fresh)
            places = ["-s", str(fresh), "-p", str(kept), str(fresh)]
            subprocess.run(
                [str(interpreter.executable), "-I", "-m", "compileall", "-q", "-j", "0", *places],
                env={},
                check=False,
                stdout=subprocess.DEVNULL,
            )
            fresh.rename(kept)
    return Layer(kept)


def key_of(setup: str, interpreter: Interpreter, below: Iterable[Layer], contents: Mapping[str, str]) -> str:
    """What a cached environment is found by: `contents` are the sha256 of the setup inputs by path."""
    parts = [_LAYOUT, setup, str(interpreter.executable), interpreter.version]
    for layer in below:
        parts += [str(layer.site), str(layer.site.stat().st_mtime_ns)]
    parts += [f"{path}={digest}" for path, digest in sorted(contents.items())]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def contents_of(tree: Path, patterns: Iterable[str]) -> dict[str, str]:
    """sha256 of each file of the checkout that `patterns` name, by path; what leads out of it is not there."""
    found = {}
    root = tree.resolve()
    for pattern in patterns:
        try:
            paths = sorted(tree.glob(pattern))
        except (ValueError, NotImplementedError):
            continue
        for path in paths:
            if path.is_file() and path.resolve().is_relative_to(root):
                found[str(path.relative_to(tree))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found
