"""The OpenAPI document, made of the endpoints."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from dither import __version__
from dither.service._endpoints import Endpoint
from dither.service.access._roles import Role

__all__ = ["openapi"]

ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["kind", "message"],
            "properties": {"kind": {"type": "string"}, "message": {"type": "string"}},
        }
    },
}


def openapi(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """The document, of version 3.1."""
    paths: dict[str, dict[str, Any]] = {}
    for one in endpoints:
        path = re.sub(r":\w+}", "}", one.path)
        paths.setdefault(f"/v1/{{policy}}{path}", {})[one.method.lower()] = _operation(one)
    return {
        "openapi": "3.1.0",
        "info": {"title": "dither", "version": __version__},
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Error": ERROR},
        },
    }


def _operation(one: Endpoint) -> dict[str, Any]:
    names = ["policy", *re.findall(r"{(\w+)(?::\w+)?}", one.path)]
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in names
    ]
    found: dict[str, Any] = {
        "summary": one.about,
        "x-roles": sorted(role.value for role in one.roles),
        "security": [] if Role.PUBLIC in one.roles else [{"key": []}],
        "responses": {
            str(one.status): {
                "description": "what was asked for",
                "content": {"application/json": {"schema": dict(one.gives)}},
            },
            "default": {
                "description": "a refusal",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
            },
        },
    }
    if one.method in ("GET", "DELETE"):
        parameters += [
            {"name": name, "in": "query", "required": part.required, "schema": part.schema()}
            for name, part in one.takes.items()
        ]
    elif one.takes:
        body = {
            "type": "object",
            "additionalProperties": False,
            "properties": {name: part.schema() for name, part in one.takes.items()},
            "required": [name for name, part in one.takes.items() if part.required],
        }
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    return found | {"parameters": parameters}
