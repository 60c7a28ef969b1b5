//! The table of ordinary work.

use super::registry::Registry;

/// A small project and a command line.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) place: Place,
    /// A shell command that succeeds if the machine has the programs.
    pub(super) needs: &'static str,
    pub(super) files: &'static [(&'static str, &'static str)],
    /// A shell script that prepares the project, outside of the sandbox.
    pub(super) setup: &'static str,
    /// The registry whose host, `HOST` in the files and the line, is permitted.
    pub(super) registry: Option<Registry>,
    /// The script that the model runs. It ends with the first failed command.
    pub(super) line: &'static str,
    pub(super) landlock: Landlock,
}

/// Where a row is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In the test suite too.
    Suite,
    /// Only by `cargo xtask work`.
    Command,
}

/// Whether a row works without namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Landlock {
    Works,
    /// Holds the reason.
    Fails(&'static str),
}

/// The reason why rows with sockets fail.
const NO_SOCKETS: Landlock = Landlock::Fails("it opens sockets");

/// A row without a setup and a registry.
const PLAIN: Row = Row {
    name: "",
    place: Place::Command,
    needs: "true",
    files: &[],
    setup: "",
    registry: None,
    line: "",
    landlock: Landlock::Works,
};

const NODE_TEST: &str = "const test = require('node:test');\nconst assert = require('assert');\n\
    test('adds', () => assert.equal(1 + 1, 2));\n";
const C_PROGRAM: &str = "#include <stdio.h>\n\
    int add(int a, int b) { return a + b; }\n\
    int main(void) { printf(\"%d\\n\", add(1, 2)); return 0; }\n";
const CARGO_MAIN: &str = "fn main() {\n    println!(\"{}\", tiny::two());\n}\n\n\
    #[test]\nfn adds() {\n    assert_eq!(tiny::two(), 2);\n}\n";
const CARGO_MANIFEST: &str =
    "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[dependencies]\ntiny = \"1\"\n";
const GO_MAIN: &str = "package main\n\nimport (\n\t\"fmt\"\n\n\t\"example.com/tiny\"\n)\n\n\
    func main() {\n\tfmt.Println(tiny.Two())\n}\n";
const GO_TEST: &str = "package main\n\nimport (\n\t\"testing\"\n\n\t\"example.com/tiny\"\n)\n\n\
    func TestTwo(t *testing.T) {\n\tif tiny.Two() != 2 {\n\t\tt.Fatal()\n\t}\n}\n";
const GO_MODULE: &str = "module example.com/app\n\ngo 1.19\n\nrequire example.com/tiny v1.0.0\n";
const PYTHON_TEST: &str = "import unittest\n\nclass Test(unittest.TestCase):\n    def test_adds(self):\n        \
    self.assertEqual(1 + 1, 2)\n";
/// Creates the package `tiny` in the directory `wheels`.
const WHEEL: &str = "mkdir wheels && python3 -c \"
import zipfile
info = 'tiny-1.0.dist-info/'
with zipfile.ZipFile('wheels/tiny-1.0-py3-none-any.whl', 'w') as wheel:
    wheel.writestr('tiny.py', 'two = 2')
    wheel.writestr(info + 'METADATA', 'Metadata-Version: 2.1\\nName: tiny\\nVersion: 1.0\\n')
    wheel.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr(info + 'RECORD', '')
