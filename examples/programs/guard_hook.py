"""A hook that guards a repository: no commits on main, no edits of migrations that exist, no writing of lock files.

Add it to your configuration (`~/.config/codewright/codewright.json`):

    { "hooks": { "PreToolUse": [
      { "matcher": "Bash|Edit|Write", "hooks": [{ "type": "command", "command": "python3 ~/hooks/guard_hook.py" }] }
    ] } }

A hook reads the call as JSON. Exit code 2 refuses it, and the model reads the reason from standard error.
"""

import json
import os
import re
import subprocess
import sys

LOCK_FILES = {"Cargo.lock", "package-lock.json", "poetry.lock", "yarn.lock"}


def branch(directory):
    command = ["git", "-C", directory, "branch", "--show-current"]
    return subprocess.run(command, capture_output=True, text=True, timeout=5).stdout.strip()


def problem(call):
    """Returns why a call is refused, or `None`."""
    tool, arguments = call["tool_name"].lower(), call["tool_input"]
    if tool == "bash":
        is_commit = re.search(r"\bgit\b.*\bcommit\b", arguments.get("command", ""))
        if is_commit and branch(call["cwd"]) in ("main", "master"):
            return "Do not commit on main. Create a branch first: git switch -c NAME"
        return None
    path = os.path.join(call["cwd"], arguments.get("file_path") or arguments.get("filePath") or "")
    if os.path.basename(path) in LOCK_FILES:
        return f"Do not write {os.path.basename(path)}. Run the package manager instead."
    if "/migrations/" in path and os.path.exists(path):
        return "Migrations that exist are never changed. Add a new one."
    return None


if __name__ == "__main__":
    reason = problem(json.load(sys.stdin))
    if reason is not None:
        print(reason, file=sys.stderr)
        sys.exit(2)
