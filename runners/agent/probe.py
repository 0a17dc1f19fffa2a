"""Run inside an environment of the repository's: which distributions come from its checkout, and what they import.

Its text goes to another interpreter as it stands, so it may import nothing of ours.
Words: TREE SITE. Prints a JSON list of {name, modules: {module: place}}.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import sys
from urllib.parse import unquote, urlsplit


def below(path: str, folder: str) -> bool:
    """Whether a path lies in a folder, links resolved."""
    return (os.path.realpath(path) + os.sep).startswith(os.path.realpath(folder) + os.sep)


def comes_from(found: importlib.metadata.Distribution, tree: str) -> bool:
    """Whether a distribution was installed from the checkout."""
    try:
        url = urlsplit(json.loads(found.read_text("direct_url.json") or "{}").get("url", ""))
    except ValueError:
        return False
    return url.scheme == "file" and below(unquote(url.path), tree)


def modules_of(found: importlib.metadata.Distribution, site: str, tree: str) -> list[str]:
    """Names of the top-level modules of a distribution."""
    names = set((found.read_text("top_level.txt") or "").split())
    for path in found.files or ():
        first = path.parts[0]
        if first.endswith(".pth") and not names:
            names |= names_behind(os.path.join(site, first), tree)
        elif first not in ("..", "__pycache__") and "." not in first.replace(".py", ""):
            names.add(first[:-3] if first.endswith(".py") else first)
    return sorted(name for name in names if name.isidentifier() and not name.startswith("__editable__"))


def names_behind(pth: str, tree: str) -> set[str]:
    """Top-level modules in the folders of the checkout that a .pth file names."""
    names: set[str] = set()
    with open(pth, errors="replace") as lines:
        folders = [line.strip() for line in lines if not line.startswith("import")]
    for folder in folders:
        if folder and below(folder, tree) and os.path.isdir(folder):
            names |= {
                entry.name[:-3] if entry.name.endswith(".py") else entry.name
                for entry in os.scandir(folder)
                if entry.name.endswith(".py") or os.path.exists(os.path.join(entry.path, "__init__.py"))
            }
    return names


def place_of(module: str) -> str | None:
    """Where a module would be imported from: the folder of a package, the file of a module, None when nowhere."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError, AttributeError):
        return None
    if spec is None:
        return None
    folders = list(spec.submodule_search_locations or ())
    return folders[0] if folders else spec.origin


def main(tree: str, site: str) -> None:
    """All distributions in `site` that come from `tree`."""
    out = []
    for found in importlib.metadata.distributions(path=[site]):
        if comes_from(found, tree):
            places = {name: place_of(name) for name in modules_of(found, site, tree)}
            out.append({"name": found.metadata["Name"], "modules": places})
    print(json.dumps(out))


if __name__ == "__main__":
    main(*sys.argv[1:])
