"""The App's manifest: app.yml as GitHub's manifest flow takes it, for the address of one server."""

import sys
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

FILE = "app.yml"


class NoManifest(Exception):
    """app.yml is not where an installation or a checkout keeps it."""


def read_manifest() -> dict[str, Any]:
    """app.yml as it stands. Raises NoManifest."""
    checkout, installed = Path(__file__).parents[2] / FILE, Path(sys.prefix) / "share" / "benchbot" / FILE
    for path in (checkout, installed):
        if path.is_file():
            manifest: dict[str, Any] = YAML(typ="safe").load(path.read_text())
            return manifest
    raise NoManifest(f"There is no {FILE} beside the package; install benchbot again.")


def manifest_for(base_url: str, redirect_url: str) -> dict[str, Any]:
    """The manifest that GitHub takes, with the addresses of this server in it."""
    told = read_manifest()
    hook = told["hook_attributes"]
    return {
        "name": told["name"],
        "description": told["description"],
        "url": told["url"],
        "public": told["public"],
        "hook_attributes": {"url": base_url + hook["path"], "active": hook["active"]},
        "redirect_url": redirect_url,
        "default_permissions": told["default_permissions"],
        "default_events": told["default_events"],
    }
