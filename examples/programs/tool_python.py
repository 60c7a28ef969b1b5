"""A tool in Python: an MCP server over standard input and output, without a package.

Add it to `opencode.json` of a project; the model then has the tool `clock_convert`:

    { "mcp": { "clock": { "type": "local", "command": ["python3", "/path/to/tool_python.py"] } } }
"""

import json
import sys
from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

TOOL = {
    "name": "convert",
    "description": "Converts a time of one time zone to another",
    "inputSchema": {
        "type": "object",
        "properties": {
            "time": {"type": "string", "description": "ISO 8601, such as 2026-03-01T12:00"},
            "from": {"type": "string", "description": "Such as Europe/Berlin"},
            "to": {"type": "string"},
        },
        "required": ["time", "from", "to"],
    },
}


def convert(arguments):
    try:
        start = datetime.fromisoformat(arguments["time"]).replace(tzinfo=ZoneInfo(arguments["from"]))
        return start.astimezone(ZoneInfo(arguments["to"])).isoformat()
    except ZoneInfoNotFoundError as error:
        raise ValueError(f"unknown time zone: {error}") from error
    except KeyError as error:
        raise ValueError(f"the argument {error} is missing") from error


def answer(method, params):
    if method == "initialize":
        version = params.get("protocolVersion", "2025-06-18")
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "clock", "version": "1"}}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call" and params.get("name") == TOOL["name"]:
        try:
            return {"content": [{"type": "text", "text": convert(params.get("arguments", {}))}]}
        except ValueError as error:
            return {"content": [{"type": "text", "text": str(error)}], "isError": True}
    return {} if method == "ping" else None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = answer(message.get("method"), message.get("params", {}))
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    if result is None:
        reply["error"] = {"code": -32601, "message": f"unknown: {message.get('method')}"}
    else:
        reply["result"] = result
    print(json.dumps(reply), flush=True)
