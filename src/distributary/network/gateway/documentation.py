"""The document of the interface: what cannot be told from the routes, and a page to read it."""

from __future__ import annotations

import html
from typing import Any

from distributary.network.gateway.subscribing import IGNORED_FIELDS

__all__ = ["completed", "page"]

_SECURITY = {"token": {"type": "http", "scheme": "bearer"}}
_PUBLIC = ("/health", "/ready", "/login")
_WITHOUT_BODY = frozenset(("204", "303"))
_ANY = {"schema": {"type": "string", "format": "binary"}}
_EVENT = {
    "type": "object",
    "required": ["specversion", "id", "source", "type"],
    "properties": {
        "specversion": {"type": "string", "enum": ["1.0"]},
        "id": {"type": "string", "minLength": 1},
        "source": {"type": "string", "minLength": 1},
        "type": {"type": "string", "minLength": 1},
        "datacontenttype": {"type": "string"},
        "dataref": {"type": "string", "description": "/content/DIGEST of what was put before."},
        "data": {},
        "data_base64": {"type": "string"},
    },
    "additionalProperties": True,
}
_OBJECT = {
    "type": "object",
    "required": ["source", "subject", "type"],
    "properties": {name: {"type": "string"} for name in ("source", "subject", "type")},
}
_SUBSCRIPTION = {
    "type": "object",
    "properties": {
        "filters": {
            "type": "array",
            "items": {"type": "object"},
            "description": "All must hold; an empty list asks for everything.",
        },
        "types": {"type": "array", "items": {"type": "string"}},
        "source": {"type": "string"},
        "config": {
            "type": "object",
            "description": "`expires`, `queue_bytes`, `queue_s`.",
            "properties": {
                "expires": {"type": ["string", "number"]},
                "queue_bytes": {"type": "integer", "exclusiveMinimum": 0},
                "queue_s": {"type": "number", "exclusiveMinimum": 0},
            },
            "additionalProperties": False,
        },
        "profile": {
            "type": "object",
            "description": "What a device can use: `accept`, `screen`, `bandwidth_kbps`.",
        },
        "tolerance": {
            "type": "object",
            "description": "How far a copy may be off: `value`, `divergence`, `amount`.",
        },
        **{name: {"description": "Is not looked at."} for name in IGNORED_FIELDS},
    },
    "additionalProperties": False,
}
_JSON = "application/json"
_SUBSCRIPTION_BODY = {_JSON: {"schema": _SUBSCRIPTION}}
_BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("/events", "post"): {
        "application/cloudevents+json": {"schema": _EVENT},
        "application/cloudevents-batch+json": {"schema": {"type": "array", "items": _EVENT}},
        "*/*": _ANY,
    },
    ("/objects", "put"): {
        _JSON: {"schema": {"oneOf": [_OBJECT, {"type": "array", "items": _OBJECT}]}}
    },
    ("/content/{digest}", "put"): {"*/*": _ANY},
    ("/subscriptions", "post"): _SUBSCRIPTION_BODY,
    ("/subscriptions/{name}", "put"): _SUBSCRIPTION_BODY,
    ("/subscriptions/{name}", "patch"): {"application/merge-patch+json": {"schema": _SUBSCRIPTION}},
}


def completed(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with the bodies that routes read themselves, and who may ask."""
    document.setdefault("components", {})["securitySchemes"] = _SECURITY
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            body = _BODIES.get((path, method))
            if body is not None:
                operation["requestBody"] = {"required": True, "content": body}
            if not path.startswith(_PUBLIC):
                operation["security"] = [{"token": []}]
            for status in _WITHOUT_BODY & operation["responses"].keys():
                operation["responses"][status].pop("content", None)
    return document


_HEAD = """<!doctype html><html lang="en"><meta charset="utf-8"><title>distributary</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>
body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem}
code,b{font-family:ui-monospace,monospace}summary{cursor:pointer;padding:.3rem 0}
details{border-top:1px solid #8886}table{border-collapse:collapse}td{padding:.1rem 1rem .1rem 0;
vertical-align:top}@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}}</style>
"""


def page(document: dict[str, Any]) -> str:
    """Return the document as a page that needs neither scripts nor anybody else's machine."""
    info = document["info"]
    parts = [_HEAD, f"<h1>{_escaped(info['title'])} {_escaped(info['version'])}</h1>"]
    parts.append(
        "<p>Send <code>Authorization: Bearer TOKEN</code>. For programs: "
        '<a href="/openapi.json">/openapi.json</a>. WebSockets with the subprotocol '
        "<code>cloudevents.json</code>: <code>/publish</code> and "
        "<code>/subscriptions/{name}/events</code>.</p>"
    )
    for path, operations in sorted(document["paths"].items()):
        parts += [_operation(path, method, one) for method, one in operations.items()]
    return "".join(parts)


def _operation(path: str, method: str, operation: dict[str, Any]) -> str:
    rows = [
        (f"{one['name']} ({one['in']})", one.get("description", ""))
        for one in operation.get("parameters", ())
    ]
    rows += [("body", kind) for kind in operation.get("requestBody", {}).get("content", {})]
    rows += [(code, one["description"]) for code, one in sorted(operation["responses"].items())]
    table = "".join(
        f"<tr><td><code>{_escaped(name)}</code><td>{_escaped(text)}" for name, text in rows
    )
    return (
        f"<details><summary><b>{method.upper()}</b> <code>{_escaped(path)}</code> "
        f"{_escaped(operation.get('summary', ''))}</summary>"
        f"<p>{_escaped(operation.get('description') or '')}</p><table>{table}</table></details>"
    )


def _escaped(text: object) -> str:
    return html.escape(str(text))
