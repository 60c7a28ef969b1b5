"""Plays the server's side of recorded MCP traffic.

    replay.py stdio ANSWERS RECORD
    replay.py http  ANSWERS RECORD    prints its port; serves /mcp

ANSWERS is a JSON object: the result of each method, or a list of results in their order; and under `events` the messages
that the server sent by itself after an answer to a method. RECORD gets one JSON object for each message of the client,
over HTTP with the method and the headers.
"""

import http.server
import json
import queue
import sys
import threading

KIND, ANSWERS, RECORD = sys.argv[1:4]
with open(ANSWERS, encoding="utf-8") as file:
    RESULTS = json.load(file)
EVENTS = RESULTS.pop("events", {})
SESSION = "391b5207-a425-4acd-a9be-01aaa6d3162a"
LOCK = threading.Lock()
# The messages for the stream of a client over HTTP.
STREAM = queue.Queue()


def record(entry):
    with LOCK, open(RECORD, "a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")


def replies(message):
    """The answer to a message of the client, and the messages that the server sends after it."""
    if "method" not in message or "id" not in message:
        return [], []
    method = message["method"]
    with LOCK:
        result = RESULTS.get(method)
        if isinstance(result, list):
            result = result.pop(0) if result else None
        events = EVENTS.pop(method, [])
    if result is None:
        error = {"code": -32601, "message": "Method not found"}
        return [{"jsonrpc": "2.0", "id": message["id"], "error": error}], []
    return [{"jsonrpc": "2.0", "id": message["id"], "result": result}], events


def stdio():
    for line in sys.stdin:
        message = json.loads(line)
        record(message)
        answer, events = replies(message)
        for reply in answer + events:
            sys.stdout.write(json.dumps(reply) + "\n")
            sys.stdout.flush()


class Web(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def entry(self, body=None):
        headers = {name.lower(): value for name, value in self.headers.items()}
        record({"method": self.command, "url": self.path, "reqHeaders": headers, "reqBody": body})

    def stream(self):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("mcp-session-id", SESSION)
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True

    def emit(self, message):
        self.wfile.write(f"event: message\ndata: {json.dumps(message)}\n\n".encode())
        self.wfile.flush()

    def do_GET(self):
        self.entry()
        self.stream()
        while True:
            self.emit(STREAM.get())

    def do_DELETE(self):
        self.entry()
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.entry(body)
        answer, events = replies(body)
        if not answer:
            self.send_response(202)
            self.send_header("content-length", "0")
            self.end_headers()
            return
        self.stream()
        self.emit(answer[0])
        for event in events:
            STREAM.put(event)


def serve():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Web)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    stdio() if KIND == "stdio" else serve()
