#!/usr/bin/env python3
"""Checks the descriptors for Zed and JetBrains IDEs. On the stage of stage.sh it also starts the commands."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import unittest
import xml.etree.ElementTree as xml

try:
    import tomllib
except ImportError:  # Python 3.10 and older.
    tomllib = None

EDITORS = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("CODEWRIGHT_BIN") if os.environ.get("CODEWRIGHT_STAGE") else None
DEADLINE = 60
VERSION = re.compile(r"\d+\.\d+\.\d+")


def run(script, *arguments, env=None):
    """Runs a script, and returns its result."""
    return subprocess.run(
        [sys.executable, script, *arguments], env=env, capture_output=True, text=True, timeout=DEADLINE, check=False
    )


def initialize(entry):
    """Starts the command of an entry as an editor does, and returns the answer to the first request."""
    params = {"protocolVersion": 1, "clientCapabilities": {}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    program = PROGRAM if entry["command"] == "codewright" else entry["command"]
    with subprocess.Popen(
        [program, *entry["args"]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | entry["env"],
        text=True,
    ) as child:
        timer = threading.Timer(DEADLINE, child.kill)
        timer.start()
        try:
            child.stdin.write(json.dumps(request) + "\n")
            child.stdin.flush()
            return json.loads(child.stdout.readline())
        finally:
            timer.cancel()
            child.stdin.close()
            child.wait(DEADLINE)


class Zed(unittest.TestCase):
    settings = json.loads((EDITORS / "zed/settings.json").read_text())["agent_servers"]["Codewright"]

    def check(self, manifest):
        for key in ("id", "name", "version", "authors", "description", "repository"):
            self.assertTrue(manifest[key], key)
        self.assertEqual(manifest["schema_version"], 1)
        self.assertRegex(manifest["id"], r"^[a-z][a-z0-9-]*$")
        self.assertRegex(manifest["version"], VERSION)
        (server,) = manifest["agent_servers"].values()
        self.assertTrue((EDITORS / "zed" / server["icon"]).is_file())
        for name, target in server["targets"].items():
            self.assertRegex(name, r"^(darwin|linux|windows)-(aarch64|x86_64)$")
            self.assertRegex(target["archive"], r"^https://.*\.(tar\.gz|zip)$")
            self.assertEqual((target["cmd"], target["args"]), ("./codewright", ["acp"]))
        return server["targets"]

    @unittest.skipIf(tomllib is None, "Python is older than 3.11")
    def test_the_manifest_is_valid_and_downloads_nothing(self):
        targets = self.check(tomllib.loads((EDITORS / "zed/extension.toml").read_text()))
        self.assertEqual(len(targets), 4)
        # A name below `.invalid` never resolves, so nobody else can offer the archives.
        for target in targets.values():
            self.assertTrue(target["archive"].startswith("https://codewright.invalid/"))

    @unittest.skipIf(tomllib is None, "Python is older than 3.11")
    def test_a_release_has_addresses_and_checksums(self):
        script = EDITORS / "zed/release.py"
        with tempfile.TemporaryDirectory() as folder:
            archive = pathlib.Path(folder, "codewright-linux-x86_64.tar.gz")
            archive.write_bytes(b"archive")
            made = run(script, "https://example.org/r", "https://example.org/v1/", archive)
            self.assertEqual(made.returncode, 0, made.stderr)
            self.assertNotIn("invalid", made.stdout)
            targets = self.check(tomllib.loads(made.stdout))
            self.assertEqual(list(targets), ["linux-x86_64"])
            expected = "https://example.org/v1/codewright-linux-x86_64.tar.gz"
            self.assertEqual(targets["linux-x86_64"]["archive"], expected)
            self.assertRegex(targets["linux-x86_64"]["sha256"], r"^[0-9a-f]{64}$")
            for bad in (
                ["http://x", "https://x", archive],
                ['https://x"', "https://x", archive],
                ["https://x", "https://x", "a.zip"],
            ):
                self.assertNotEqual(run(script, *bad).returncode, 0)

    def test_the_settings_are_valid(self):
        self.assertEqual(self.settings, {"type": "custom", "command": "codewright", "args": ["acp"], "env": {}})

    @unittest.skipIf(PROGRAM is None, "the program is missing; run editors/test/stage.sh")
    def test_the_command_answers(self):
        self.assertEqual(initialize(self.settings)["result"]["protocolVersion"], 1)


class JetBrains(unittest.TestCase):
    entry = json.loads((EDITORS / "jetbrains/acp.json").read_text())["agent_servers"]["Codewright"]

    def test_the_configuration_is_valid(self):
        self.assertEqual(self.entry, {"command": "codewright", "args": ["acp"], "env": {}})

    @unittest.skipIf(PROGRAM is None, "the program is missing; run editors/test/stage.sh")
    def test_the_command_answers(self):
        self.assertEqual(initialize(self.entry)["result"]["agentInfo"]["name"], "Codewright")

    def test_the_descriptor_is_valid(self):
        root = xml.parse(EDITORS / "jetbrains/META-INF/plugin.xml").getroot()
        self.assertEqual(root.tag, "idea-plugin")
        text = {child.tag: (child.text or "").strip() for child in root}
        self.assertRegex(text["id"], r"^[a-z]+(\.[a-z]+)+$")
        self.assertRegex(text["version"], VERSION)
        self.assertTrue(text["vendor"])
        # The rules of the plugin repository.
        self.assertLessEqual(len(text["name"]), 60)
        self.assertNotRegex(text["name"], r"(?i)plugin|intellij|jetbrains")
        self.assertGreaterEqual(len(re.sub(r"<[^>]*>", "", text["description"]).strip()), 40)
        self.assertRegex(root.find("idea-version").get("since-build"), r"^\d{3}(\.\d+)*$")
        depends = [child.text for child in root.findall("depends")]
        self.assertIn("com.intellij.modules.platform", depends)
        known = {"id", "name", "version", "vendor", "description", "idea-version", "depends", "extensions"}
        self.assertLessEqual({child.tag for child in root}, known)
        # There is no code, so nothing may name a class.
        for element in root.iter():
            self.assertFalse({"class", "implementation", "implementationClass"} & set(element.keys()), element.tag)

    def configure(self, before, *arguments):
        """Runs configure.py in a home directory of its own. Returns the result and the file."""
        with tempfile.TemporaryDirectory() as home:
            folder = pathlib.Path(home, ".cargo/bin")
            folder.mkdir(parents=True)
            program = folder / "codewright"
            program.write_text("#!/bin/sh\n")
            program.chmod(0o755)
            target = pathlib.Path(home, ".jetbrains/acp.json")
            if before is not None:
                target.parent.mkdir()
                target.write_text(before)
            ended = run(EDITORS / "jetbrains/configure.py", *arguments, env={"HOME": home, "PATH": "/nowhere"})
            return ended, target.read_text() if target.exists() else None

    def test_the_entry_is_added_beside_others(self):
        ended, written = self.configure(None, "--write")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        command = json.loads(written)["agent_servers"]["Codewright"]["command"]
        self.assertTrue(command.endswith("/.cargo/bin/codewright"))
        servers = {"Other": {"command": "x"}, "Codewright": {"command": "old", "env": {"A": "b"}}}
        known = {"agent_servers": servers, "more": 1}
        ended, written = self.configure(json.dumps(known), "--write")
        config = json.loads(written)
        self.assertEqual((config["agent_servers"]["Other"], config["more"]), ({"command": "x"}, 1))
        self.assertEqual(config["agent_servers"]["Codewright"]["env"], {"A": "b"})
        ended, written = self.configure(None)
        self.assertIsNone(written, "without --write, nothing is written")
        self.assertIn("Codewright", ended.stdout)

    def test_a_broken_configuration_stays(self):
        for broken in ("{", "[]", '{"agent_servers": []}'):
            ended, written = self.configure(broken, "--write")
            self.assertNotEqual(ended.returncode, 0)
            self.assertEqual(written, broken)


if __name__ == "__main__":
    unittest.main()
