"""Run inside an environment of the repository's: its Python, every distribution with its version, and the frameworks.

Its text goes to another interpreter as it stands, so it may import nothing of ours; no framework is imported. Prints a
line of JSON: {python, platform, frameworks: {name: version}, cuda: {framework: version}, packages: ["name==version"]}.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import sys

# module: the distributions that bring it
FRAMEWORKS = {
    "torch": ("torch",),
    "jax": ("jax",),
    "jaxlib": ("jaxlib",),
    "flax": ("flax",),
    "tensorflow": ("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tf-nightly"),
    "keras": ("keras", "keras-nightly"),
    "paddle": ("paddlepaddle", "paddlepaddle-gpu"),
    "lightning": ("lightning",),
    "torch_xla": ("torch-xla",),
}
# where a framework has written down which CUDA it was built for
BUILDS = {
    "torch": ("version.py", r"^cuda\b[^=\n]*=\s*['\"]([0-9.]+)['\"]"),
    "tensorflow": ("python/platform/build_info.py", r"['\"]cuda_version['\"]\s*[,:]\s*['\"]([0-9.]+)['\"]"),
}


def normal(name: str) -> str:
    """A distribution's name as it is compared."""
    return re.sub(r"[-_.]+", "-", name).lower()


def source_of(found: importlib.metadata.Distribution) -> str:
    """` @ URL` for what was installed from a repository or an address, without what could be a secret in it."""
    try:
        told = json.loads(found.read_text("direct_url.json") or "{}")
        url = str(told.get("url", ""))
        commit = told.get("vcs_info", {}).get("commit_id", "")
    except (ValueError, AttributeError):
        return ""
    if url.startswith("file:") or not url:
        return ""
    plain = re.sub(r"//[^/@]*@", "//", url).partition("?")[0]
    return f" @ {plain}" + (f"@{commit}" if commit else "")


def packages() -> dict[str, tuple[str, str]]:
    """Version and line of each distribution that can be imported, by its normal name; the first one found counts."""
    told: dict[str, tuple[str, str]] = {}
    for found in importlib.metadata.distributions():
        name = found.metadata["Name"]
        if name and normal(name) not in told:
            told[normal(name)] = (found.version, f"{normal(name)}=={found.version}{source_of(found)}")
    return told


def cuda_of(module: str) -> str:
    """The version of CUDA that a framework was built for; empty when it does not say."""
    name, pattern = BUILDS[module]
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.origin:
        return ""
    try:
        with open(os.path.join(os.path.dirname(spec.origin), name), errors="replace") as file:
            match = re.search(pattern, file.read(1_000_000), re.MULTILINE)
    except OSError:
        return ""
    return match.group(1) if match else ""


def main() -> None:
    """Print all of it."""
    told = packages()
    there = [module for module in FRAMEWORKS if importlib.util.find_spec(module) is not None]
    versions = {
        module: next((told[name][0] for name in FRAMEWORKS[module] if name in told), "unknown") for module in there
    }
    runtime = [version for name, (version, _) in told.items() if name.startswith("nvidia-cuda-runtime")]
    cuda = {module: cuda_of(module) for module in BUILDS if module in there}
    cuda["runtime"] = runtime[0] if runtime else ""
    message = {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "frameworks": versions,
        "cuda": {name: version for name, version in cuda.items() if version},
        "packages": sorted(line for _, line in told.values()),
    }
    sys.stdout.write("\n" + json.dumps(message) + "\n")


if __name__ == "__main__":
    main()
