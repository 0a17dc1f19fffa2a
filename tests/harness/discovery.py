"""Google's own descriptions of its APIs as judges: the discovery documents that ship in google-api-python-client.

They name no field as required, so a fake checks that itself; names, types and enums are checked strictly both ways.
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import jsonschema_rs
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from googleapiclient.discovery_cache import DISCOVERY_DOC_DIR

Json = dict[str, Any]
_LONGEST = 300
# parameters that every method takes
_COMMON = frozenset(("$alt", "alt", "fields", "key", "prettyPrint", "quotaUser"))
_BOUNDS = {"int32": (-(2**31), 2**31 - 1), "uint32": (0, 2**32 - 1)}


class Judge(Protocol):
    """Says what is wrong with a call or an answer; an empty list is none."""

    def check_request(self, method: str, path: str, query: Mapping[str, str], body: Any) -> list[str]:
        """Violations of one call."""

    def check_response(self, method: str, path: str, status: int, body: Any) -> list[str]:
        """Violations of one answer; errors have their own shape, which every API shares."""


@cache
def description(name: str) -> "Description":
    """The description of one API, such as `compute.v1`."""
    return Description(json.loads((Path(DISCOVERY_DOC_DIR) / f"{name}.json").read_text()))


class Description:
    """Says what is wrong with a call or an answer; an empty list is none."""

    def __init__(self, document: Json) -> None:
        self._schemas = {name: _strict(schema) for name, schema in document["schemas"].items()}
        self._routes = sorted(_routes(document, document.get("servicePath", "")), key=lambda route: -route[2])
        self._compiled: dict[str, jsonschema_rs.Validator] = {}

    def check_request(self, method: str, path: str, query: Mapping[str, str], body: Any) -> list[str]:
        """Violations of one call."""
        found = self._method(method, path)
        if found is None:
            return [f"{method} {path}: Google describes no such call"]
        known = _COMMON | set(found.get("parameters", {}))
        said = [f"{found['id']}: no query parameter {name}" for name in query if name not in known]
        if "request" in found:
            said += self._judge(f"{found['id']} request", found["request"]["$ref"], body or {})
        elif body:
            said.append(f"{found['id']}: no body is described")
        return said

    def check_response(self, method: str, path: str, status: int, body: Any) -> list[str]:
        """Violations of one answer; errors have their own shape, which every API shares."""
        found = self._method(method, path)
        if found is None or status >= 400:
            ok = isinstance(body, dict) and {"code", "message"} <= set(body.get("error", {}))
            return [] if ok else [f"{method} {path} -> {status}: no error of Google's looks so"]
        return self._judge(f"{found['id']} response", found["response"]["$ref"], body)

    def _method(self, method: str, path: str) -> Json | None:
        for pattern, found, _ in self._routes:
            if found["httpMethod"] == method and pattern.fullmatch(path):
                return found
        return None

    def _judge(self, where: str, name: str, value: Any) -> list[str]:
        if name not in self._compiled:
            self._compiled[name] = jsonschema_rs.validator_for({"$ref": f"#/$defs/{name}", "$defs": self._schemas})
        return [
            f"{where} {'/'.join(map(str, error.instance_path))}: {error.message}"[:_LONGEST]
            for error in self._compiled[name].iter_errors(value)
        ]


def middleware(judge: Judge, violations: list[str]) -> Middleware:
    """Judges every call that passes a server, and its answer."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        raw = await request.read()
        violations.extend(
            judge.check_request(request.method, request.path, request.query, json.loads(raw) if raw else None)
        )
        response = await handler(request)
        if isinstance(response, web.Response):
            body = json.loads(response.text or "{}")
            violations.extend(judge.check_response(request.method, request.path, response.status, body))
        return response

    return check


def _strict(schema: Any) -> Any:
    """A discovery schema as a JSON schema that refuses what it does not name."""
    if "$ref" in schema:
        return {"$ref": f"#/$defs/{schema['$ref']}"}
    kind, form = schema.get("type", "object"), schema.get("format", "")
    if kind == "any":
        return {}
    if kind == "object":
        extra = schema.get("additionalProperties")
        return {
            "type": "object",
            "properties": {name: _strict(inner) for name, inner in schema.get("properties", {}).items()},
            "additionalProperties": _strict(extra) if isinstance(extra, dict) else False,
        }
    if kind == "array":
        return {"type": "array", "items": _strict(schema["items"])}
    strict: Json = {"type": kind}
    if form in ("int64", "uint64"):
        strict["pattern"] = r"^-?\d+$"
    elif form in _BOUNDS:
        strict["minimum"], strict["maximum"] = _BOUNDS[form]
    strict |= {key: schema[key] for key in ("enum", "pattern") if key in schema}
    return strict


def _routes(part: Json, base: str) -> list[tuple[re.Pattern[str], Json, int]]:
    found = []
    for method in part.get("methods", {}).values():
        path = "/" + base + method.get("flatPath", method["path"])
        pattern = re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path))
        found.append((re.compile(pattern), method, len(re.sub(r"\{\w+\}", "", path))))
    for inner in part.get("resources", {}).values():
        found += _routes(inner, base)
    return found
