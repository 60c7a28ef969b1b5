"""The parsers, with bytes in every division."""

import unittest

from codewright._calls import Request, place, python_name, routes
from codewright._http import BrokenConnection, Frames, Reply, Target, query_text, request_bytes

REPLIES = {
    b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello": (200, b"hello"),
    b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n": (200, b""),
    b"HTTP/1.1 204 No Content\r\n\r\n": (204, b""),
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}": (404, b"{}"),
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=1\r\n0123456789\r\n0\r\n\r\n": (200, b"abc0123456789"),
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\ntrailer: 1\r\n\r\n": (200, b"a"),
}
BROKEN = [
    b"HTTP/1.1 OK\r\n\r\n",
    b"nonsense\r\n\r\n",
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
    b"x" * 70_000,
    b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhel",
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
]


def parse(data, size):
    reply, body = Reply(), b""
    for start in range(0, len(data), size):
        reply.feed(data[start : start + size])
        body += reply.take()
    return reply, body


class Http(unittest.TestCase):
    def test_replies_are_parsed_in_every_division(self):
        for data, (status, expected) in REPLIES.items():
            for size in (1, 2, 3, 7, len(data)):
                reply, body = parse(data, size)
                self.assertEqual((reply.status, body, reply.is_done), (status, expected, True), (data, size))

    def test_a_reply_without_a_length_ends_with_the_connection(self):
        reply, body = parse(b"HTTP/1.1 200 OK\r\n\r\nhello", 4)
        self.assertEqual((body, reply.is_done), (b"hello", False))
        reply.feed(b"")
        self.assertTrue(reply.is_done)

    def test_broken_replies_are_errors(self):
        for data in BROKEN:
            with self.assertRaises(BrokenConnection, msg=data[:40]):
                parse(data, 5)[0].feed(b"")

    def test_events_are_parsed_in_every_division(self):
        data = "id: 7\r\ndata: {\"a\":\r\ndata: \"é\"}\r\n\r\n: comment\n\ndata: plain\n\nevent: x\n\n".encode()
        for size in (1, 2, 3, 5, len(data)):
            frames, found = Frames(), []
            for start in range(0, len(data), size):
                found += frames.feed(data[start : start + size])
            self.assertEqual(found, [("7", {"a": "é"}), (None, "plain")], size)

    def test_an_event_has_a_limit(self):
        frames = Frames()
        with self.assertRaises(BrokenConnection):
            for _ in range(20):
                frames.feed(b"x" * 1024 * 1024)

    def test_a_header_has_no_line_break(self):
        with self.assertRaises(ValueError):
            request_bytes(Target("http://a"), "GET", "/", {"x": "a\r\nb: c"}, None)

    def test_parameters_are_placed(self):
        cases = [
            ("session.prompt", {"sessionID": "a/b?", "directory": "/d", "parts": []}, ("POST", "/session/a%2Fb%3F/message", {"directory": "/d"}, {"parts": []})),
            ("v2.fs.read", {"path": "a b/c", "location": {"directory": "/d"}}, ("GET", "/api/fs/read/a%20b/c", {"location": {"directory": "/d"}}, None)),
            ("config.update", {"config": {"model": "a/b"}}, ("PATCH", "/config", {}, {"model": "a/b"})),
            ("mcp.remove", {"name": "x"}, ("DELETE", "/mcp", {"name": "x"}, None)),
            ("v2.session.create", {"location": {"directory": "/d"}}, ("POST", "/api/session", {}, {"location": {"directory": "/d"}})),
            ("sync.replay", {"query_directory": "/q", "body_directory": "/b", "events": []}, ("POST", "/sync/replay", {"directory": "/q"}, {"directory": "/b", "events": []})),
        ]
        for name, given, (method, path, query, body) in cases:
            placed = place(routes()[name], given)
            self.assertEqual(placed, Request(method, path, query, body, name == "session.prompt"), name)
        self.assertEqual(query_text({"a": [1, 2], "b": {"c": True}, "d": None}), "a=1&a=2&b%5Bc%5D=true")

    def test_names(self):
        self.assertEqual([python_name(name) for name in ("promptAsync", "global", "initGit", "v2")], ["prompt_async", "global_", "init_git", "v2"])


if __name__ == "__main__":
    unittest.main()
