"""The OpenAPI document is held against what endpoints answer."""

from __future__ import annotations

import re
from typing import Any

from dither.service.web._app import ENDPOINTS
from service.hospital import COUNT, Served

KINDS: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "null": type(None),
}


def follows(schema: Any, value: Any, document: Any) -> None:
    """Hold a value against what of JSON Schema the document uses."""
    if "$ref" in schema:
        part = document
        for name in schema["$ref"].removeprefix("#/").split("/"):
            part = part[name]
        follows(part, value, document)
        return
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    assert not kinds or any(isinstance(value, KINDS[one]) for one in kinds), (schema, value)
    if isinstance(value, dict):
        assert set(schema.get("required", ())) <= value.keys(), (schema, value)
        for name, part in schema.get("properties", {}).items():
            if name in value:
                follows(part, value[name], document)
    if isinstance(value, list) and schema.get("items"):
        for one in value:
            follows(schema["items"], one, document)


def test_every_endpoint_is_in_it_with_its_rules(hospital: Served) -> None:
    """Paths, roles, fields and parameters are those of the table of endpoints, and no others."""
    document = hospital.http.get("/openapi.json").json()
    listed = {(method.upper(), path) for path, one in document["paths"].items() for method in one}
    assert len(listed) == len(ENDPOINTS)
    for one in ENDPOINTS:
        path = "/v1/{policy}" + re.sub(r":\w+}", "}", one.path)
        assert (one.method, path) in listed
        found = document["paths"][path][one.method.lower()]
        assert found["x-roles"] == sorted(role.value for role in one.roles)
        named = {p["name"] for p in found["parameters"] if p["in"] == "path"}
        assert named == set(re.findall(r"{(\w+)}", path))
        if one.method == "POST" and one.takes:
            body = found["requestBody"]["content"]["application/json"]["schema"]
            assert body["properties"].keys() == one.takes.keys()
            assert body["additionalProperties"] is False


def test_what_endpoints_answer_is_what_it_says(hospital: Served) -> None:
    """A live answer of each, with its status and its schema; and a refusal of each."""
    document = hospital.http.get("/openapi.json").json()
    job = hospital.released("olga")
    key = hospital.post("olga", "/people/bob/keys", {"days": 1}).json()
    other = hospital.post("ann", "/releases", {"sql": COUNT, "epsilon": 1}).json()
    question = {"sql": COUNT, "epsilon": "0.5"}
    bodies: dict[str, Any] = {
        "/explain": question,
        "/preview": question,
        "/price": question,
        "/releases": question,
        "/published": question,
        "/public-values": {"table": "places", "columns": ["region", "beds"]},
        "/reservations": {"epsilon": "0.5", "until": "2099-01-01"},
        "/verify": {"certificate": job["answer"]["content"]["certificate"]},
        "/people": {"name": "zoe", "role": "analyst"},
        "/people/{name}/keys": {"days": 1},
        "/pauses": {"table": "visits", "paused": False},
        "/sign-in": {"key": hospital.keys["olga"]},
    }
    # The questions that are stopped, decided on and disabled are not those that are read.
    last = {"DELETE": 1, "GET": 0, "POST": 0}
    seen = 0
    for one in sorted(ENDPOINTS, key=lambda one: last[one.method]):
        path = re.sub(r":\w+}", "}", one.path)
        schemas = document["paths"]["/v1/{policy}" + path][one.method.lower()]["responses"]
        ids = {
            "/keys/{id}": key["id"],
            "/jobs/{id}": job["id"] if one.method == "GET" else other["id"],
        }
        filled = path.replace("{id}", ids.get(path, job["id"])).replace("{name}", "zoe")
        body = bodies.get(path, {}) if one.method == "POST" else None
        found = hospital.call("olga", one.method, filled, body)
        if found.headers["content-type"] != "application/json":
            continue  # tables, events and pages
        if found.is_success:
            seen += 1
            assert str(found.status_code) in schemas, (one, found.text)
            content = schemas[str(found.status_code)]["content"]["application/json"]
            follows(content["schema"], found.json(), document)
        else:
            assert found.status_code < 500, (one, found.text)
            follows({"$ref": "#/components/schemas/Error"}, found.json(), document)
        refused = hospital.call("dither_" + "A" * 43, one.method, filled, body)
        follows({"$ref": "#/components/schemas/Error"}, refused.json(), document)
    assert seen >= 22
