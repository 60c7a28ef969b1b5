"""A scripted agent of the Agent Client Protocol. It does what the last line of a prompt says.

Arguments: a file that gets one line for each start, and words that change how it starts.
"""

import json
import os
import sys
import time

LOG = sys.argv[1] if len(sys.argv) > 1 else None
WORDS = sys.argv[2:]
MODES = {"currentModeId": "a", "availableModes": [{"id": "a", "name": "A"}, {"id": "b", "name": "B"}]}


def log(text):
    if LOG:
        with open(LOG, "a") as file:
            file.write(text + "\n")


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def read():
    line = sys.stdin.readline()
    if not line:
        log("input ended")
        sys.exit(0)
    return json.loads(line)


class Agent:
    def __init__(self):
        self.next = 0
        self.cancelled = set()
        self.cwd = {}

    def request(self, method, params):
        """Sends a request and waits for its answer. Notes cancelled prompts in the meantime."""
        self.next += 1
        id = f"agent-{self.next}"
        send({"id": id, "method": method, "params": params})
        while True:
            message = read()
            if message.get("method") == "session/cancel":
                self.cancelled.add(message["params"]["sessionId"])
            elif message.get("id") == id:
                return message

    def update(self, session, name, **fields):
        send({"method": "session/update",
              "params": {"sessionId": session, "update": {"sessionUpdate": name, **fields}}})

    def say(self, session, text, name="agent_message_chunk"):
        self.update(session, name, content={"type": "text", "text": text})

    def run(self):
        while True:
            message = read()
            method, id, params = message.get("method"), message.get("id"), message.get("params", {})
            if method == "initialize":
                log("start " + json.dumps(params["clientCapabilities"]))
                if "die" in WORDS:
                    sys.stderr.write("no key\x1b[31m here\n")
                    sys.exit(3)
                if "hang" in WORDS:
                    time.sleep(600)
                able = {"promptCapabilities": {"image": True}}
                if "load" in WORDS:
                    able["loadSession"] = True
                if "resume" in WORDS or "lost" in WORDS:
                    able["sessionCapabilities"] = {"resume": {}}
                if "http" in WORDS:
                    able["mcpCapabilities"] = {"http": True}
                version = 99 if "version" in WORDS else 1
                send({"id": id, "result": {"protocolVersion": version, "agentCapabilities": able, "authMethods":
                                           [{"id": "x", "name": "Sign in to X"}]}})
            elif method == "session/new":
                if "auth" in WORDS:
                    send({"id": id, "error": {"code": -32000, "message": "Authentication required"}})
                    continue
                session = f"s{len(self.cwd) + 1}"
                self.cwd[session] = params["cwd"]
                log("servers " + json.dumps(params.get("mcpServers", []), sort_keys=True))
                send({"id": id, "result": {"sessionId": session, "modes": MODES}})
            elif method in ("session/load", "session/resume"):
                log(method + " " + params["sessionId"] + " " + json.dumps(params.get("mcpServers", []), sort_keys=True))
                if "lost" in WORDS:
                    send({"id": id, "error": {"code": -32002, "message": "Session not found\x1b[2J"}})
                    continue
                self.cwd[params["sessionId"]] = params["cwd"]
                if method == "session/load":
                    self.say(params["sessionId"], "REPLAYED")
                send({"id": id, "result": {"modes": MODES}})
            elif method == "session/set_mode":
                log("mode " + params["modeId"])
                send({"id": id, "result": {}})
            elif method == "session/prompt":
                send({"id": id, "result": {"stopReason": self.prompt(params)}})
            elif method == "session/cancel":
                pass
            elif id is not None:
                send({"id": id, "error": {"code": -32601, "message": "no such method"}})

    def prompt(self, params):
        session = params["sessionId"]
        self.cancelled.discard(session)
        texts = [block["text"] for block in params["prompt"] if block["type"] == "text"]
        log("prompt " + json.dumps([block.get("text", block["type"]) for block in params["prompt"]]))
        word, _, rest = texts[-1].strip().splitlines()[-1].partition(" ")
        return getattr(self, "do_" + word, self.do_hello)(session, rest) or "end_turn"

    def do_hello(self, session, rest):
        self.say(session, "Let me see.", "agent_thought_chunk")
        self.say(session, "Hello ")
        self.say(session, "from the agent.")
        self.update(session, "usage_update", used=1234, size=9999, cost={"amount": 0.5, "currency": "USD"})

    def do_plan(self, session, rest):
        entries = [{"content": "First\x1b[2J", "priority": "high", "status": "completed"},
                   {"content": "Second", "priority": "low", "status": "in_progress"}]
        self.update(session, "plan", entries=entries)
        self.say(session, "Planned.")

    def do_tools(self, session, rest):
        """Changes a file itself, and reports a command and an edit."""
        path = os.path.join(self.cwd[session], "own.txt")
        with open(path, "w") as file:
            file.write("new\n")
        self.update(session, "tool_call", toolCallId="1", title="Run it", kind="execute", status="in_progress",
                    rawInput={"command": "make"})
        self.update(session, "tool_call_update", toolCallId="1", status="completed",
                    content=[{"type": "content", "content": {"type": "text", "text": "built"}}])
        self.update(session, "tool_call", toolCallId="2", title="Edit", kind="edit", status="pending")
        self.update(session, "tool_call_update", toolCallId="2", status="completed",
                    content=[{"type": "diff", "path": path, "oldText": "old\n", "newText": "new\n"}])
        self.say(session, "Changed.")

    def do_try(self, session, rest):
        """Tries to write a file itself."""
        try:
            with open(rest, "w") as file:
                file.write("changed")
            self.say(session, "wrote it")
        except OSError as error:
            self.say(session, error.strerror)

    def do_ask(self, session, rest):
        call = {"toolCallId": "1", "title": "Remove it", "kind": "execute", "rawInput": {"command": rest or "rm x"}}
        options = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"},
                   {"optionId": "no", "name": "No", "kind": "reject_once"}]
        answer = self.request("session/request_permission",
                              {"sessionId": session, "toolCall": call, "options": options})
        outcome = answer["result"]["outcome"]
        self.say(session, "Outcome: " + outcome.get("optionId", outcome["outcome"]))

    def do_write(self, session, rest):
        path, _, content = rest.partition(" ")
        answer = self.request("fs/write_text_file", {"sessionId": session, "path": path, "content": content + "\n"})
        self.say(session, "Written: " + json.dumps(answer.get("error", answer.get("result"))))

    def do_read(self, session, rest):
        answer = self.request("fs/read_text_file", {"sessionId": session, "path": rest})
        self.say(session, "Read: " + json.dumps(answer.get("error", answer.get("result"))))

    def do_term(self, session, rest):
        made = self.request("terminal/create", {"sessionId": session, "command": rest, "args": [], "env": []})
        if "error" in made:
            return self.say(session, "Refused: " + made["error"]["message"])
        of = {"sessionId": session, "terminalId": made["result"]["terminalId"]}
        exit = self.request("terminal/wait_for_exit", of)["result"]
        output = self.request("terminal/output", of)["result"]
        self.update(session, "tool_call", toolCallId="t", title="Terminal", kind="execute", status="completed",
                    rawInput={"command": rest}, content=[{"type": "terminal", "terminalId": of["terminalId"]}])
        self.request("terminal/release", of)
        again = self.request("terminal/output", of)
        self.say(session, f"Exit {exit.get('exitCode')}: {output['output']} then {again['error']['code']}")

    def do_kill(self, session, rest):
        made = self.request("terminal/create", {"sessionId": session, "command": "sleep 600"})
        of = {"sessionId": session, "terminalId": made["result"]["terminalId"]}
        self.request("terminal/kill", of)
        self.say(session, "Ended: " + json.dumps(self.request("terminal/wait_for_exit", of)["result"]))

    def do_crash(self, session, rest):
        self.say(session, "I will crash.")
        self.update(session, "tool_call", toolCallId="1", title="Half", kind="execute", status="in_progress",
                    rawInput={"command": "half"})
        sys.stderr.write("out of memory\n")
        sys.stderr.flush()
        os._exit(7)

    def do_slow(self, session, rest):
        """Goes on after it was cancelled: sends updates and changes a file."""
        self.say(session, "Working.")
        while session not in self.cancelled:
            message = read()
            if message.get("method") == "session/cancel":
                self.cancelled.add(message["params"]["sessionId"])
        with open(os.path.join(self.cwd[session], "late.txt"), "w") as file:
            file.write("late\n")
        self.say(session, "TOO LATE")
        return "cancelled"

    def do_hang(self, session, rest):
        self.say(session, "Hanging.")
        time.sleep(600)

    def do_flood(self, session, rest):
        chunk = "x" * 65536
        for _ in range(1000):
            self.say(session, chunk)

    def do_calls(self, session, rest):
        for number in range(5000):
            self.update(session, "tool_call", toolCallId=str(number), title="c", status="completed")

    def do_broken(self, session, rest):
        for line in ["no json", "[]", '{"jsonrpc":"2.0"}', '{"method":7,"id":{}}', '{"id":999,"result":1}']:
            sys.stdout.write(line + "\n")
        sys.stdout.flush()
        self.update(session, "future_kind", x=1)
        self.update("other-session", "agent_message_chunk", content={"type": "text", "text": "WRONG"})
        error = self.request("session/none", {"sessionId": session})["error"]["code"]
        bad = self.request("fs/read_text_file", {"sessionId": session})["error"]["code"]
        stray = self.request("fs/read_text_file", {"sessionId": "other", "path": "/etc/passwd"})["error"]["code"]
        self.say(session, f"Errors {error} {bad} {stray}")

    def do_noise(self, session, rest):
        for _ in range(200):
            sys.stdout.write("noise\n")
        sys.stdout.flush()
        time.sleep(600)

    def do_control(self, session, rest):
        self.update(session, "tool_call", toolCallId="1\x1b[2J", title="\x1b]0;owned\x07Clear\x1b[2J", kind="other",
                    status="failed", locations=[{"path": "/etc/\x1b[2Jpasswd"}])
        self.say(session, "Clean.")


Agent().run()
