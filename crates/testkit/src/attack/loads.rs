//! Programs with more rights that load what a repository or a command wrote: modules and settings of the working
//! directory, programs found in the project, and packages that a language server loads.

use super::case::{Case, attack};
use super::{Kind, Trust};

/// A server of the user that starts in the project: the command, a file of the project, and its text. `ran` shows that the
/// project's code ran.
const SERVERS: &[(&str, &str, &str, &str)] = &[
    (
        "npx-program",
        r#"["npx", "-y", "evil-server"]"#,
        "node_modules/.bin/evil-server",
        "#!/bin/sh\ntouch @P/ran\n",
    ),
    ("npx-shell", r#"["npx", "-y", "-c", "true"]"#, ".npmrc", "script-shell=@P/evil.sh\n"),
    ("npx-options", r#"["npx", "-y", "-c", "node -e 1"]"#, ".npmrc", "node-options=--require=@P/evil.cjs\n"),
    ("npm-script", r#"["npm", "run", "serve"]"#, "package.json", r#"{"scripts": {"serve": "touch @P/ran"}}"#),
    (
        "npm-start",
        r#"["npm", "start", "--silent"]"#,
        "package.json",
        r#"{"scripts": {"prestart": "touch @P/ran", "start": "true"}}"#,
    ),
    ("python-module", r#"["python3", "-m", "evilmod"]"#, "evilmod.py", "open('@P/ran', 'w')\n"),
    ("python-package", r#"["python3", "-m", "evilmod"]"#, "evilmod/__main__.py", "open('@P/ran', 'w')\n"),
    (
        "python-package-init",
        r#"["python3", "-m", "evilmod.server"]"#,
        "evilmod/__init__.py",
        "open('@P/ran', 'w')\n",
    ),
    ("python-standard-module", r#"["python3", "-m", "json.tool"]"#, "argparse.py", "open('@P/ran', 'w')\n"),
    ("python-one-line", r#"["python3", "-c", "import colorsys"]"#, "colorsys.py", "open('@P/ran', 'w')\n"),
    (
        "python-script-of-the-user",
        r#"["python3", "-c", "import sys; sys.path.insert(0, ''); import colorsys"]"#,
        "colorsys.py",
        "open('@P/ran', 'w')\n",
    ),
    (
        "node-require",
        r#"["node", "-e", "require('evil-dep')"]"#,
        "node_modules/evil-dep/index.js",
        "require('fs').writeFileSync('@P/ran', '')\n",
    ),
    (
        "node-import",
        r#"["node", "--input-type=module", "-e", "import 'evil-dep'"]"#,
        "node_modules/evil-dep/index.js",
        "require('fs').writeFileSync('@P/ran', '')\n",
    ),
    (
        "node-preload",
        r#"["node", "-r", "evil-dep", "-e", "1"]"#,
        "node_modules/evil-dep/index.js",
        "require('fs').writeFileSync('@P/ran', '')\n",
    ),
    (
        "node-environment-file",
        r#"["node", "--env-file-if-exists=.env", "-e", "require('child_process').spawnSync('node', ['-e', '1'])"]"#,
        ".env",
        "NODE_OPTIONS=--require=@P/evil.cjs\n",
    ),
    ("make", r#"["make", "serve"]"#, "Makefile", "serve:\n\ttouch @P/ran\n"),
    ("relative-program", r#"["./tools/server"]"#, "tools/server", "#!/bin/sh\ntouch @P/ran\n"),
    ("relative-script", r#"["sh", "tools/server"]"#, "tools/server", "#!/bin/sh\ntouch @P/ran\n"),
    ("git", r#"["git", "status"]"#, "tools/server", ""),
    ("bun", r#"["@H/fake/bun", "x", "server"]"#, "bunfig.toml", "preload = [\"./evil.ts\"]\n"),
    ("deno", r#"["@H/fake/deno", "run", "server"]"#, "deno.json", "{}"),
    ("uvx", r#"["@H/fake/uvx", "server"]"#, "uv.toml", "index-url = \"http://127.0.0.1:1\"\n"),
    ("mise", r#"["@H/fake/mise", "exec", "server"]"#, "mise.toml", "[env]\n"),
    ("cargo", r#"["@H/fake/cargo", "run"]"#, ".cargo/config.toml", "[build]\n"),
    ("asdf", r#"["@H/fake/asdf", "exec", "server"]"#, ".tool-versions", "node system\n"),
];

/// Programs that read a setting of their working directory. Each stands for the real one.
const READ: &[(&str, &str)] = &[
    ("bun", "bunfig.toml"),
    ("deno", "deno.json"),
    ("uvx", "uv.toml"),
    ("mise", "mise.toml"),
    ("cargo", ".cargo/config.toml"),
    ("asdf", ".tool-versions"),
];

/// Language servers that are found in a project: the file, a file at the root of the project, and the program.
const FOUND: &[(&str, &str, &str, &str)] = &[
    ("typescript", "a.ts", "package.json", "node_modules/.bin/typescript-language-server"),
    ("typescript-jsx", "a.tsx", "tsconfig.json", "node_modules/.bin/typescript-language-server"),
    ("eslint", "a.js", "package.json", "node_modules/.bin/vscode-eslint-language-server"),
    ("vue", "a.vue", "package.json", "node_modules/.bin/vue-language-server"),
    ("svelte", "a.svelte", "package.json", "node_modules/.bin/svelteserver"),
    ("astro", "a.astro", "package.json", "node_modules/.bin/astro-ls"),
    ("biome", "a.json", "biome.json", "node_modules/.bin/biome"),
    ("oxlint", "a.ts", ".oxlintrc.json", "node_modules/.bin/oxc_language_server"),
    ("pyright", "a.py", "pyproject.toml", "node_modules/.bin/pyright-langserver"),
    ("basedpyright", "a.py", "requirements.txt", "node_modules/.bin/basedpyright-langserver"),
    ("bash", "a.sh", "README.md", "node_modules/.bin/bash-language-server"),
    ("yaml", "a.yaml", "package.json", "node_modules/.bin/yaml-language-server"),
    ("prisma", "a.prisma", "schema.prisma", "node_modules/.bin/prisma-language-server"),
    ("php", "a.php", "composer.json", "node_modules/.bin/intelephense"),
    ("dockerfile", "Dockerfile", "README.md", "node_modules/.bin/docker-langserver"),
];

/// Formatters that are found in a project: the file, the sign of the project, its text, and the program.
const FORMATTERS: &[(&str, &str, &str, &str, &str)] = &[
    (
        "prettier",
        "a.ts",
        "package.json",
        r#"{"devDependencies": {"prettier": "3"}}"#,
        "node_modules/.bin/prettier",
    ),
    (
        "prettier-markdown",
        "a.md",
        "package.json",
        r#"{"dependencies": {"prettier": "3"}}"#,
        "node_modules/.bin/prettier",
    ),
    ("biome", "a.ts", "biome.json", "{}", "node_modules/.bin/biome"),
    ("oxfmt", "a.ts", "package.json", r#"{"devDependencies": {"oxfmt": "1"}}"#, "node_modules/.bin/oxfmt"),
    ("pint", "a.php", "composer.json", r#"{"require-dev": {"laravel/pint": "1"}}"#, "vendor/bin/pint"),
];

/// What a server of the user's own installation loads from the project, and the file that makes it start.
const PACKAGES: &[(&str, &str, &str, &str)] = &[
    ("typescript-language-server", "a.ts", "package.json", "node_modules/typescript/lib/tsserver.js"),
    ("vue-language-server", "a.vue", "package.json", "node_modules/typescript/lib/typescript.js"),
    ("svelteserver", "a.svelte", "package.json", "node_modules/svelte/compiler.cjs"),
    ("astro-ls", "a.astro", "package.json", "node_modules/prettier-plugin-astro/index.js"),
    ("vscode-eslint-language-server", "a.js", "package.json", "node_modules/eslint/lib/api.js"),
    ("pyright-langserver", "a.py", "pyproject.toml", ".venv/bin/python"),
    ("gopls", "a.go", "go.mod", "tools/gopackagesdriver"),
    ("jdtls", "A.java", "pom.xml", "mvnw"),
    ("elixir-ls", "a.ex", "mix.exs", "mix.exs"),
    ("clangd", "a.c", "compile_flags.txt", "tools/driver"),
];

/// Programs that this program runs by name, which a directory of the search path in the project must not replace.
const PROGRAMS: &[&str] = &["git", "rg", "sh", "bash", "node", "bwrap", "python3", "npx", "cat", "env"];

/// A language server in Python that runs a file of the project, as servers run packages of the project.
const LANGUAGE_SERVER: &str = r#"import json, os, subprocess, sys
def read():
    length = 0
    while True:
        line = sys.stdin.buffer.readline()
        if not line:
            sys.exit(0)
        if line.lower().startswith(b'content-length'):
            length = int(line.split(b':')[1])
        if not line.strip():
            return json.loads(sys.stdin.buffer.read(length))
def send(value):
    body = json.dumps(value).encode()
    sys.stdout.buffer.write(b'Content-Length: %d\r\n\r\n' % len(body) + body)
    sys.stdout.buffer.flush()
while True:
    message = read()
    if message.get('method') == 'initialize':
        root = (message['params'].get('rootUri') or 'file://' + os.getcwd())[len('file://'):]
        path = os.path.join(root, sys.argv[1])
        if os.path.exists(path):
            subprocess.run(['sh', path], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        send({'jsonrpc': '2.0', 'id': message['id'], 'result': {'capabilities': {'textDocumentSync': 1}}})
    elif 'id' in message and 'method' in message:
        send({'jsonrpc': '2.0', 'id': message['id'], 'result': None})
"#;

/// What a loaded package does: it writes the home and connects.
const PAYLOAD: &str = "echo x > @H/work/made\necho x > @H/.cache/made\ncurl -s -m 3 --noproxy '*' @L/x\n";

pub(super) fn cases() -> Vec<Case> {
    [servers(), starters(), found(), formatters(), packages(), search_path()].into_iter().flatten().collect()
}

fn load(name: &str) -> Case {
    attack(Kind::Loads, name)
}

/// Files that several rows use.
fn prepared(case: Case) -> Case {
    let case = case
        .script("evil.sh", "touch @P/ran")
        .file("evil.cjs", "require('fs').writeFileSync('@P/ran', '')\n")
        .git_config("[core]\n\tfsmonitor = \"touch @P/fsmonitor-ran;\"")
        .absent("ran")
        .absent("fsmonitor-ran");
    READ.iter().fold(case, |case, (program, file)| {
        case.script(format!("@H/fake/{program}"), format!("test -e {file} && touch @P/ran; exit 0"))
    })
}

fn servers() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, command, path, text) in SERVERS {
        let user =
            format!(r#"{{"mcp": {{"s": {{"type": "local", "command": {command}, "timeout": 2500}}}}}}"#);
        let case = prepared(load(&format!("server-of-the-user/{name}"))).user(user);
        let case = case.script(*path, "").file(*path, *text).run(&["mcp", "list"]);
        let case = if name.starts_with("npx") { case.env("npm_config_offline", "true") } else { case };
        cases.push(if *name == "python-module" { case.short() } else { case });
    }
    cases.push(
        load("server-of-the-user/npmrc-registry")
            .no_contact()
            .user(r#"{"mcp": {"s": {"type": "local", "command": ["npx", "-y", "some-server"], "timeout": 4000}}}"#)
            .file(".npmrc", "registry=@L/\nfetch-retries=0\n")
            .run(&["mcp", "list"]),
    );
    let placed = |name: &str, more: &str| {
        prepared(load(&format!("server-of-the-user/{name}")))
            .user(format!(r#"{{"mcp": {{"s": {{"type": "local", "command": ["python3", "-m", "evilmod"], "timeout": 2500, {more}}}}}}}"#))
            .file("evilmod.py", "open('@P/ran', 'w')\n")
            .file("sub/evilmod.py", "open('@P/ran', 'w')\n")
            .run(&["mcp", "list"])
    };
    cases.push(placed("named-directory", r#""cwd": "sub""#));
    cases.push(placed("named-own-directory", r#""cwd": ".""#));
    cases.push(placed("python-path", r#""environment": {"PYTHONPATH": "."}"#));
    cases.push(
        prepared(load("server-of-the-user/by-the-server"))
            .user(r#"{"mcp": {"s": {"type": "local", "command": ["python3", "-m", "evilmod"], "timeout": 2500}}}"#)
            .file("evilmod.py", "open('@P/ran', 'w')\n")
            .get(&["/mcp", "/experimental/tool/ids", "/command"]),
    );
    cases.push(
        prepared(load("server-of-the-user/at-a-prompt"))
            .user(r#"{"mcp": {"s": {"type": "local", "command": ["python3", "-m", "evilmod"], "timeout": 2500}}}"#)
            .file("evilmod.py", "open('@P/ran', 'w')\n")
            .prompt(),
    );
    cases
}

/// Other programs of the user's configuration that start in the project.
fn starters() -> Vec<Case> {
    let case = |name: &str, user: &str| {
        prepared(load(&format!("starter/{name}"))).user(user).file("evilmod.py", "open('@P/ran', 'w')\n")
    };
    let write = [("write", r#"{"filePath": "new.txt", "content": "x\n"}"#)];
    vec![
        case("formatter", r#"{"formatter": {"mine": {"command": ["python3", "-m", "evilmod", "$FILE"], "extensions": [".txt"]}}}"#).calls(write),
        case("language-server", r#"{"lsp": {"mine": {"command": ["python3", "-m", "evilmod"], "extensions": [".txt"]}}}"#).calls(write),
        case("formatter-program", r#"{"formatter": {"mine": {"command": ["tools/fmt", "$FILE"], "extensions": [".txt"]}}}"#)
            .script("tools/fmt", "touch @P/ran")
            .calls(write),
        case("language-server-program", r#"{"lsp": {"mine": {"command": ["./tools/ls"], "extensions": [".txt"]}}}"#)
            .script("tools/ls", "touch @P/ran")
            .calls(write),
        case("hook", "{}")
            .uncontrolled("hooks of the user are in another file")
            .file("@H/.config/codewright/codewright.json", r#"{"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "python3 -m evilmod"}]}]}}"#)
            .prompt(),
        case("agent", r#"{"agent": {"other": {"type": "acp", "command": ["python3", "-m", "evilmod"], "mode": "primary"}}}"#)
            .uncontrolled("another agent is not started without a prompt to it")
            .run(&["run", "--agent", "other", "hello"]),
        case("plugin-runtime", "{}")
            .uncontrolled("node itself reads nothing from its working directory")
            .file("@H/.config/opencode/plugin/mine.js", "import { tool } from '@opencode-ai/plugin';\nexport const P = async () => ({});\n")
            .file("node_modules/@opencode-ai/plugin/package.json", r#"{"name": "@opencode-ai/plugin", "type": "module", "exports": "./index.js"}"#)
            .file("node_modules/@opencode-ai/plugin/index.js", "import { writeFileSync } from 'node:fs';\nwriteFileSync('@P/ran', '');\nexport const tool = () => {};\n")
            .file("bunfig.toml", "preload = [\"./evil.cjs\"]\n")
            .file(".env", "NODE_OPTIONS=--require=@P/evil.cjs\n")
            .prompt(),
    ]
}

/// Language servers of an untrusted project, which has no control files and so no question.
fn found() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, file, root, program) in FOUND {
        let case = load(&format!("language-server-of-the-project/{name}"))
            .states(&[Trust::Untrusted])
            .user(r#"{"lsp": true}"#)
            .file(*root, "{}")
            .script(*program, "touch @P/ran")
            .file(*file, "x\n")
            .calls([("read", &format!(r#"{{"filePath": "{file}"}}"#))])
            .calls([("write", &format!(r#"{{"filePath": "{file}", "content": "y\n"}}"#))])
            .absent("ran");
        cases.push(if *name == "typescript" { case.short() } else { case });
    }
    cases
}

fn formatters() -> Vec<Case> {
    FORMATTERS
        .iter()
        .map(|(name, file, sign, text, program)| {
            let case = load(&format!("formatter-of-the-project/{name}"))
                .states(&[Trust::Untrusted])
                .user(r#"{"formatter": true}"#)
                .env("OPENCODE_EXPERIMENTAL_OXFMT", "1")
                .file(*sign, *text)
                .script(*program, "touch @P/ran")
                .file("node_modules/prettier/package.json", "{}")
                .file("node_modules/oxfmt/package.json", "{}")
                .calls([("write", &format!(r#"{{"filePath": "{file}", "content": "y\n"}}"#))])
                .absent("ran");
            if *name == "prettier" { case.short() } else { case }
        })
        .collect()
}

/// A language server of the user that loads a package which a command of the model wrote.
fn packages() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, file, root, package) in PACKAGES {
        for trust in [Trust::Untrusted, Trust::All] {
            let case = load(&format!("package-for-a-language-server/{name}"))
                .no_contact()
                .states(&[trust])
                .user(r#"{"lsp": true}"#)
                .file(*root, "{}")
                .file(*file, "x\n")
                .file("@H/work/kept", "x")
                .file("@H/.cache/kept", "x")
                .file("@H/fake/ls.py", LANGUAGE_SERVER)
                .script(format!("@H/fake/{name}"), format!("exec python3 @H/fake/ls.py {package}"))
                .env("PATH", "@H/fake:/usr/local/bin:/usr/bin:/bin")
                .file("payload", PAYLOAD)
                .file("one.sh", format!("mkdir -p $(dirname {package}); cp payload {package}\n"))
                .bash("sh one.sh")
                .calls([("write", &format!(r#"{{"filePath": "{file}", "content": "y\n"}}"#))])
                .absent("@H/work/made")
                .absent("@H/.cache/made");
            let mut case = case;
            if trust == Trust::All {
                case.name = format!("{}/in-a-trusted-project", case.name);
            }
            cases.push(if case.name.ends_with("/typescript-language-server") { case.short() } else { case });
        }
    }
    cases
}

/// Directories of the search path that lie in the project.
fn search_path() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, entry) in
        [("relative", "."), ("bin", "node_modules/.bin"), ("empty", ""), ("absolute", "@P/node_modules/.bin")]
    {
        let case = load(&format!("search-path/{name}"))
            .uncontrolled("the search path is the user's own")
            .env("PATH", format!("{entry}:/usr/local/bin:/usr/bin:/bin"))
            .file("@H/.config/opencode/plugin/mine.js", "export const P = async () => ({});\n")
            .user(r#"{"mcp": {"s": {"type": "local", "command": ["npx", "-y", "x"], "timeout": 500}}}"#)
            .run(&["models"])
            .calls([("grep", r#"{"pattern": "x"}"#)])
            .calls([("write", r#"{"filePath": "new.txt", "content": "x\n"}"#)])
            .get(&["/vcs", "/vcs/status"]);
        let case = PROGRAMS.iter().fold(case, |case, program| {
            let text = format!("echo {program} >> @P/ran");
            case.script(*program, text.clone()).script(format!("node_modules/.bin/{program}"), text)
        });
        cases.push(case.absent("ran"));
    }
    cases
}
