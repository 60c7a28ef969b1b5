"""Starts a server, and ends it with this process.

The server runs below a shell that holds a pipe to this process. If this process ends in any way, even killed, the pipe
closes and the shell ends the server.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any, Self

from ._http import CodewrightError

# Seconds that the server has to end after a request. Running turns get three seconds.
GRACE = 6.0
# Characters of the output that an error repeats.
OUTPUT = 4000
# The file descriptor 3 of the shell is the pipe to this process.
GUARD = """exec 3<&0
"$0" "$@" 3<&- </dev/null & server=$!
(exec <&3 3<&- >/dev/null 2>&1; while read -r _; do :; done; kill -TERM "$server") & watcher=$!
exec 3<&-
trap 'kill -TERM "$server" 2>/dev/null' TERM INT HUP
while wait "$server"; code=$?; kill -0 "$server" 2>/dev/null; do :; done
kill "$watcher" 2>/dev/null
exit "$code\""""


class Server:
    """A running server. It ends with `close`, at the end of a `with` block, and with this process."""

    def __init__(self, process: subprocess.Popen[bytes], url: str, password: str) -> None:
        self._process = process
        self.url = url
        self.password = password

    def close(self) -> None:
        """Ends the server and waits for it."""
        end(self._process)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def start_server(
    *,
    directory: str | os.PathLike[str] | None = None,
    hostname: str = "127.0.0.1",
    port: int = 0,
    timeout: float = 15.0,
    config: Mapping[str, Any] | None = None,
    program: str | None = None,
    password: str | None = None,
    env: Mapping[str, str] | None = None,
    args: Iterable[str] = (),
) -> Server:
    """Starts `codewright serve` on a free port with a random password, and returns when it is ready.

    The program is that of the variable `CODEWRIGHT_BIN`, or `codewright` on the `PATH`.
    """
    program = program or os.environ.get("CODEWRIGHT_BIN") or "codewright"
    password = password if password is not None else secrets.token_urlsafe(24)
    variables = {**os.environ, **(env or {}), "OPENCODE_SERVER_PASSWORD": password, "OPENCODE_SERVER_USERNAME": "opencode"}
    if config is not None:
        variables["OPENCODE_CONFIG_CONTENT"] = json.dumps(config)
    process = subprocess.Popen(
        ["/bin/sh", "-c", GUARD, program, "serve", f"--hostname={hostname}", f"--port={port}", *args],
        cwd=directory,
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        # A group of its own, so that a server that does not end can be killed with its children.
        start_new_session=True,
    )
    try:
        url = wait_until_ready(process, program, timeout)
    except BaseException:
        end(process)
        drain(process)
        raise
    threading.Thread(target=drain, args=(process,), daemon=True).start()
    return Server(process, url, password)


def wait_until_ready(process: subprocess.Popen[bytes], program: str, timeout: float) -> str:
    """Waits for the line with the address."""
    assert process.stdout is not None
    deadline = time.monotonic() + timeout
    output = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise CodewrightError(f"`{program} serve` was not ready after {timeout:g} s:\n{text(output)}")
            if not selector.select(left):
                continue
            chunk = os.read(process.stdout.fileno(), 65536)
            if not chunk:
                code = process.wait(timeout=GRACE)
                missing = "; install it, or name it with `program` or CODEWRIGHT_BIN" if code == 127 else ""
                raise CodewrightError(f"`{program} serve` ended with {code}{missing}:\n{text(output)}")
            output = (output + chunk)[-OUTPUT:]
            found = re.search(rb"listening on (https?://\S+)\s", output)
            if found is not None:
                return found[1].decode()


def text(output: bytes) -> str:
    return output.decode("utf-8", "replace").strip()


def drain(process: subprocess.Popen[bytes]) -> None:
    """Keeps the pipe of the server empty until it has ended."""
    assert process.stdout is not None
    with process.stdout:
        while process.stdout.read(65536):
            pass


def end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout=GRACE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=GRACE)
    if process.stdin is not None:
        process.stdin.close()
