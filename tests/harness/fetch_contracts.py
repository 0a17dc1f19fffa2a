"""Fetches what GitHub says of its own API, as packages: `python -m tests.harness.fetch_contracts`.

Everything lands in `.cache/contracts`; nothing of it is committed. Without npm or a network the contract tests are
skipped on a laptop; in CI that is a failure.
"""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / ".cache" / "contracts"
# package, version, the one file of it that we need, its name here
PACKAGES = (
    ("@octokit/openapi", "23.0.2", "package/generated/api.github.com.json", "rest.json"),
    ("@octokit/openapi-webhooks", "12.1.0", "package/generated/api.github.com.json", "webhooks.json"),
    ("@octokit/webhooks-examples", "7.6.1", "package/api.github.com/index.json", "examples.json"),
)
PATIENCE_S = 300


def main() -> int:
    """0 when everything is there, or when it cannot be had on a laptop."""
    wanted = {name: f"{package}@{version}" for package, version, _, name in PACKAGES}
    stamp = FOLDER / "versions.json"
    if _stamped(stamp) == wanted and all((FOLDER / name).is_file() for name in wanted):
        return 0
    if shutil.which("npm") is None:
        return _cannot("npm is not installed")
    FOLDER.mkdir(parents=True, exist_ok=True)
    stamp.unlink(missing_ok=True)  # from here on the folder may be half old and half new
    for package, version, inside, name in PACKAGES:
        trouble = _fetch(f"{package}@{version}", inside, FOLDER / name)
        if trouble:
            return _cannot(trouble)
    stamp.write_text(json.dumps(wanted))
    return 0


def _stamped(stamp: Path) -> object:
    try:
        return json.loads(stamp.read_text())
    except (OSError, ValueError):
        return None


def _fetch(package: str, inside: str, target: Path) -> str:
    """Take one file out of a package; what went wrong, or nothing."""
    with tempfile.TemporaryDirectory() as scratch:
        command = ["npm", "pack", "--silent", package]
        try:
            packed = subprocess.run(
                command, cwd=scratch, capture_output=True, text=True, timeout=PATIENCE_S, check=False
            )
        except subprocess.TimeoutExpired:
            return f"{package} did not come within {PATIENCE_S} s"
        archives = list(Path(scratch).glob("*.tgz"))
        if packed.returncode != 0 or not archives:
            said = packed.stderr.strip().splitlines() or ["npm said nothing"]
            return f"{package} cannot be fetched: {said[-1]}"
        try:
            with tarfile.open(archives[0], "r:gz") as archive:
                file = archive.extractfile(inside)
                content = file.read() if file else b""
        except KeyError:
            return f"{package} holds no {inside}"
        except (tarfile.TarError, OSError, EOFError) as error:
            return f"the archive of {package} is broken: {error}"
        # under its last name only when it is whole
        part = target.with_suffix(".part")
        part.write_bytes(content)
        part.replace(target)
    return ""


def _cannot(why: str) -> int:
    in_ci = os.environ.get("CI") == "true"
    rest = "" if in_ci else "; the contract tests will be skipped"
    print(f"GitHub's descriptions are missing: {why}{rest}.", file=sys.stderr)
    return 1 if in_ci else 0


if __name__ == "__main__":
    sys.exit(main())
