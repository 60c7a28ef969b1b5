"""Drives a client through calls.json and prints a line `[status, body]` for each call.

    drive.py sync | async | http

`http` uses no package: it places parameters by the API document and speaks HTTP with the standard library.
"""

import asyncio
import base64
import http.client
import json
import os
import re
import subprocess
import sys
import urllib.parse
from pathlib import Path

HERE = Path(__file__).parent
DIRECTORY = os.environ["CODEWRIGHT_STAGE"]
CALLS = json.loads((HERE / "calls.json").read_text())


def fill(value, saved):
    if isinstance(value, str):
        return saved[value[1:]] if value.startswith("$") else value
    if isinstance(value, list):
        return [fill(item, saved) for item in value]
    if isinstance(value, dict):
        return {key: fill(item, saved) for key, item in value.items()}
    return value


def pick(value, path):
    for key in path.split("."):
        value = value[int(key)] if isinstance(value, list) else value[key]
    return value


def plain(body):
    return body.decode() if isinstance(body, bytes) else body


def write(entry, status, body, saved):
    for name, path in entry.get("save", {}).items():
        saved[name] = pick(body, path)
    print(json.dumps([status, plain(body)]), flush=True)


def sync():
    import codewright

    saved = {"directory": DIRECTORY}
    with codewright.start(directory=DIRECTORY) as client:
        for entry in CALLS:
            status = 200
            try:
                if "turn" in entry:
                    body = [event["type"] for event in client.turn(**fill(entry["turn"], saved))]
                else:
                    body = client.call(entry["call"], **fill(entry.get("params", {}), saved))
            except codewright.CodewrightError as error:
                status, body = error.status, error.body
            write(entry, status, body, saved)


async def run_async():
    import codewright

    saved = {"directory": DIRECTORY}
    async with codewright.start_async(directory=DIRECTORY) as client:
        for entry in CALLS:
            status = 200
            try:
                if "turn" in entry:
                    body = [event["type"] async for event in client.turn(**fill(entry["turn"], saved))]
                else:
                    body = await client.call(entry["call"], **fill(entry.get("params", {}), saved))
            except codewright.CodewrightError as error:
                status, body = error.status, error.body
            write(entry, status, body, saved)


class Http:
    """The server without a package."""

    def __init__(self):
        document = json.loads((HERE / "../api/openapi.json").read_text())
        self.operations = {
            operation["operationId"]: (method.upper(), path, operation)
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
        }
        command = [os.environ["CODEWRIGHT_BIN"], "serve", "--port=0"]
        variables = {**os.environ, "OPENCODE_SERVER_PASSWORD": "p"}
        self.server = subprocess.Popen(command, cwd=DIRECTORY, env=variables, stdout=subprocess.PIPE)
        line = self.server.stdout.readline().decode()
        self.address = re.search(r"http://(\S+)", line)[1]
        self.headers = {
            "authorization": "Basic " + base64.b64encode(b"opencode:p").decode(),
            "x-opencode-directory": urllib.parse.quote(DIRECTORY, safe=""),
        }

    def open(self, method, path, body=None):
        connection = http.client.HTTPConnection(self.address, timeout=60)
        content = None if body is None else json.dumps(body)
        headers = self.headers if body is None else {**self.headers, "content-type": "application/json"}
        connection.request(method, path, content, headers)
        return connection.getresponse()

    def call(self, name, params):
        method, path, operation = self.operations[name]
        places = {parameter["name"]: parameter["in"] for parameter in operation["parameters"]}
        query, fields = [], {}
        for key, value in params.items():
            if places.get(key) == "path":
                path = path.replace(f"{{{key}}}", urllib.parse.quote(value, safe="/" if key == "path" else ""))
            elif places.get(key) == "query":
                pairs = [(f"{key}[{inner}]", item) for inner, item in value.items()] if isinstance(value, dict) else [(key, value)]
                query += pairs
            else:
                fields[key] = value
        schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
        body = next(iter(fields.values())) if "$ref" in schema else fields or None
        reply = self.open(method, path + ("?" + urllib.parse.urlencode(query) if query else ""), body)
        text = reply.read().decode()
        if "json" in reply.headers.get("content-type", "") or not text:
            return reply.status, json.loads(text or "{}")
        return reply.status, text

    def turn(self, params):
        session = params["sessionID"]
        stream = self.open("GET", f"/event?sessionID={session}")
        types = []
        for line in stream:
            if not line.startswith(b"data: "):
                continue
            event = json.loads(line[6:])
            if event["type"] == "server.connected":
                self.call("session.prompt_async", params)
                continue
            types.append(event["type"])
            if event["type"] == "session.idle":
                return types
        raise RuntimeError("the stream ended")


def plain_http():
    saved = {"directory": DIRECTORY}
    server = Http()
    try:
        for entry in CALLS:
            if "turn" in entry:
                status, body = 200, server.turn(fill(entry["turn"], saved))
            else:
                status, body = server.call(entry.get("id", entry["call"]), fill(entry.get("params", {}), saved))
            write(entry, status, body, saved)
    finally:
        server.server.terminate()
        server.server.wait(timeout=10)


if __name__ == "__main__":
    {"sync": sync, "async": lambda: asyncio.run(run_async()), "http": plain_http}[sys.argv[1]]()
