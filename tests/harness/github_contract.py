"""GitHub's own descriptions as judges: of calls and answers of its REST API, and of webhooks.

A description is made for documentation, so it is read strictly here: a field or a query parameter that it does not
name is a violation, although GitHub would ignore it.
"""

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import jsonschema_rs
import pytest
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from tests.harness.fetch_contracts import FOLDER
from tests.harness.openapi import Json, compile_schema, unknown_fields

# statuses that GitHub may answer anywhere, though few calls describe them; a renamed repository leads elsewhere
ERRORS = frozenset((301, 307, 401, 403, 404, 405, 409, 410, 422, 429, 500, 502, 503))
# how such an answer looks; the second schema demands nothing by itself
_ERROR = {
    "required": ["message", "documentation_url"],
    "anyOf": [{"$ref": f"#/components/schemas/{name}"} for name in ("validation-error", "basic-error")],
}
_BY_ID = re.compile(r"^/repositories/\d+(?=/|$)")
_LONGEST = 200


def contracts_or_skip(name: str) -> Json:
    """A description; the test is skipped on a laptop that has none, and fails in CI."""
    path = FOLDER / name
    if path.is_file():
        return _read(name)
    sentence = "GitHub's descriptions are not here; `python -m tests.harness.fetch_contracts` fetches them"
    if os.environ.get("CI") == "true":
        pytest.fail(sentence)
    pytest.skip(sentence)


@cache
def _read(name: str) -> Json:
    content: Json = json.loads((FOLDER / name).read_text())
    return content


@dataclass(frozen=True, slots=True)
class Route:
    """One path of the description."""

    template: str
    pattern: re.Pattern[str]
    literal: int
    item: Mapping[str, Any]


class RestContract:
    """Says what is wrong with a call or an answer; an empty list is none."""

    def __init__(self) -> None:
        self._document = contracts_or_skip("rest.json")
        self.schemas: Json = self._document["components"]["schemas"]
        self._routes = sorted((_route(path, item) for path, item in self._document["paths"].items()), key=_least_first)
        self._compiled: dict[str, jsonschema_rs.Validator] = {}

    def check_request(self, method: str, path: str, query: Mapping[str, str], body: Any) -> list[str]:
        """Violations of one call; `path` is below the API's address, `body` None when there is none."""
        route, operation = self._operation(method, path)
        if operation is None:
            return [f"{method} {path}: GitHub describes no such call"]
        name = f"{method} {route.template}"
        parameters = [
            self._deref(each) for each in (*route.item.get("parameters", ()), *operation.get("parameters", ()))
        ]
        known = {each["name"]: each for each in parameters if each["in"] == "query"}
        said = [f"{name}: no query parameter {key}" for key in query if key not in known]
        for key, text in query.items():
            if key in known:
                said += self._judge(
                    f"{name} ?{key}", known[key]["schema"], _typed(text, self._deref(known[key]["schema"]))
                )
        described = self._deref(operation["requestBody"]) if "requestBody" in operation else None
        if body is None or described is None:
            needed = described is not None and described.get("required", False)
            return [*said, *([f"{name}: the body is missing"] if needed and body is None else [])]
        schema = described["content"]["application/json"]["schema"]
        return [*said, *self._judge(name, schema, body), *self._unknown(name, schema, body)]

    def check_response(self, method: str, path: str, status: int, body: Any) -> list[str]:
        """Violations of one answer."""
        route, operation = self._operation(method, path)
        if operation is None:
            return [f"{method} {path}: GitHub describes no such call"]
        name = f"{method} {route.template} -> {status}"
        described = operation["responses"].get(str(status))
        if described is None:
            if status not in ERRORS:
                return [f"{name}: GitHub describes no such status"]
            return self._judge(name, _ERROR, body)
        content = self._deref(described).get("content", {}).get("application/json")
        if content is None:
            return [] if body in (None, {}, "") or status >= 400 else [f"{name}: no body is described"]
        return self._judge(name, content["schema"], body)

    def described(self, method: str, path: str, status: int) -> tuple[Json, Json]:
        """How an answer is described: its schema, and GitHub's examples of it by name.

        Both are empty where the call or its body is not described.
        """
        _, operation = self._operation(method, path)
        described = self._deref(operation["responses"][str(status)]) if operation else {}
        content = described.get("content", {}).get("application/json")
        if content is None:
            return {}, {}
        examples = {name: self._deref(each)["value"] for name, each in content.get("examples", {}).items()}
        return content["schema"], examples

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _operation(self, method: str, path: str) -> tuple[Route, Any]:
        path = _BY_ID.sub("/repos/owner/repo", path).rstrip("/") or "/"
        for route in self._routes:
            if route.pattern.fullmatch(path) and method.lower() in route.item:
                return route, route.item[method.lower()]
        return self._routes[0], None

    def _deref(self, value: Any) -> Any:
        while isinstance(value, dict) and "$ref" in value:
            found: Any = self._document
            for part in value["$ref"].removeprefix("#/").split("/"):
                found = found[part]
            value = found
        return value

    def _judge(self, name: str, schema: Any, value: Any) -> list[str]:
        key = json.dumps(schema, sort_keys=True)
        if key not in self._compiled:
            self._compiled[key] = compile_schema(schema, self.schemas)
        return [_sentence(name, error) for error in self._compiled[key].iter_errors(value)]

    def _unknown(self, name: str, schema: Any, value: Any) -> list[str]:
        return [f"{name}: no field {place}"[:_LONGEST] for place in unknown_fields(schema, value, self.schemas)]


