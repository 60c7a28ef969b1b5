#!/usr/bin/env python3
"""Gives codewright a prompt and prints a summary: the answer, the changed files and the cost.

    summary.py PROMPT…
"""
import json
import subprocess
import sys

command = ["codewright", "run", "--format", "json", *sys.argv[1:]]
process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

answer, files, cost, failed = "", [], 0.0, False
for line in process.stdout:
    event = json.loads(line)
    part = event.get("part", {})
    if event["type"] == "text":
        answer = part["text"]
    elif event["type"] == "tool_use" and part["tool"] in ("edit", "write"):
        if part["state"]["status"] == "completed":
            files.append(part["state"]["input"]["filePath"])
    elif event["type"] == "step_finish":
        cost += part["cost"]
    elif event["type"] == "error":
        failed = True
        print("error:", event["error"]["data"].get("message", event["error"]["name"]), file=sys.stderr)

code = process.wait()
print(answer.strip())
print("changed:", ", ".join(sorted(set(files))) or "nothing")
print(f"cost: ${cost:.4f}")
sys.exit(1 if failed else code)
