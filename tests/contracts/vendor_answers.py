"""Answers of GitHub as its own description shows them. Its examples leave out fields that its schemas demand: these
are filled in here, and nothing else is changed unless the schema forbids it."""

from typing import Any

from tests.harness.github_contract import RestContract
from tests.harness.openapi import Json, compile_schema

_PLAIN: Json = {"string": "", "integer": 0, "number": 0, "boolean": False, "array": [], "object": {}}


def vendor_answer(contract: RestContract, method: str, path: str, status: int, example: str = "") -> Any:
    """An example of an answer, by its name or the first one, made whole. Fails when the description has none."""
    schema, examples = contract.described(method, path, status)
    assert examples, f"{method} {path} -> {status}: no example"
    body = _Filler(contract.schemas).fill(schema, examples[example] if example else next(iter(examples.values())))
    assert contract.check_response(method, path, status, body) == []
    return body


class _Filler:
    def __init__(self, schemas: Json) -> None:
        self._schemas = schemas

    def fill(self, schema: Json, value: Any) -> Any:
        """The value with all fields that the schema demands."""
        schema = self._deref(schema)
        if self._fits(schema, value):
            return value
        for part in schema.get("allOf", ()):
            value = self.fill(part, value)
        for word in ("anyOf", "oneOf"):
            made = [self.fill(part, value) for part in schema.get(word, ())]
            value = next((each for each in made if self._fits(schema, each)), value)
        if isinstance(value, list) and "items" in schema:
            value = [self.fill(schema["items"], each) for each in value]
        if isinstance(value, dict):
            value = self._object(schema, value)
        return value if self._fits(schema, value) else self._make(schema)

    def _object(self, schema: Json, value: Json) -> Json:
        fields: Json = schema.get("properties", {})
        made = {key: self.fill(fields[key], each) if key in fields else each for key, each in value.items()}
        missing = [key for key in schema.get("required", ()) if key not in made]
        return made | {key: self._make(fields[key]) for key in missing}

    def _make(self, schema: Json) -> Any:
        """The plainest value that the schema allows."""
        schema = self._deref(schema)
        if schema.get("nullable"):
            return None
        for word in ("allOf", "anyOf", "oneOf"):
            for part in schema.get(word, ()):
                return self._make(part)
        if "enum" in schema:
            return schema["enum"][0]
        kind = schema.get("type", "object" if "properties" in schema else "string")
        return self._object(schema, {}) if kind == "object" else _PLAIN[kind]

    def _fits(self, schema: Json, value: Any) -> bool:
        return bool(compile_schema(schema, self._schemas).is_valid(value))

    def _deref(self, schema: Json) -> Json:
        while "$ref" in schema:
            schema = self._schemas[schema["$ref"].rpartition("/")[2]]
        return schema
