"""An MCP server over stdio whose tools have unusual schemas: references with descriptions, lists of items, variants."""
import json, sys

VARIANT = lambda name: {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}
FIND = {"type": "object", "$defs": {"Kind": {"type": "string", "enum": ["page", "picture"]}}, "properties": {
    "kind": {"$ref": "#/$defs/Kind", "description": "What to find", "default": "page"},
    "range": {"type": "array", "items": [{"type": "string"}, {"type": "number"}]},
    "limits": {"type": "array", "items": {"type": "integer"}},
    "deep": {"type": "boolean"}}}
TOOLS = [{"name": "find", "description": "Finds pages", "inputSchema": FIND},
         {"name": "attach", "description": "Attaches a file", "inputSchema": {"type": "object", "oneOf": [VARIANT("content"), VARIANT("url")]}}]

for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m:
        continue
    if m["method"] == "initialize":
        r = {"protocolVersion": m["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif m["method"] == "tools/list":
        r = {"tools": TOOLS}
    elif m["method"] == "tools/call":
        r = {"content": [{"type": "text", "text": "got " + json.dumps(m["params"].get("arguments"))}]}
    else:
        r = {}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
