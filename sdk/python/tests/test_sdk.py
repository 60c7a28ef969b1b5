"""The package against the real program with the scripted model. Runs on the stage of editors/test/stage.sh."""

import asyncio
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
import urllib.request

import codewright
from codewright import CodewrightError, text_of, to_markdown, tool_calls

DIRECTORY = os.environ["CODEWRIGHT_STAGE"]
MISSING = "ses_missing0000000000000000000"


def text(words):
    return [{"type": "text", "text": words}]


def until(condition):
    for _ in range(200):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("the condition did not hold in time")


def is_gone(url):
    try:
        urllib.request.urlopen(url, timeout=2).close()
    except OSError:
        return True
    return False


class Proxy:
    """A proxy that closes all connections when told to."""

    def __init__(self, port):
        self._port = port
        self._sockets = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                front, _ = self._listener.accept()
            except OSError:
                return
            back = socket.create_connection(("127.0.0.1", self._port))
            self._sockets += [front, back]
            for source, target in ((front, back), (back, front)):
                threading.Thread(target=self._pump, args=(source, target), daemon=True).start()

    @staticmethod
    def _pump(source, target):
        try:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def cut(self):
        sockets, self._sockets = self._sockets, []
        for one in sockets:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()

    def close(self):
        self._listener.close()
        self.cut()


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = codewright.start_server(directory=DIRECTORY)
        cls.addClassCleanup(cls.server.close)
        cls.client = codewright.Client(cls.server.url, password=cls.server.password, directory=DIRECTORY)

    def new_session(self):
        return self.client.session.create(title="A test")["id"]

    def proxy(self):
        proxy = Proxy(int(self.server.url.rpartition(":")[2]))
        self.addCleanup(proxy.close)
        return proxy


class Sync(Case):
    def test_a_prompt_returns_the_answer(self):
        session = self.new_session()
        answer = self.client.session.prompt(sessionID=session, parts=text("Hello"))
        self.assertEqual(text_of(answer), "Hello from the model")
        self.assertEqual(len(self.client.session.messages(sessionID=session)), 2)
        self.assertEqual(self.client.call("session.get", sessionID=session)["id"], session)

    def test_errors_are_raised_with_status_and_body(self):
        with self.assertRaises(CodewrightError) as caught:
            self.client.session.get(sessionID=MISSING)
        self.assertEqual((caught.exception.status, caught.exception.body["name"]), (404, "NotFoundError"))
        self.assertIn(MISSING, str(caught.exception))
        with self.assertRaisesRegex(TypeError, "session.get needs the parameter `sessionID`"):
            self.client.session.get()
        with self.assertRaisesRegex(AttributeError, "there is no call `gett`; this namespace has .*prompt_async"):
            self.client.session.gett()

    def test_a_server_with_a_password_refuses_other_clients(self):
        stranger = codewright.Client(self.server.url)
        for call in (stranger.path.get, lambda: next(stranger.events())):
            with self.assertRaises(CodewrightError) as caught:
                call()
            self.assertEqual(caught.exception.status, 401)

    def test_a_server_that_is_away_is_an_error(self):
        away = codewright.Client("http://127.0.0.1:1")
        with self.assertRaises(codewright.BrokenConnection):
            away.path.get()
        with self.assertRaisesRegex(ValueError, "not the address of a server"):
            codewright.Client("localhost:4096")

    def test_a_call_has_a_deadline(self):
        with self.assertRaisesRegex(CodewrightError, "in time"):
            self.client.with_options(timeout=0.3).session.prompt(sessionID=self.new_session(), parts=text("WAIT for it"))

    def test_a_turn_yields_its_events_and_ends_when_the_session_is_idle(self):
        session = self.new_session()
        types = [event["type"] for event in self.client.turn(sessionID=session, parts=text("PLAN it"))]
        self.assertEqual(types[-1], "session.idle")
        self.assertTrue({"todo.updated", "message.part.delta"} <= set(types), types)
        session = self.new_session()
        types = [event["type"] for event in self.client.turn(sessionID=session, parts=text("BREAK it"))]
        self.assertIn("session.error", types)
        with self.assertRaises(CodewrightError):
            list(self.client.turn(sessionID=session, parts=[]))

    def test_permission_requests_are_answered(self):
        session, asked = self.new_session(), []
        stream = self.client.events(session_id=session)

        def decide(request):
            asked.append(request["permission"])
            return "once"

        thread = threading.Thread(target=self.client.answer_permissions, args=(decide, stream))
        thread.start()
        answer = self.client.session.prompt(sessionID=session, parts=text("RUN it"))
        stream.close()
        thread.join(timeout=5)
        self.assertFalse(thread.is_alive())
        self.assertEqual((asked, text_of(answer)), (["bash"], "Ran it."))
        messages = self.client.session.messages(sessionID=session)
        self.assertEqual([call["state"]["status"] for message in messages for call in tool_calls(message)], ["completed"])
        self.assertIn("- `bash`: echo from-bash", "".join(map(to_markdown, messages)))

    def test_the_end_of_a_turn_is_not_lost_when_connections_break(self):
        proxy = self.proxy()
        distant = codewright.Client(proxy.url, password=self.server.password, directory=DIRECTORY)
        session, cuts, seen = self.new_session(), 0, []
        for event in distant.turn(sessionID=session, parts=text("WAIT for it")):
            seen.append(event)
            if event["type"] == "message.part.delta" and cuts < 2:
                cuts += 1
                if cuts == 2:
                    until(lambda: session not in self.client.session.status())
                proxy.cut()
        self.check_end(seen, cuts)

    def check_end(self, seen, cuts):
        self.assertEqual(cuts, 2)
        self.assertEqual(seen[-1]["type"], "session.idle")
        parts = [event["properties"]["part"] for event in seen if event["type"] == "message.part.updated"]
        self.assertTrue(any(part.get("text", "").endswith("nine ten") for part in parts))

    def test_the_model_uses_a_tool_of_this_program(self):
        parameters = {"properties": {"a": {"type": "number"}, "b": {"type": "number"}}}
        add = codewright.Tool("Adds two numbers", parameters, lambda args: {"sum": args["a"] + args["b"]})
        with codewright.serve_tools(self.client, "calculator", {"add": add}) as tools:
            session = self.new_session()
            self.client.session.prompt(sessionID=session, parts=text("ADD it"))
            calls = [call for message in self.client.session.messages(sessionID=session) for call in tool_calls(message)]
            self.assertEqual([call["state"]["output"] for call in calls], ['{"sum": 42}'])
            with self.assertRaisesRegex(OSError, "401"):
                urllib.request.urlopen(urllib.request.Request(tools.url, b"{}", method="POST"), timeout=5)


