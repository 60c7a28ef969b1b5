"""Generates the types and calls of the package from `../api/openapi.json` and `../api/routes.txt`.

Needs node and `datamodel-code-generator` 0.89.0, which writes `types.py`. The stubs of the calls, `_sync.pyi` and
`_async.pyi`, are written here, because generators write clients with requests of their own.
"""

import hashlib
import json
import keyword
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PACKAGE = HERE / "src" / "codewright"
sys.path.insert(0, str(HERE / "src"))

from codewright._calls import IN_QUERY, python_name  # noqa: E402

GENERATOR = [
    sys.executable, "-m", "datamodel_code_generator", "--input-file-type", "openapi", "--openapi-scopes", "schemas",
    "--output-model-type", "typing.TypedDict", "--target-python-version", "3.11", "--enum-field-as-literal", "all",
    "--use-standard-collections", "--use-union-operator", "--disable-timestamp", "--use-double-quotes",
    "--formatters", "builtin", "--naming-strategy", "parent-prefixed",
]


def pascal(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[._-]", name))


class Types:
    """Expressions of types. Objects without a name get one, so that the generator writes them."""

    def __init__(self, document: dict) -> None:
        self.schemas = document["components"]["schemas"]
        self.names: dict[str, str] = {}

    def of(self, schema: dict, name: str) -> str:
        if "$ref" in schema:
            return "types." + self.class_name(schema["$ref"].rpartition("/")[2])
        for key in ("anyOf", "oneOf"):
            if key in schema:
                options = [self.of(option, f"{name}{index or ''}") for index, option in enumerate(schema[key])]
                return " | ".join(dict.fromkeys(options))
        if "enum" in schema:
            return f"Literal[{', '.join(json.dumps(value) for value in schema['enum'])}]"
        match schema.get("type"):
            case "string":
                return "str"
            case "integer":
                return "int"
            case "number":
                return "float"
            case "boolean":
                return "bool"
            case "null":
                return "None"
            case "array":
                return f"builtins.list[{self.of(schema.get('items', {}), name + 'Item')}]"
            case "object" if schema.get("properties"):
                self.schemas[name] = schema
                return f"types.{self.class_name(name)}"
            case "object":
                values = schema.get("additionalProperties")
                return f"dict[str, {self.of(values, name + 'Value') if isinstance(values, dict) else 'Any'}]"
        return "Any"

    def class_name(self, name: str) -> str:
        return self.names.setdefault(name, name[:1].upper() + name[1:])


def parameters(route: list[str], operation: dict, types: Types) -> list[str]:
    """Returns the parameters of a call, the required ones first."""
    name, _, _, *exceptions = route
    required: list[str] = []
    optional: list[str] = []
    renamed = {}
    for exception in exceptions:
        mark, parameter, key = re.fullmatch(r"([?!=]?)([\w-]+)(?:>(\w+))?", exception).groups()
        renamed[("body" if mark in ("!", "=") else "query", key or parameter)] = parameter

    def add(place: str, key: str, schema: dict, is_required: bool) -> None:
        parameter = renamed.get((place, key), key)
        if keyword.iskeyword(parameter) or not parameter.isidentifier():
            return
        text = types.of(schema, pascal(name) + pascal(parameter))
        if is_required:
            required.append(f"{parameter}: {text}")
        else:
            optional.append(f"{parameter}: {text}{'' if text.endswith('None') else ' | None'} = None")

    for parameter in operation["parameters"]:
        add("query", parameter["name"], parameter["schema"], parameter["in"] == "path")
    body = operation.get("requestBody")
    if body is not None:
        schema = body["content"]["application/json"]["schema"]
        whole = [exception[1:] for exception in exceptions if exception.startswith("=")]
        if whole:
            add("body", whole[0], schema, True)
        else:
            for key, inner in schema.get("properties", {}).items():
                add("body", key, inner, key in schema.get("required", []))
    return [*required, *optional]


def result(name: str, operation: dict, types: Types) -> str:
    replies = [reply for status, reply in operation["responses"].items() if status.startswith("2")]
    content = replies[0].get("content", {}) if replies else {}
    for kind, value in content.items():
        if "json" in kind or kind == "text/event-stream":
            return types.of(value["schema"], pascal(name) + "Result")
        return "str" if kind.startswith("text/") else "bytes"
    return "dict[str, Any]"


def stubs(routes: list[list[str]], operations: dict, types: Types, is_async: bool) -> str:
    tree: dict = {}
    for route in routes:
        *path, last = map(python_name, route[0].split("."))
        node = tree
        for part in path:
            node = node.setdefault(part, {})
        node[last] = route
    classes: list[str] = []

    def write(node: dict, name: str) -> str:
        lines = []
        for key, value in node.items():
            if isinstance(value, dict):
                inner = write(value, f"{'' if name == 'Calls' else name}{pascal(key)}")
                lines.append(f"    @property\n    def {key}(self) -> {inner}: ...")
                continue
            route_name, verb, url = value[:3]
            operation = operations[verb.replace("SSE", "GET"), url]
            given = parameters(value, operation, types)
            returned = result(route_name, operation, types)
            if verb == "SSE":
                returned = f"AsyncIterator[{returned}]" if is_async else f"Iterator[{returned}]"
            prefix = "async def" if is_async and verb != "SSE" else "def"
            arguments = ", ".join(["self", *(["*"] if given else []), *given])
            lines.append(f"    {prefix} {key}({arguments}) -> {returned}: ...")
        classes.append(f"class {name}:\n" + "\n".join(lines) + "\n")
        return name

    write(tree, "Calls")
    iterator = "AsyncIterator" if is_async else "Iterator"
    head = f"# Generated by generate.py.\nimport builtins\nfrom collections.abc import {iterator}\nfrom typing import Any, Literal\n\nfrom . import types\n\n"
    return head + "\n".join(classes)


def open_objects(value: Any) -> Any:
    """Later versions of the server may add properties, so no object is closed."""
    if isinstance(value, dict):
        closed = "additionalProperties" if value.get("properties") or value.get("additionalProperties") is False else None
        return {key: open_objects(inner) for key, inner in value.items() if key != closed}
    return [open_objects(inner) for inner in value] if isinstance(value, list) else value


def main() -> None:
    source = subprocess.run(["node", HERE.parent / "api" / "print.mjs"], check=True, capture_output=True).stdout
    digest = hashlib.sha256(source).hexdigest()
    document = open_objects(json.loads(source))
    table = (HERE.parent / "api" / "routes.txt").read_text()
    routes = [line.split(" ") for line in table.splitlines()]
    operations = {(method.upper(), path): value for path, methods in document["paths"].items() for method, value in methods.items()}
    types = Types(document)
    (PACKAGE / "_routes.py").write_text(f'"""The table of calls. Generated by generate.py."""\n\nROUTES = """\n{table}"""\n')
    (PACKAGE / "_sync.pyi").write_text(stubs(routes, operations, types, False))
    (PACKAGE / "_async.pyi").write_text(stubs(routes, operations, types, True))
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory) / "openapi.json"
        source.write_text(json.dumps({**document, "paths": {}}))
        # `.ci/sdk` compares the digest with the document.
        header = f'"""The types of the API. Generated by generate.py.\n\nDocument: {digest}\n"""'
        output = Path(directory) / "types.py"
        subprocess.run([*GENERATOR, "--input", source, "--output", output, "--custom-file-header", header], check=True, timeout=120)
        (PACKAGE / "types.py").write_text(output.read_text())


if __name__ == "__main__":
    main()
