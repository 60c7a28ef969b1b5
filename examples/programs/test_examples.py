"""The programs in this directory, run with the scripted model on the stage of editors/test/stage.sh.

CODEWRIGHT_PROJECT is a directory in which `@codewright/sdk` is installed. Without it the programs in JavaScript are skipped,
without Go that in Go, and without Chromium the page.
"""

import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

import codewright

HERE = Path(__file__).parent
STAGE = Path(os.environ["CODEWRIGHT_STAGE"])
PROJECT = os.environ.get("CODEWRIGHT_PROJECT")
LIMIT = 100


def text(words):
    return [{"type": "text", "text": words}]


def states(client, session):
    messages = client.session.messages(sessionID=session)
    return [call["state"] for message in messages for call in codewright.tool_calls(message)]


class Case(unittest.TestCase):
    def setUp(self):
        self.work = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.work)

    def run_program(self, name, *args, cwd=STAGE, env=None, stdin=""):
        """Runs an example and returns its exit code and output."""
        if name.endswith(".mjs"):
            if PROJECT is None:
                self.skipTest("@codewright/sdk is not installed")
            # A copy in the project finds the package there.
            file = Path(shutil.copy(HERE / name, PROJECT))
            command = ["node", file]
        else:
            command = [sys.executable, HERE / name]
        variables = {**os.environ, **(env or {})}
        done = subprocess.run([*command, *args], cwd=cwd, env=variables, input=stdin, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr

    def git(self, *args, cwd):
        identity = ["-c", "user.name=Tester", "-c", "user.email=tester@localhost"]
        subprocess.run(["git", *identity, *args], cwd=cwd, check=True, capture_output=True)

    def repository(self, name):
        directory = self.work / name
        directory.mkdir()
        (directory / "greeting.txt").write_text("good day\n")
        self.git("init", "--quiet", "--initial-branch=main", cwd=directory)
        self.git("add", "--all", cwd=directory)
        self.git("commit", "--quiet", "--message=First", cwd=directory)
        return directory

    def play(self, config, prompt, directory):
        """Returns the states of the tool calls of a prompt."""
        with codewright.start(directory=directory, config=config) as client:
            session = client.session.create()["id"]
            client.session.prompt(sessionID=session, parts=text(prompt))
            return states(client, session)


class Programs(Case):
    def test_every_program_is_short_and_in_the_list(self):
        listed = (HERE / "README.md").read_text()
        programs = [path for path in [*HERE.iterdir(), HERE / "tool-go/main.go"] if path.suffix in (".mjs", ".py", ".html", ".go")]
        programs = [path for path in programs if path.name != Path(__file__).name]
        self.assertEqual(len(programs), 10)
        for path in programs:
            self.assertLessEqual(len(path.read_text().splitlines()), LIMIT, path)
            # A page is named without a link: the documentation site copies what its pages link.
            name = path.relative_to(HERE)
            self.assertTrue(f"({name})" in listed or f"`{name}`" in listed, name)

    def test_the_reviewer_prints_annotations_and_fails_for_errors(self):
        directory = self.repository("reviewed")
        (directory / "greeting.txt").write_text("hello\n")
        self.git("commit", "--all", "--quiet", "--message=Change", cwd=directory)
        code, output = self.run_program("ci-reviewer.mjs", "HEAD~1", cwd=directory)
        self.assertEqual(code, 1, output)
        self.assertIn("::error file=src/util.py,line=2::adds%0Aone too many\n", output)
        self.assertIn("::notice file=src/util.py,line=5::50%25 done\n", output)
        self.assertIn("2 findings for $0.", output)
        self.assertEqual(self.run_program("ci-reviewer.mjs", "HEAD", cwd=directory), (0, "no changes since HEAD\n"))

    def test_the_bot_has_a_session_for_each_chat(self):
        messages = [("a", "my name is Ada"), ("a", "Who is it, my name?"), ("b", "BREAK it"), ("c", "TRY it"), ("a", "/reset")]
        lines = "\n".join(json.dumps({"chat": chat, "text": words}) for chat, words in messages)
        code, output = self.run_program("chat_bot.py", stdin=lines)
        self.assertEqual(code, 0, output)
        answers = {}
        for line in output.splitlines():
            answer = json.loads(line)
            answers.setdefault(answer["chat"], []).append(answer["text"])
        self.assertEqual(answers["a"], ["Hello Ada.", "You are Ada.", "Forgotten."])
        self.assertEqual(answers["b"], ["That failed: the model is out of order"])
        self.assertEqual(answers["c"], ["I may not."])

    def test_the_fixer_commits_where_the_check_passes(self):
        directory, dirty = self.repository("one"), self.repository("dirty")
        (dirty / "greeting.txt").write_text("mine\n")
        identity = {f"GIT_{who}_{what}": f"tester{'@localhost' if what == 'EMAIL' else ''}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        code, output = self.run_program("batch-fixer.mjs", "Replace the greeting", "grep -q hello greeting.txt", directory, dirty, env=identity)
        self.assertEqual(code, 0, output)
        self.assertIn(f"{directory}: fixed with 2 attempts", output)
        log = subprocess.run(["git", "log", "--format=%s", "codewright-batch"], cwd=directory, capture_output=True, text=True)
        self.assertEqual(log.stdout.splitlines(), ["Replace the greeting", "First"])
        self.assertIn(f"{dirty}: skipped: there are uncommitted changes", output)
        code, output = self.run_program("batch-fixer.mjs", "Do nothing", "false", self.repository("three"))
        self.assertEqual((code, "failed: the check does not pass" in output), (1, True), output)

    def test_the_evaluation_counts_right_answers(self):
        (self.work / "prompt.txt").write_text("Answer: {input}")
        tasks = [{"input": f"Is it Paris? {number}", "expect": "Paris"} for number in range(8)]
        tasks += [{"input": f"Is it Rome? {number}", "expect": "Rome"} for number in range(2)]
        (self.work / "tasks.json").write_text(json.dumps(tasks))
        files = [self.work / "prompt.txt", self.work / "tasks.json"]
        code, output = self.run_program("evaluate.py", *files, "--model", "mock/other-model")
        self.assertEqual((code, output.count("ok  "), output.count("FAIL")), (0, 8, 2), output)
        self.assertIn("80% of 10 for $", output)
        self.assertEqual(self.run_program("evaluate.py", *files, "--minimum", "0.9")[0], 1)

    def test_the_tool_in_python_is_called(self):
        config = {"mcp": {"clock": {"type": "local", "command": [sys.executable, str(HERE / "tool_python.py")]}}}
        first, second = self.play(config, "CONVERT it", STAGE)
        self.assertEqual(first["output"], "2026-03-01T20:00:00+09:00")
        self.assertIn("unknown time zone", second["error"])

    def test_the_tool_in_go_is_called(self):
        if shutil.which("go") is None:
            self.skipTest("go is not installed")
        program = self.work / "stats"
        environment = {**os.environ, "GOCACHE": str(self.work / "cache"), "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}
        subprocess.run(["go", "build", "-o", program, "."], cwd=HERE / "tool-go", env=environment, check=True, timeout=120)
        config = {"mcp": {"stats": {"type": "local", "command": [str(program)]}}}
        self.assertEqual([state["output"] for state in self.play(config, "COUNT it", STAGE)], ["2 lines, 3 words, 13 characters"])

    def test_the_guard_refuses_calls_with_the_reason(self):
        hook = {"type": "command", "command": f"{sys.executable} {HERE / 'guard_hook.py'}"}
        config = {"permission": {"*": "allow"}, "hooks": {"PreToolUse": [{"matcher": "Bash|Edit|Write", "hooks": [hook]}]}}
        directory = self.repository("guarded")
        commit, lock, allowed = self.play(config, "COMMIT it", directory)
        self.assertIn("Do not commit on main", commit["error"])
        self.assertIn("Do not write Cargo.lock", lock["error"])
        self.assertEqual((allowed["status"], (directory / "allowed.txt").read_text()), ("completed", "x"))


class Guides(Case):
    def blocks(self, page, language):
        pieces = (HERE / "../.." / page).read_text().split(f"\n```{language}\n")[1:]
        return [piece.split("\n```\n")[0] for piece in pieces]

    def run_block(self, code, command, directory, suffix):
        file = Path(directory) / f"guide{suffix}"
        file.write_text(code)
        done = subprocess.run([command, file], cwd=STAGE, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_the_code_of_the_guide_and_of_the_packages_runs(self):
        outputs = [
            self.run_block(block, sys.executable, self.work, ".py")
            for page in ("docs/guides/sdk.md", "sdk/python/README.md")
            for block in self.blocks(page, "python")
        ]
        if PROJECT is not None:
            blocks = self.blocks("docs/guides/sdk.md", "js") + self.blocks("sdk/typescript/README.md", "ts")
            outputs += [self.run_block(block, "node", PROJECT, ".mjs") for block in blocks]
        self.assertEqual(len(outputs), 3 if PROJECT is None else 6)
        for output in outputs:
            self.assertRegex(output, r"^(Hello from the model|It is 42\.)\n?$")


class WithServer(Case):
    def setUp(self):
        super().setUp()
        self.server = codewright.start_server(directory=STAGE, args=["--cors=http://localhost:8000"])
        self.addCleanup(self.server.close)
        self.client = codewright.Client(self.server.url, password=self.server.password, directory=str(STAGE))
        self.password = {"CODEWRIGHT_SERVER_PASSWORD": self.server.password}

    def until(self, condition, detail=lambda: ""):
        for _ in range(200):
            if condition():
                return
            time.sleep(0.05)
        self.fail(f"the condition did not hold in time: {detail()}")

    def test_the_notifier_runs_a_command(self):
        log = self.work / "log"
        record = self.work / "record.sh"
        record.write_text(f'#!/bin/sh\nprintf "%s|%s\\n" "$1" "$2" >>{log}\n')
        record.chmod(0o755)
        command = [sys.executable, HERE / "notifier.py", "--url", self.server.url, "--seconds", "0", record]
        notifier = subprocess.Popen(command, env={**os.environ, **self.password})
        self.addCleanup(notifier.wait, 10)
        self.addCleanup(notifier.terminate)

        def has(line):
            return log.exists() and line in log.read_text()

        def is_following():
            # The notifier has no sign of its start but its notifications.
            session = self.client.session.create(title="Probe")["id"]
            self.client.session.prompt(sessionID=session, parts=text("Hello"))
            return has("Probe|Finished after")

        self.until(is_following)
        session = self.client.session.create(title="Build; $(touch x)")["id"]
        self.client.session.prompt_async(sessionID=session, parts=text("RUN it"))
        self.until(lambda: has("Build; $(touch x)|Asks for permission: bash echo from-bash"), log.read_text)
        [request] = self.client.permission.list()
        self.client.permission.reply(requestID=request["id"], reply="once")
        self.until(lambda: has("Build; $(touch x)|Finished after"))
        broken = self.client.session.create(title="Broken")["id"]
        self.client.session.prompt(sessionID=broken, parts=text("BREAK it"))
        self.until(lambda: has("Broken|Failed: the model is out of order"))

    def test_the_dashboard_shows_sessions(self):
        session = self.client.session.create(title="First\x1b[2J line")["id"]
        self.client.session.prompt(sessionID=session, parts=text("Hello"))
        waiting = self.client.session.create(title="Second")["id"]
        self.client.session.prompt_async(sessionID=waiting, parts=text("ASK it"))
        self.until(self.client.permission.list)
        code, output = self.run_program("dashboard.mjs", "--once", "--url", self.server.url, "--directory", STAGE, env=self.password)
        self.assertEqual(code, 0, output)
        lines = {line[:6].strip(): line for line in output.splitlines()}
        self.assertRegex(lines["First"], r"First \[2J line +idle .* \$0\.000[1-9]")
        self.assertRegex(lines["Second"], r"Second +waiting ")
        self.assertIn("1 running, 1 waiting for permission", output)
        self.assertNotIn("\x1b", output)
        self.client.session.abort(sessionID=waiting)
        code, output = self.run_program("dashboard.mjs", "--once", "--url", self.server.url)
        self.assertIn("(401)", output)

    def test_the_page_shows_an_answer(self):
        browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        if browser is None:
            self.skipTest("chromium is not installed")
        try:
            site = http.server.ThreadingHTTPServer(("localhost", 8000), self.site())
        except OSError:
            self.skipTest("the port 8000 is in use")
        self.addCleanup(site.server_close)
        self.addCleanup(site.shutdown)
        threading.Thread(target=site.serve_forever, daemon=True).start()
        # The browser fills in the forms, and prints the page at the end.
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={self.work}/browser", "--virtual-time-budget=20000"]
        command = [browser, *flags, "--dump-dom", "http://localhost:8000/frontend.html"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        self.assertIn('class="text"', done.stdout, done.stderr[-2000:])
        self.assertIn("Hello from the model", done.stdout)

    def site(self):
        drive = """<script type="module">
          const form = (id) => document.getElementById(id);
          form("connect").url.value = "URL"; form("connect").password.value = "PASSWORD"; form("connect").requestSubmit();
          // Time is virtual here, and requests let real time pass.
          const pass = () => fetch("URL/global/health", { headers: { authorization: `Basic ${btoa("opencode:PASSWORD")}` } });
          const until = async (done) => { for (let tries = 0; tries < 5000 && !done(); tries++) await pass(); };
          await until(() => !form("ask").hidden);
          form("ask").text.value = "Hello"; form("ask").requestSubmit();
          await until(() => form("log").textContent.includes("from the model"));
        </script>"""
        drive = drive.replace("URL", self.server.url).replace("PASSWORD", self.server.password)
        page = (HERE / "frontend.html").read_text() + drive

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("content-type", "text/html")
                self.end_headers()
                self.wfile.write(page.encode())

            def log_message(self, *_):
                pass

        return Handler


if __name__ == "__main__":
    unittest.main()
