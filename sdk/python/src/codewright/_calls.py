"""The calls of the server, from the table that the API document yields."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import quote

IN_QUERY = ("directory", "workspace", "location")
# Calls whose reply waits for a model or a user.
SLOW = re.compile(
    r"session\.(prompt|command|shell|summarize|init)|v2\.session\.(wait|compact)|experimental\.review\..*"
    r"|tui\.control\.next|.*\.callback|mcp\.auth\.authenticate"
)
KEYWORDS = frozenset({"global"})


class Route(NamedTuple):
    name: str
    verb: str
    url: str
    exceptions: tuple[str, ...]


class Request(NamedTuple):
    method: str
    path: str
    query: dict[str, object]
    body: object
    is_slow: bool


def python_name(name: str) -> str:
    """Returns `prompt_async` for `promptAsync`, and `global_` for `global`."""
    snake = re.sub(r"(?<=[a-z0-9])([A-Z])", lambda match: "_" + match[1].lower(), name)
    return snake + "_" if snake in KEYWORDS else snake


@cache
def routes() -> dict[str, Route]:
    from ._routes import ROUTES

    found = (line.split(" ") for line in ROUTES.strip().split("\n"))
    return {name: Route(name, verb, url, tuple(rest)) for name, verb, url, *rest in found}


@cache
def tree() -> dict[str, Any]:
    """Returns the namespaces: names of Python to namespaces or routes."""
    root: dict[str, Any] = {}
    for route in routes().values():
        *path, last = map(python_name, route.name.split("."))
        node = root
        for part in path:
            node = node.setdefault(part, {})
        node[last] = route
    return root


def place(route: Route, parameters: dict[str, Any]) -> Request:
    """Places the parameters of a call in its path, query and body."""
    values = {name: value for name, value in parameters.items() if value is not None}
    query: dict[str, object] = {}
    fields: dict[str, object] = {}
    body: object = None
    is_read = route.verb in ("GET", "SSE")

    def in_path(match: re.Match[str]) -> str:
        value = values.pop(match[1], None)
        if value is None or value == "":
            raise TypeError(f"{route.name} needs the parameter `{match[1]}`")
        return quote(str(value), safe="/" if match[1] == "path" else "")

    path = re.sub(r"\{(\w+)\}", in_path, route.url)
    for exception in route.exceptions:
        found = re.fullmatch(r"([?!=]?)(\w+)(?:>(\w+))?", exception)
        if found is None or found[2] not in values:
            continue
        mark, name, key = found[1], found[2], found[3] or found[2]
        value = values.pop(name)
        if mark == "=":
            body = value
        elif mark == "?" or (mark == "" and key in IN_QUERY):
            query[key] = value
        else:
            fields[key] = value
    for name, value in values.items():
        (query if is_read or name in IN_QUERY else fields)[name] = value
    if body is None and not is_read and fields:
        body = fields
    return Request("GET" if is_read else route.verb, path, query, body, SLOW.fullmatch(route.name) is not None)