class WebhookContract:
    """Says what is wrong with a webhook that we compose; gives GitHub's examples of webhooks."""

    def __init__(self) -> None:
        document = contracts_or_skip("webhooks.json")
        self._schemas: Json = document["components"]["schemas"]
        self._webhooks: Json = document["webhooks"]
        self._compiled: dict[str, jsonschema_rs.Validator] = {}

    def check(self, event: str, payload: Mapping[str, Any]) -> list[str]:
        """Violations of one payload; the event is told by its name and its action."""
        parts = [event, str(payload.get("action", ""))] if "action" in payload else [event]
        key = "-".join(part.replace("_", "-") for part in parts)
        if key not in self._webhooks:
            return [f"{key}: GitHub describes no such webhook"]
        if key not in self._compiled:
            body = self._webhooks[key]["post"]["requestBody"]["content"]["application/json"]["schema"]
            self._compiled[key] = compile_schema(body, self._schemas)
        return [_sentence(key, error) for error in self._compiled[key].iter_errors(dict(payload))]


@cache
def rest_contract() -> RestContract | None:
    """The judge of the REST API, None where its description was not fetched."""
    return RestContract() if (FOLDER / "rest.json").is_file() else None


@cache
def webhook_contract() -> WebhookContract | None:
    """The judge of webhooks, None where its description was not fetched."""
    return WebhookContract() if (FOLDER / "webhooks.json").is_file() else None


def examples() -> list[tuple[str, Json]]:
    """Every example of a webhook that GitHub gives, as event and payload."""
    found: Any = contracts_or_skip("examples.json")
    return [(entry["name"], example) for entry in found for example in entry["examples"]]


def middleware(contract: RestContract, prefix: str, violations: list[str]) -> Middleware:
    """Judges every call that passes a server, and its answer; sentences are collected, nothing is changed."""

    @web.middleware
    async def judge(request: web.Request, handler: Handler) -> web.StreamResponse:
        refused: web.HTTPException | None = None
        response: web.StreamResponse
        try:
            response = await handler(request)
        except web.HTTPException as error:
            response = refused = error
        path = request.path.removeprefix(prefix)
        raw = await request.read()
        sent = _json(raw)
        # a call that is refused may be a wrong one on purpose: then only the answer is judged
        if response.status < 400:
            violations.extend(contract.check_request(request.method, path, request.query, sent))
        if isinstance(response, web.Response):
            body = _json(response.text)
            violations.extend(contract.check_response(request.method, path, response.status, body))
        if refused is not None:
            raise refused
        return response

    return judge


def _json(text: str | bytes | None) -> Any:
    """The content of a body, None for none; what is not JSON is text, which no description of ours allows."""
    if not text:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return str(text)


def _route(path: str, item: Json) -> Route:
    # these may hold slashes: names of branches and paths of files
    wide = {"path", "basehead", "branch", "ref", "tree_sha", "sha"}
    pattern = re.sub(r"\\\{(\w+)\\\}", lambda found: ".+" if found[1] in wide else "[^/]+", re.escape(path))
    return Route(path, re.compile(pattern), len(re.sub(r"\{\w+\}", "", path)), item)


def _least_first(route: Route) -> tuple[int, str]:
    return -route.literal, route.template


def _typed(text: str, schema: Mapping[str, Any]) -> Any:
    read: dict[str, Callable[[str], Any]] = {"integer": int, "number": float, "boolean": lambda word: word == "true"}
    try:
        return read.get(str(schema.get("type")), str)(text)
    except ValueError:
        return text


def _sentence(name: str, error: Any) -> str:
    place = "/".join(str(part) for part in error.instance_path)
    return f"{name} {place}: {error.message}"[:_LONGEST]
