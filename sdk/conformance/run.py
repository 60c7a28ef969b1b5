"""Plays calls.json with each client on a stage of its own, and compares the results.

    run.py            plays all clients: plain HTTP, TypeScript, Python, Python with asyncio
    run.py --show     also prints the normalized results of the first client

A call must have the status that calls.json expects (200 if none is named), and the same normalized result as with plain
HTTP. Exit with 1 if one has not, and with 77 if a program is missing.
"""

import difflib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
CALLS = json.loads((HERE / "calls.json").read_text())
CLIENTS = {
    "http": ["python3", HERE / "drive.py", "http"],
    "typescript": ["node", HERE / "drive.mjs"],
    "python": ["python3", HERE / "drive.py", "sync"],
    "python, async": ["python3", HERE / "drive.py", "async"],
}
# Events whose number depends on the time that something takes.
CASUAL = {"message.part.delta", "session.updated", "session.diff", "session.status", "file.watcher.updated", "server.heartbeat"}
# Values that differ between two runs.
RANDOM = {"slug", "hash", "snapshot", "pid", "fingerprint", "callID", "cursor", "next", "previous", "version", "shell"}


def play(command):
    variables = {**os.environ, "CODEWRIGHT_STAGE_SCRIPT": str(HERE / "script.json")}
    variables["PYTHONPATH"] = os.environ.get("CODEWRIGHT_PYTHON") or str(ROOT / "sdk/python/src")
    shown = ["sh", "-c", 'echo "$CODEWRIGHT_STAGE"; exec "$@"', "stage", *map(str, command)]
    done = subprocess.run([ROOT / "editors/test/stage.sh", *shown], env=variables, capture_output=True, text=True, timeout=120)
    if done.returncode == 77:
        print(done.stdout.strip())
        sys.exit(77)
    directory, *lines = done.stdout.splitlines()
    results = [json.loads(line) for line in lines]
    if done.returncode != 0 or len(results) != len(CALLS):
        print(done.stderr[-3000:], file=sys.stderr)
        raise SystemExit(f"failed: {len(results)} of {len(CALLS)} calls, exit code {done.returncode}")
    stage = os.path.dirname(directory)
    return [[status, normalize(body, stage)] for status, body in results]


def normalize(value, stage, key=""):
    if isinstance(value, dict):
        return {text(name, stage): normalize(inner, stage, name) for name, inner in sorted(value.items())}
    if isinstance(value, list):
        if value and all(isinstance(item, str) and re.fullmatch(r"[a-z]+(\.[a-z]+)+", item) for item in value):
            value = [item for item in value if item not in CASUAL]
            return [item for index, item in enumerate(value) if index == 0 or value[index - 1] != item]
        return [normalize(inner, stage, key) for inner in value]
    if key in RANDOM:
        return "<random>"
    if isinstance(value, str):
        return text(value, stage)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 1e11:
        return "<time>"
    return value


def text(value, stage):
    value = value.replace(stage, "<stage>")
    value = re.sub(r"\b(ses|msg|prt|evt|per|que|pty|call|toolu|req|wrk|event)_[A-Za-z0-9]+", r"<\1>", value)
    value = re.sub(r"\b[0-9a-f]{40,64}\b", "<digest>", value)
    value = re.sub(r"127\.0\.0\.1:\d+", "<address>", value)
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "<time>", value)


def difference(one, other):
    """Returns the lines that differ."""
    texts = [json.dumps(value, indent=1, ensure_ascii=False).splitlines() for value in (one, other)]
    return [f"    {line}" for line in difflib.unified_diff(*texts, lineterm="", n=0)][2:42]


def main():
    expected = None
    faults = 0
    for name, command in CLIENTS.items():
        results = play(command)
        if expected is None:
            expected = results
            if "--show" in sys.argv:
                for entry, result in zip(CALLS, results):
                    print(entry.get("call", "turn"), json.dumps(result)[:400])
        for entry, (status, body), (usual, reference) in zip(CALLS, results, expected):
            wanted = entry.get("status", 200)
            # The Python package does not show the status of success.
            if status != wanted and not (status == 204 and wanted == 200):
                print(f"{name}: {json.dumps(entry)}\n  returned {status}, not {wanted}: {json.dumps(body)[:500]}")
                faults += 1
            elif body != reference or (name == "typescript" and status != usual):
                print(f"{name}: {json.dumps(entry)}\n  {status} differs from plain HTTP, {usual}:")
                print(*difference(reference, body), sep="\n")
                faults += 1
    print(f"{len(CALLS)} calls with {len(CLIENTS)} clients: {faults} differences")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