\"";

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "git commit",
        place: Place::Suite,
        line: "echo one > one && git add -A && git commit -qm one && git checkout -q -b side && echo two > two && \
               git add two && git commit -q --amend -m both && git stash list && git log --oneline && git show -q && \
               git blame one && git gc -q && git fsck",
        ..PLAIN
    },
    Row {
        name: "git rebase",
        place: Place::Suite,
        setup: "git checkout -q -b side && echo side > side && git add side && git commit -qm side && \
                git checkout -q main && echo main > main && git add main && git commit -qm main",
        line: "git checkout -q side && git rebase -q main && git rebase -q -i --exec true HEAD~1 && \
               git checkout -q main && git merge -q side && git cherry-pick --allow-empty HEAD && \
               git reset -q --hard HEAD~1 && git bisect start -q HEAD HEAD~1 && git bisect reset -q",
        ..PLAIN
    },
    Row {
        name: "git worktree",
        place: Place::Suite,
        line: "git worktree add -q -b other trees/other && (cd trees/other && echo x > x && git add x && \
               git commit -qm x) && git merge -q other && git worktree remove trees/other && test -f x",
        ..PLAIN
    },
    Row {
        name: "rust without cargo",
        place: Place::Suite,
        needs: "rustc --version && cc --version",
        files: &[("lib.rs", "#[test]\nfn adds() {\n    assert_eq!(1 + 1, 2);\n}\n")],
        line: "rustc --test lib.rs -o tests && ./tests",
        ..PLAIN
    },
    Row {
        name: "rust, vendored",
        needs: "cargo --version && cc --version",
        files: &[
            ("Cargo.toml", CARGO_MANIFEST),
            ("src/main.rs", CARGO_MAIN),
            (
                "vendor/tiny/Cargo.toml",
                "[package]\nname = \"tiny\"\nversion = \"1.0.0\"\nedition = \"2021\"\n",
            ),
            ("vendor/tiny/src/lib.rs", "pub fn two() -> i32 {\n    2\n}\n"),
            ("vendor/tiny/.cargo-checksum.json", "{\"files\": {}}"),
            (
                ".cargo/config.toml",
                "[source.crates-io]\nreplace-with = \"vendored\"\n[source.vendored]\ndirectory = \"vendor\"\n",
            ),
        ],
        line: "cargo build && cargo test && cargo run -q && cargo build --release && cargo doc --no-deps",
        ..PLAIN
    },
    Row {
        name: "rust, registry",
        needs: "cargo --version && cc --version",
        files: &[
            ("Cargo.toml", CARGO_MANIFEST),
            ("src/main.rs", CARGO_MAIN),
            (
                ".cargo/config.toml",
                "[source.crates-io]\nreplace-with = \"local\"\n[source.local]\n\
                 registry = \"sparse+http://HOST/index/\"\n",
            ),
        ],
        registry: Some(Registry::Cargo),
        line: "cargo fetch && cargo build && cargo test && cargo run -q && cargo build --offline",
        landlock: NO_SOCKETS,
        ..PLAIN
    },
    Row {
        name: "node test",
        place: Place::Suite,
        needs: "node -e \"require('node:test')\"",
        files: &[("test/adds.test.js", NODE_TEST)],
        line: "node --test",
        ..PLAIN
    },
    Row {
        name: "node watch",
        place: Place::Suite,
        needs: "node --watch -e 0 || test \"$(node -p 'parseInt(process.versions.node) >= 20')\" = true",
        files: &[("test/adds.test.js", NODE_TEST)],
        line: "node --test --watch test/adds.test.js > log 2>&1 &\n\
               watcher=$!\n\
               for i in $(seq 300); do grep -q 'pass 1' log && break; sleep 0.1; done\n\
               grep -q 'pass 1' log\n\
               echo \"test('again', () => {});\" >> test/adds.test.js\n\
               for i in $(seq 300); do grep -q 'pass 2' log && break; sleep 0.1; done\n\
               grep -q 'pass 2' log || { cat log; exit 1; }\n\
               kill $watcher",
        ..PLAIN
    },
    Row {
        name: "node, local packages",
        needs: "npm --version",
        files: &[
            (
                "package.json",
                "{\"name\": \"app\", \"version\": \"1.0.0\", \"scripts\": {\"test\": \"node --test\", \
                 \"build\": \"node build.js\"}, \"dependencies\": {\"tiny\": \"file:./tiny\"}}",
            ),
            (
                "tiny/package.json",
                "{\"name\": \"tiny\", \"version\": \"1.0.0\", \"main\": \"index.js\", \"bin\": {\"tiny\": \"bin.js\"}}",
            ),
            ("tiny/index.js", "exports.two = () => 2;\n"),
            ("tiny/bin.js", "#!/usr/bin/env node\nconsole.log('tiny');\n"),
            ("build.js", "require('fs').writeFileSync('out.txt', String(require('tiny').two()));\n"),
            ("test/adds.test.js", NODE_TEST),
        ],
        line: "npm install --no-audit && npm ci --no-audit && npm test && npm run build && npx tiny && cat out.txt",
        ..PLAIN
    },
    Row {
        name: "node, registry",
        needs: "npm --version",
        files: &[("package.json", "{\"name\": \"app\", \"version\": \"1.0.0\"}")],
        registry: Some(Registry::Npm),
        line: "npm install --no-audit --registry http://HOST/ tiny && node -p \"require('tiny').two()\"",
        landlock: NO_SOCKETS,
        ..PLAIN
    },
    Row {
        name: "python unittest",
        place: Place::Suite,
        needs: "python3 --version",
        files: &[
            ("test_adds.py", PYTHON_TEST),
            (
                "pool.py",
                "import multiprocessing\n\nif __name__ == '__main__':\n    with multiprocessing.Pool(2) as pool:\n        \
                 assert pool.map(abs, [1, -2]) == [1, 2]\n",
            ),
        ],
        line: "python3 -m unittest && python3 pool.py",
        ..PLAIN
    },
    Row {
        name: "python, local packages",
        needs: "python3 -c 'import ensurepip, venv'",
        files: &[("test_adds.py", PYTHON_TEST)],
        setup: WHEEL,
        line: "python3 -m venv .venv && .venv/bin/pip install --no-index --find-links wheels tiny && \
               .venv/bin/python -m unittest && .venv/bin/python -c 'import tiny; assert tiny.two == 2'",
        ..PLAIN
    },
    Row {
        name: "python, registry",
        needs: "python3 -c 'import ensurepip, venv'",
        registry: Some(Registry::Pip),
        line: "python3 -m venv .venv && .venv/bin/pip install --trusted-host \"$(echo HOST | cut -d: -f1)\" \
               --index-url http://HOST/simple tiny && .venv/bin/python -c 'import tiny; assert tiny.two == 2'",
        landlock: NO_SOCKETS,
        ..PLAIN
    },
    Row {
        name: "go, vendored",
        needs: "go version",
        files: &[
            ("go.mod", GO_MODULE),
            ("main.go", GO_MAIN),
            ("main_test.go", GO_TEST),
            ("vendor/modules.txt", "# example.com/tiny v1.0.0\n## explicit\nexample.com/tiny\n"),
            ("vendor/example.com/tiny/tiny.go", "package tiny\n\nfunc Two() int { return 2 }\n"),
        ],
        line: "go build ./... && go test ./... && go vet ./... && go run .",
        ..PLAIN
    },
    Row {
        name: "go, registry",
        needs: "go version",
        files: &[("go.mod", GO_MODULE), ("main.go", GO_MAIN), ("main_test.go", GO_TEST)],
        registry: Some(Registry::Go),
        line: "export GOPROXY=http://HOST GONOSUMDB='*' GOFLAGS=\"$GOFLAGS -mod=mod\"\n\
               go mod tidy && go build ./... && go test ./... && go run .",
        landlock: NO_SOCKETS,
        ..PLAIN
    },
    Row {
        name: "c and make",
        needs: "cc --version && make --version",
        files: &[("add.c", C_PROGRAM), ("Makefile", "add: add.c\n\tcc -o $@ $<\n\ntest: add\n\t./add\n")],
        line: "make && make -j 2 test",
        ..PLAIN
    },
    Row {
        name: "debugger",
        needs: "gdb --version && cc --version",
        files: &[("add.c", C_PROGRAM)],
        line: "cc -g -o add add.c && gdb -q -batch -ex 'break add' -ex run -ex backtrace -ex continue ./add > log && \
               grep -q 'add (a=1, b=2)' log",
        ..PLAIN
    },
    Row {
        name: "strace",
        needs: "strace --version && cc --version",
        files: &[("add.c", C_PROGRAM)],
        line: "cc -o add add.c && strace -f -o log ./add && grep -q 'write(1, \"3' log",
        ..PLAIN
    },
    Row {
        name: "terminal",
        place: Place::Suite,
        needs: "python3 --version",
        line: "python3 -c \"import pty, sys; sys.exit(pty.spawn(['sh', '-c', 'test -t 0 && tty']))\"",
        ..PLAIN
    },
    Row {
        name: "server and client",
        place: Place::Suite,
        needs: "python3 --version",
        line: "python3 -m http.server 8123 --bind 127.0.0.1 > log 2>&1 &\n\
               server=$!\n\
               python3 -c \"\n\
               import time, urllib.request\n\
               for _ in range(300):\n    \
                   try:\n        \
                       print(urllib.request.urlopen('http://localhost:8123/README.md').read().decode())\n        \
                       break\n    \
                   except OSError:\n        \
                       time.sleep(0.1)\n\
               else:\n    \
                   raise SystemExit('no answer')\n\
               \"\n\
               kill $server",
        landlock: NO_SOCKETS,
        ..PLAIN
    },
    Row {
        name: "chromium",
        needs: "chromium --version",
        files: &[("page.html", "<script>document.write('one' + 'two')</script>\n")],
        line: "set -- --headless --no-sandbox --disable-gpu --no-proxy-server\n\
               chromium \"$@\" --dump-dom \"file://$PWD/page.html\" > dom 2> log || { cat log; exit 1; }\n\
               grep -q onetwo dom\n\
               chromium \"$@\" --screenshot=\"$PWD/page.png\" \"file://$PWD/page.html\" 2>> log\n\
               test -s page.png",
        landlock: NO_SOCKETS,
        ..PLAIN
    },
];
