"""Notifies when a session needs you: a permission request, a question, an error, or the end of a long turn.

    notifier.py [--url http://localhost:4096] [--seconds 30] [COMMAND…]

The COMMAND receives the title and the text as its last arguments; the default is `notify-send`. The password comes from
CODEWRIGHT_SERVER_PASSWORD. All directories of the server are followed.
"""

import argparse
import os
import subprocess
import sys
import time

import codewright


class Notifier:
    def __init__(self, command, seconds):
        self.command = command
        self.seconds = seconds
        self.titles = {}
        self.started = {}

    def notify(self, session, text):
        title = self.titles.get(session, "Codewright")
        # A list, not a shell command: titles and texts are not trusted. `--` ends the options of notify-send.
        subprocess.run([*self.command, title, text[:500]], timeout=10, check=False)

    def handle(self, event):
        kind, properties = event["type"], event.get("properties", {})
        session = properties.get("sessionID")
        if kind in ("session.created", "session.updated"):
            self.titles[properties["info"]["id"]] = properties["info"]["title"]
        elif kind == "session.deleted":
            self.titles.pop(properties["info"]["id"], None)
        elif kind == "session.status" and properties["status"]["type"] == "busy":
            self.started.setdefault(session, time.monotonic())
        elif kind == "session.idle":
            elapsed = time.monotonic() - self.started.pop(session, time.monotonic())
            if elapsed >= self.seconds:
                self.notify(session, f"Finished after {elapsed:.0f} s")
        elif kind == "permission.asked":
            self.notify(session, f"Asks for permission: {properties['permission']} {' '.join(properties['patterns'])}")
        elif kind == "question.asked":
            self.notify(session, properties["questions"][0]["question"])
        elif kind == "session.error":
            error = properties.get("error") or {}
            # The user knows of an abort.
            if error.get("name") != "MessageAbortedError":
                self.notify(session, f"Failed: {error.get('data', {}).get('message', error.get('name'))}")


def main():
    parser = argparse.ArgumentParser(description="Notify when a session needs you")
    parser.add_argument("--url", default="http://localhost:4096")
    parser.add_argument("--seconds", type=float, default=30.0, help="the length of a turn whose end is worth a notification")
    parser.add_argument("command", nargs="*", default=["notify-send", "--"])
    options = parser.parse_args()
    client = codewright.Client(options.url, password=os.environ.get("CODEWRIGHT_SERVER_PASSWORD"))
    notifier = Notifier(options.command, options.seconds)
    try:
        for event in client.global_.event():
            notifier.handle(event["payload"])
    except codewright.CodewrightError as error:
        sys.exit(f"notifier: {error}")
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
