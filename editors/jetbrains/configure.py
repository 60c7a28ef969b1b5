#!/usr/bin/env python3
"""Adds Codewright to the agents of JetBrains IDEs, in ~/.jetbrains/acp.json.

  configure.py           print the changed file
  configure.py --write   write it; other agents in it stay

The command becomes the absolute path of `codewright`, because an IDE often has another PATH than a terminal."""
import json
import os
import pathlib
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TARGET = pathlib.Path.home() / ".jetbrains" / "acp.json"
# The largest file that is read, in bytes.
MAX_BYTES = 1 << 20


def merged(text, program):
    """Returns the configuration with the entry of Codewright."""
    config = json.loads(text) if text.strip() else {}
    if not isinstance(config, dict) or not isinstance(config.get("agent_servers", {}), dict):
        raise ValueError("it is not a configuration of agents")
    entry = json.loads((HERE / "acp.json").read_text(encoding="utf-8"))["agent_servers"]["Codewright"]
    known = config.get("agent_servers", {}).get("Codewright", {})
    # Variables that the user has set stay.
    entry |= {"command": program, "env": known.get("env", {}) if isinstance(known, dict) else {}}
    config.setdefault("agent_servers", {})["Codewright"] = entry
    return json.dumps(config, indent=2) + "\n"


def main(arguments):
    if arguments not in ([], ["--write"]):
        sys.exit(__doc__)
    program = shutil.which("codewright") or shutil.which("codewright", path=str(pathlib.Path.home() / ".cargo" / "bin"))
    if program is None:
        sys.exit("`codewright` was not found on PATH or in ~/.cargo/bin")
    if TARGET.exists() and TARGET.stat().st_size > MAX_BYTES:
        sys.exit(f"{TARGET} is larger than {MAX_BYTES >> 20} MiB")
    try:
        text = merged(TARGET.read_text(encoding="utf-8") if TARGET.exists() else "", os.path.abspath(program))
    except ValueError as error:
        sys.exit(f"{TARGET} was not changed: {error}")
    if not arguments:
        sys.stdout.write(text)
        return
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=TARGET.parent, delete=False, encoding="utf-8") as file:
        file.write(text)
    os.replace(file.name, TARGET)
    print(f"written: {TARGET}")


if __name__ == "__main__":
    main(sys.argv[1:])