class Async(Case):
    def run_async(self, body):
        client = codewright.AsyncClient(self.server.url, password=self.server.password, directory=DIRECTORY)
        return asyncio.run(asyncio.wait_for(body(client), 60))

    def test_calls_and_errors(self):
        async def body(client):
            session = (await client.session.create(title="A test"))["id"]
            answer = await client.session.prompt(sessionID=session, parts=text("Hello"))
            self.assertEqual(text_of(answer), "Hello from the model")
            with self.assertRaises(CodewrightError) as caught:
                await client.session.get(sessionID=MISSING)
            self.assertEqual(caught.exception.status, 404)
            with self.assertRaisesRegex(CodewrightError, "in time"):
                await client.with_options(timeout=0.3).session.prompt(sessionID=session, parts=text("WAIT for it"))

        self.run_async(body)

    def test_permission_requests_are_answered_during_a_turn(self):
        async def body(client):
            session = (await client.session.create(title="A test"))["id"]

            async def decide(request):
                return "once"

            answering = asyncio.create_task(client.answer_permissions(decide, session_id=session))
            types = [event["type"] async for event in client.turn(sessionID=session, parts=text("RUN it"))]
            answering.cancel()
            self.assertEqual(types[-1], "session.idle")
            self.assertIn("permission.replied", types)

        self.run_async(body)

    def test_the_end_of_a_turn_is_not_lost_when_connections_break(self):
        proxy = self.proxy()

        async def body(client):
            distant = codewright.AsyncClient(proxy.url, password=self.server.password, directory=DIRECTORY)
            session, cuts, seen = (await client.session.create())["id"], 0, []
            async for event in distant.turn(sessionID=session, parts=text("WAIT for it")):
                seen.append(event)
                if event["type"] == "message.part.delta" and cuts < 2:
                    cuts += 1
                    while cuts == 2 and session in await client.session.status():
                        await asyncio.sleep(0.05)
                    proxy.cut()
            Sync.check_end(self, seen, cuts)

        self.run_async(body)

    def test_tools_and_servers(self):
        async def body(_):
            async with codewright.start_async(directory=DIRECTORY) as client:
                fail = codewright.Tool("Adds two numbers", {}, lambda args: 1 / 0)
                async with codewright.serve_tools_async(client, "calculator", {"add": fail}):
                    session = (await client.session.create())["id"]
                    await client.session.prompt(sessionID=session, parts=text("ADD it"))
                    calls = [call for message in await client.session.messages(sessionID=session) for call in tool_calls(message)]
                    self.assertEqual([call["state"]["status"] for call in calls], ["error"])
                    self.assertIn("division by zero", calls[0]["state"]["error"])

        self.run_async(body)


class Server(unittest.TestCase):
    def test_close_ends_the_server(self):
        with codewright.start_server(directory=DIRECTORY, config={"username": "tester"}) as server:
            client = codewright.Client(server.url, password=server.password, directory=DIRECTORY)
            self.assertEqual(client.config.get()["username"], "tester")
        self.assertTrue(is_gone(server.url))

    def test_a_server_that_cannot_start_is_an_error_with_its_output(self):
        for options, expected in (
            ({"program": "/missing/codewright"}, "ended with 127; install it"),
            ({"args": ["--sandbox=strange"]}, "strange"),
        ):
            with self.assertRaisesRegex(CodewrightError, expected):
                codewright.start_server(**options)

    def test_a_server_ends_with_the_process_that_started_it(self):
        code = "import codewright, sys, time; print(codewright.start_server().url, flush=True); time.sleep(60)"
        with subprocess.Popen([sys.executable, "-c", code], cwd=DIRECTORY, stdout=subprocess.PIPE) as child:
            url = child.stdout.readline().decode().strip()
            self.assertFalse(is_gone(url))
            child.send_signal(signal.SIGKILL)
        until(lambda: is_gone(url))


class Import(unittest.TestCase):
    def test_the_import_takes_less_than_100_ms(self):
        def measure(code):
            # Processor time, because other programs may keep this machine busy.
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, "-c", code], check=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

        empty = min(measure("pass") for _ in range(7))
        full = min(measure("import codewright; codewright.Client") for _ in range(7))
        self.assertLess(full - empty, 0.1)
        print(f"import with the sync client: {1000 * (full - empty):.0f} ms")


if __name__ == "__main__":
    unittest.main()
