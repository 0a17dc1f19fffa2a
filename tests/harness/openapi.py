"""Schemas of OpenAPI as JSON Schema: compiled to judges, and searched for fields that they do not name."""

from collections.abc import Iterator
from typing import Any

import jsonschema_rs

Json = dict[str, Any]
_WORDS = {"example", "examples", "discriminator", "xml", "externalDocs"}


def compile_schema(schema: Any, schemas: Json) -> jsonschema_rs.Validator:
    """A validator of one schema with only those others that it refers to."""
    root = _convert(schema)
    closure: Json = {}
    waiting = list(_references(root))
    while waiting:
        name = waiting.pop()
        if name not in closure:
            closure[name] = _convert(schemas[name])
            waiting += _references(closure[name])
    whole = {"$schema": "https://json-schema.org/draft/2020-12/schema", "allOf": [root], "$defs": closure}
    return jsonschema_rs.validator_for(whole, validate_formats=False)


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"].rpartition("/")[2]
        for each in value.values():
            yield from _references(each)
    elif isinstance(value, list):
        for each in value:
            yield from _references(each)


def _convert(schema: Any) -> Any:
    """OpenAPI 3.0 to JSON Schema; keys inside `properties` are names, not words of the language."""
    if isinstance(schema, list):
        return [_convert(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made: Json = {}
    for key, value in schema.items():
        if key in _WORDS or key.startswith("x-") or key == "nullable":
            continue
        if key == "properties":
            made[key] = {name: _convert(each) for name, each in value.items()}
        elif key == "$ref":
            made[key] = f"#/$defs/{value.rpartition('/')[2]}"
        else:
            made[key] = _convert(value)
    return _nullable(made) if schema.get("nullable") else made


def _nullable(made: Json) -> Json:
    if isinstance(made.get("type"), str) and not {"allOf", "anyOf", "oneOf"} & set(made):
        made["type"] = [made["type"], "null"]
        if "enum" in made and None not in made["enum"]:
            made["enum"] = [*made["enum"], None]
        return made
    return {"anyOf": [made, {"type": "null"}]}


def unknown_fields(schema: Any, value: Any, schemas: Json, place: str = "") -> Iterator[str]:
    """Places of fields that no part of the schema names, at any depth, as `output/colour`.

    Where a schema says in so many words that other fields may stand there, or says nothing of fields, all may.
    """
    parts = list(_parts(schema, schemas))
    if isinstance(value, list):
        items = [part["items"] for part in parts if "items" in part]
        for at, each in enumerate(value if items else ()):
            yield from unknown_fields({"anyOf": items}, each, schemas, f"{place}{at}/")
    if not isinstance(value, dict):
        return
    # GitHub's descriptions write `additionalProperties: true` into alternatives of one object, so names count first
    named = [part for part in parts if part.get("properties")]
    free = not named or any(isinstance(part.get("additionalProperties"), dict) for part in parts)
    for key, each in value.items():
        found = [part["properties"][key] for part in named if key in part["properties"]]
        if found:
            yield from unknown_fields({"anyOf": found}, each, schemas, f"{place}{key}/")
        elif not free:
            yield f"{place}{key}"


def _parts(schema: Any, schemas: Json) -> Iterator[Json]:
    while "$ref" in schema:
        schema = schemas[schema["$ref"].rpartition("/")[2]]
    yield schema
    for word in ("allOf", "anyOf", "oneOf"):
        for part in schema.get(word, ()):
            yield from _parts(part, schemas)
