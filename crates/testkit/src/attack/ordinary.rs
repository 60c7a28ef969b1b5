//! Ordinary use of what the newer attacks are about: commands in the sandbox, files that look like control files, the
//! user's own servers and plugins, teams, plugins of a trusted repository, and imports. Nothing here needs a reply.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::case::{Case, harmless};
use super::people::with_team;
use super::scene::Scene;
use super::{Kind, Trust};
use crate::run::Run;

/// Commands with the default configuration, and a file that shows that they worked.
const COMMANDS: &[(&str, &str, &str)] = &[
    ("redirect", "echo x > made", "made"),
    ("script", "sh build.sh > made", "made"),
    ("nested-directories", "mkdir -p a/b/c && touch a/b/c/made", "a/b/c/made"),
    ("temporary-file", "t=$(mktemp) && echo x > $t && cp $t made", "made"),
    ("temporary-directory", "d=$(mktemp -d) && touch $d/x && ls $d > made", "made"),
    ("own-temporary-name", "echo x > /tmp/mine.txt && cp /tmp/mine.txt made", "made"),
    ("link-inside", "ln -s README.md made && cat made", "made"),
    ("hard-link", "ln README.md made", "made"),
    ("archive", "tar -czf made README.md && tar -tzf made", "made"),
    (
        "unpacked",
        "tar -cf a.tar README.md && mkdir out && tar -xf a.tar -C out && cp out/README.md made",
        "made",
    ),
    ("permissions", "cp build.sh made && chmod 755 made && ./made", "made"),
    ("python", "python3 -c \"open('made', 'w').write('x')\"", "made"),
    ("python-module", "printf 'x = 1\\n' > mod.py && python3 -c 'import mod; open(\"made\", \"w\")'", "made"),
    ("python-json", "echo '{}' | python3 -m json.tool > made", "made"),
    (
        "python-server",
        "python3 -c \"import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); c = socket.create_connection(s.getsockname()); open('made', 'w')\"",
        "made",
    ),
    ("node", "node -e \"require('fs').writeFileSync('made', 'x')\"", "made"),
    (
        "node-module",
        "mkdir -p node_modules/dep && echo 'module.exports = 1' > node_modules/dep/index.js && node -e \"require('dep'); require('fs').writeFileSync('made', '')\"",
        "made",
    ),
    (
        "npm-script",
        "echo '{\"scripts\": {\"build\": \"touch made\"}}' > package.json && npm run --silent build",
        "made",
    ),
    ("make", "printf 'all:\\n\\ttouch made\\n' > Makefile && make", "made"),
    ("compiler", "printf 'int main(void) { return 0; }\\n' > a.c && cc -o made a.c && ./made", "made"),
    ("perl", "perl -e 'open(F, \">\", \"made\")'", "made"),
    ("awk", "awk '{print > \"made\"}' README.md", "made"),
    ("sed-in-place", "cp README.md made && sed -i s/Project/Thing/ made", "made"),
    ("find-and-run", "find . -maxdepth 1 -name '*.md' -exec cp {} made \\;", "made"),
    ("git-commit", "echo x > made && git add made && git commit -q -m 'Add it' && git log --oneline", "made"),
    ("git-branch", "git checkout -q -b topic && git branch --show-current > made", "made"),
    (
        "git-merge",
        "git checkout -q -b topic && touch made && git add made && git commit -q -m x && git checkout -q main && git merge -q topic",
        "made",
    ),
    (
        "git-rebase",
        "git checkout -q -b topic && touch made && git add made && git commit -q -m x && git rebase -q main",
        "made",
    ),
    ("git-stash", "echo x >> README.md && git stash -q && git stash pop -q && touch made", "made"),
    ("git-tag", "git tag v1 && git tag > made", "made"),
    ("git-reset", "git commit -q --allow-empty -m x && git reset -q --hard HEAD~1 && touch made", "made"),
    ("git-restore", "rm README.md && git restore README.md && cp README.md made", "made"),
    ("git-archive", "git archive -o made HEAD", "made"),
    ("git-bundle", "git bundle create -q made HEAD", "made"),
    ("git-worktree-inside", "git worktree add -q tree && touch tree/made", "tree/made"),
    ("git-clone-inside", "git clone -q . copy && touch copy/made", "copy/made"),
    (
        "git-ignored",
        "echo target > .gitignore && mkdir target && touch target/made && git status --short",
        "target/made",
    ),
    ("git-grep", "git grep -n Project > made", "made"),
    ("git-notes", "git notes add -m x && git notes show > made", "made"),
    ("background", "(sleep 0.1; touch made) & wait", "made"),
    ("pipeline", "cat README.md | tr a-z A-Z | tee made", "made"),
    ("here-document", "cat > made <<'E'\none\nE", "made"),
    ("environment", "X=1 env | grep X= > made", "made"),
    ("timeout", "timeout 5 touch made", "made"),
    (
        "caches",
        "mkdir -p \"${XDG_CACHE_HOME:-/tmp/c}\" && echo x > \"${GOCACHE:-/tmp}/x\" && cp \"${GOCACHE:-/tmp}/x\" made",
        "made",
    ),
    ("caches-again", "echo x > \"${GOCACHE:-/tmp}/kept\"; cat \"${GOCACHE:-/tmp}/kept\" > made", "made"),
    ("beside-private-files", "grep -r Project . > made", "made"),
    ("replaced", "echo a > made && echo b > made.new && mv made.new made", "made"),
    ("removed-directory", "mkdir gone && touch gone/x && rm -r gone && touch made", "made"),
    ("long-output", "seq 1 20000 > made; cat made | tail -n 2", "made"),
];

/// Files that are no control files, although their names look like some.
const FILES: &[&str] = &[
    ".gitignore",
    ".gitattributes",
    ".editorconfig",
    ".prettierrc",
    ".eslintrc.json",
    ".dockerignore",
    ".nvmrc",
    ".node-version",
    ".python-version",
    ".ruby-version",
    ".env.example",
    ".github/workflows/ci.yml",
    ".github/dependabot.yml",
    ".vscode/extensions.json",
    "tsconfig.json",
    "package.json",
    "Cargo.toml",
    "Makefile",
    "justfile",
    "Dockerfile",
    "docker-compose.yml",
    "pyproject.toml",
    "setup.py",
    "requirements.txt",
    "conftest.py",
    "go.mod",
    "Gemfile",
    "Rakefile",
    "pom.xml",
    "build.gradle",
    "CMakeLists.txt",
    "vite.config.ts",
    "AGENTS.md",
    "CLAUDE.md",
    "docs/opencode.md",
    "src/git/config.rs",
    "hooks/useThing.ts",
    "src/claude/settings.rs",
    "tests/fixtures/mise.toml.txt",
];

/// Files of the home that the user's own programs write, and whose directories may be missing.
const HOME: &[&str] = &[
    ".cache/mytool/x",
    ".config/mytool/x",
    ".local/share/mytool/x",
    ".local/state/mytool/x",
    ".mytool/x",
    ".mytool.log",
    ".npm/_logs/x",
    "work/x",
];

pub(super) fn cases() -> Vec<Case> {
    [commands(), files(), homes(), editors(), teams(), team_files(), plugins(), others()]
        .into_iter()
        .flatten()
        .collect()
}

fn ordinary(kind: Kind, name: &str) -> Case {
    harmless(kind, format!("ordinary/{name}")).apart()
}

fn commands() -> Vec<Case> {
    let case = |(name, command, made): &(&str, &str, &str)| {
        let case = ordinary(Kind::Exchanges, &format!("command/{name}"))
            .file("build.sh", "#!/bin/sh\necho built\n")
            .bash(command)
            .done()
            .present(*made);
        if ["script", "git-commit", "caches"].contains(name) { case.short() } else { case }
    };
    let mut cases: Vec<Case> = COMMANDS.iter().map(case).collect();
    cases.extend([
        ordinary(Kind::Exchanges, "command/two-in-one-session")
            .commands(
                &[],
                &[
                    "echo x > \"${GOCACHE:-/tmp}/kept\"; echo x > /tmp/kept",
                    "cat \"${GOCACHE:-/tmp}/kept\" /tmp/kept > made",
                ],
            )
            .done()
            .present("made"),
        ordinary(Kind::Exchanges, "command/while-planning")
            .commands(
                &["--agent", "plan"],
                &["git log --oneline", "ls -la && cat README.md", "grep -rn Project ."],
            )
            .done(),
        ordinary(Kind::Exchanges, "command/with-cargos-downloads")
            .file("@H/.cargo/config.toml", "[net]\n")
            .file("@H/.cargo/registry/cache/index-1/a.crate", "x")
            .bash("cat \"${CARGO_HOME:-none}/registry/cache/index-1/a.crate\" > made")
            .done()
            .present("made"),
        ordinary(Kind::Exchanges, "configured/write")
            .user(r#"{"sandbox": {"write": ["@O"]}}"#)
            .file("one.sh", "echo x > @O/made")
            .bash("sh one.sh")
            .done()
            .present("@O/made"),
        ordinary(Kind::Exchanges, "configured/read")
            .user(r#"{"sandbox": {"read": ["@H/.config/gh/hosts.yml"]}}"#)
            .file("@H/.config/gh/hosts.yml", "MY-HOSTS\n")
            .file("one.sh", "cat @H/.config/gh/hosts.yml")
            .bash("sh one.sh")
            .done()
            .model_gets("MY-HOSTS"),
    ]);
    cases
}

/// Ordinary files, created by the tool and by a command. Each row is a file.
fn files() -> Vec<Case> {
    let rows = |case: Case| {
        FILES.iter().fold(case, |case, path| {
            case.row(*path, move |scene| (!scene.path(path).exists()).then(|| format!("`{path}` is missing")))
        })
    };
    let call = |path: &&str| ("write".to_owned(), json!({"filePath": path, "content": "x\n"}).to_string());
    let by_tool = FILES.chunks(12).fold(ordinary(Kind::Identities, "file/write"), |case, paths| {
        case.rounds(&[], vec![paths.iter().map(call).collect()])
    });
    let line = |path: &&str| format!("mkdir -p \"$(dirname {path})\" && echo x > {path}\n");
    let script: String = FILES.iter().map(line).collect();
    let by_command = ordinary(Kind::Identities, "file/command").file("make.sh", script).bash("sh make.sh");
    vec![rows(by_tool), rows(by_command)]
}

/// Servers and plugins of the user that write the user's home. Each row is a file.
fn homes() -> Vec<Case> {
    let rows = |case: Case| {
        HOME.iter().fold(case.file("@H/work/kept", "x"), |case, path| {
            let path = *path;
            case.row(path, move |scene| {
                (!scene.path(&format!("@H/{path}")).exists())
                    .then(|| format!("`~/{path}` could not be written"))
            })
        })
    };
    let lines: String =
        HOME.iter().map(|path| format!("mkdir -p \"$(dirname @H/{path})\"; echo x > @H/{path}\n")).collect();
    let server = ordinary(Kind::Loads, "home/server")
        .user(r#"{"mcp": {"s": {"type": "local", "command": ["sh", "@H/tools/make.sh"], "timeout": 3000}}}"#)
        .file("@H/tools/make.sh", lines)
        .run(&["mcp", "list"]);
    let paths: Vec<String> = HOME.iter().map(|path| format!("'@H/{path}'")).collect();
    let plugin = format!(
        "import {{ mkdirSync, writeFileSync }} from 'node:fs';\nimport {{ dirname }} from 'node:path';\nfor (const path of [{}]) {{ try {{ mkdirSync(dirname(path), {{ recursive: true }}); writeFileSync(path, 'x'); }} catch {{}} }}\nexport const P = async () => ({{}});\n",
        paths.join(", ")
    );
    let plugin = ordinary(Kind::Loads, "home/plugin")
        .file("@H/.config/opencode/plugin/mine.js", plugin)
        .run(&["run", "hello"]);
    let mut cases = vec![rows(server), rows(plugin)];
    cases.extend([
        ordinary(Kind::Loads, "server/network")
            .user(r#"{"mcp": {"s": {"type": "local", "command": ["sh", "-c", "curl -s -m 3 @L/x > /dev/null; touch @P/made"], "timeout": 3000}}}"#)
            .run(&["mcp", "list"])
            .holds(|scene| scene.received().is_empty().then(|| "the server had no network".to_owned())),
        ordinary(Kind::Loads, "server/absolute-program")
            .user(r#"{"mcp": {"s": {"type": "local", "command": ["@H/tools/server"], "timeout": 3000}}}"#)
            .script("@H/tools/server", "touch @P/made")
            .run(&["mcp", "list"])
            .present("made"),
        ordinary(Kind::Loads, "server/project-as-an-argument")
            .user(r#"{"mcp": {"s": {"type": "local", "command": ["sh", "-c", "ls \"$0\" > \"$0/made\"", "@P"], "timeout": 3000}}}"#)
            .run(&["mcp", "list"])
            .present("made"),
        ordinary(Kind::Loads, "formatter/of-the-user")
            .user(r#"{"formatter": {"mine": {"command": ["sh", "@H/tools/fmt.sh", "$FILE"], "extensions": [".txt"]}}}"#)
            .file("@H/tools/fmt.sh", "echo formatted >> \"$1\"")
            .calls([("write", r#"{"filePath": "new.txt", "content": "x\n"}"#)])
            .done()
            .holds(|scene| {
                let text = std::fs::read_to_string(scene.path("new.txt")).unwrap_or_default();
                (!text.contains("formatted")).then(|| "the file was not formatted".to_owned())
            }),
        ordinary(Kind::Loads, "server-of-the-repository/trusted")
            .states(&[Trust::All])
            .config(r#"{"mcp": {"s": {"type": "local", "command": ["sh", "server.sh"], "timeout": 3000}}}"#)
            .file("server.sh", "touch made")
            .run(&["mcp", "list"])
            .present("made"),
        ordinary(Kind::Loads, "module-of-the-repository/trusted")
            .states(&[Trust::All])
            .config(r#"{"mcp": {"s": {"type": "local", "command": ["python3", "-m", "server"], "timeout": 3000}}}"#)
            .file("server.py", "open('made', 'w')\n")
            .run(&["mcp", "list"])
            .present("made"),
        ordinary(Kind::Loads, "hook/of-the-user")
            .file("@H/.config/codewright/codewright.json", r#"{"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "echo FROM-MY-HOOK"}]}]}}"#)
            .run_well(&["run", "hello"])
            .model_gets("FROM-MY-HOOK"),
        ordinary(Kind::Loads, "plugin/of-the-user")
            .file("@H/.config/opencode/plugin/mine.js", "export const P = async () => ({ 'shell.env': async (i, o) => { o.env.MINE = 'FROM-MY-PLUGIN'; } });\n")
            .bash("echo $MINE")
            .done()
            .model_gets("FROM-MY-PLUGIN"),
    ]);
    cases
}

/// The user's editor and git, while a server runs.
fn editors() -> Vec<Case> {
    const STAYS: &str = r#"{"mcp": {"s": {"type": "local", "command": ["sleep", "20"], "timeout": 500}}}"#;
    let case = |name: &str, act: fn(&Scene) -> Result<()>, kept: &'static str| {
        ordinary(Kind::Identities, &format!("while-a-server-runs/{name}")).user(STAYS).play(move |scene| {
            let (server, wire) = scene.serve("@P")?;
            wire.send("GET", "/mcp", &[], "")?;
            act(scene)?;
            std::thread::sleep(std::time::Duration::from_millis(900));
            scene.end(server)?;
            ensure!(scene.path(kept).exists(), "`{kept}` is gone");
            let entries = std::fs::read_dir(scene.path("@P"))?.flatten();
            let renamed = entries
                .map(|entry| entry.file_name().to_string_lossy().into_owned())
                .find(|name| name.starts_with("blocked-"));
            ensure!(renamed.is_none(), "a file of the user was renamed to {renamed:?}");
            Ok(())
        })
    };
    vec![
        case("settings", |scene| scene.write("opencode.json", "{}").map(drop), "opencode.json").short(),
        case(
            "settings-saved-by-renaming",
            |scene| {
                scene.write("opencode.json.tmp", "{}")?;
                Ok(std::fs::rename(scene.path("opencode.json.tmp"), scene.path("opencode.json"))?)
            },
            "opencode.json",
        ),
        case(
            "folder",
            |scene| scene.write(".opencode/command/x.md", "x").map(drop),
            ".opencode/command/x.md",
        ),
        case(
            "checkout",
            |scene| {
                scene.project.run_git(&["checkout", "-q", "-b", "topic"])?;
                scene.write(".opencode/agent/x.md", "x")?;
                scene.project.run_git(&["add", "-A"])?;
                scene.project.run_git(&["commit", "-q", "-m", "x"])?;
                scene.project.run_git(&["checkout", "-q", "main"])?;
                scene.project.run_git(&["checkout", "-q", "topic"]).map(drop)
            },
            ".opencode/agent/x.md",
        ),
        case("hook", |scene| scene.write(".git/hooks/pre-commit", "x").map(drop), ".git/hooks/pre-commit"),
        case("editor-tasks", |scene| scene.write(".vscode/tasks.json", "{}").map(drop), ".vscode/tasks.json"),
        case("environment", |scene| scene.write(".envrc", "x").map(drop), ".envrc"),
    ]
}

/// What members of a team do every day.
fn teams() -> Vec<Case> {
    let case = |name: &str, act: fn(&Scene, &super::people::Team<'_>) -> Result<()>| {
        ordinary(Kind::Principals, &format!("member/{name}"))
            .file("note.txt", "MY-NOTE\n")
            .file("sub/deep.txt", "MY-NOTE\n")
            .play(move |scene| with_team(scene, |team| act(scene, team)))
    };
    vec![
        case("session", |_, team| team.session("bob").map(drop)).short(),
        case("prompt", |_, team| {
            let session = team.session("bob")?;
            let (status, answer) = team.prompt("bob", &session, 5)?;
            ensure!(status == 200, "{answer}");
            Ok(())
        }),
        case("command-in-the-sandbox", |scene, team| {
            scene.script_calls(vec![vec![("bash".to_owned(), json!({"command": "echo x > made"}))]]);
            let session = team.session("bob")?;
            team.prompt("bob", &session, 0)?;
            ensure!(scene.path("made").exists(), "the command did not run");
            Ok(())
        }),
        case("edit", |scene, team| {
            scene.script_calls(vec![vec![("write".to_owned(), json!({"filePath": "made", "content": "x"}))]]);
            let session = team.session("bob")?;
            team.prompt("bob", &session, 0)?;
            ensure!(scene.path("made").exists(), "the file was not written");
            Ok(())
        }),
        case("files", |_, team| {
            let (status, file) = team.json("bob", "GET", "/file/content?path=note.txt", &Value::Null)?;
            ensure!(status == 200 && file.to_string().contains("MY-NOTE"), "{status} {file}");
            let (status, file) = team.json("bob", "GET", "/find?pattern=MY-NOTE", &Value::Null)?;
            ensure!(status == 200 && file.to_string().contains("deep.txt"), "{status} {file}");
            Ok(())
        }),
        case("own-rules-that-tighten", |scene, team| {
            scene.script_calls(vec![vec![("bash".to_owned(), json!({"command": "touch made"}))]]);
            let rules = json!({"permission": [{"permission": "bash", "pattern": "*", "action": "deny"}]});
            let (status, session) = team.json("bob", "POST", "/session", &rules)?;
            let id = session["id"].as_str().with_context(|| format!("{status} {session}"))?;
            team.prompt("bob", id, 0)?;
            ensure!(!scene.path("made").exists(), "the rule did not count");
            Ok(())
        }),
        case("title-and-fork", |_, team| {
            let session = team.session("bob")?;
            let (status, answer) =
                team.json("bob", "PATCH", &format!("/session/{session}"), &json!({"title": "new"}))?;
            ensure!(status == 200, "{answer}");
            let (status, answer) =
                team.json("bob", "POST", &format!("/session/{session}/fork"), &json!({}))?;
            ensure!(status == 200, "{answer}");
            Ok(())
        }),
    ]
}

/// Replies and files of members.
fn team_files() -> Vec<Case> {
    let attached = |name: &str, address: &'static str| {
        ordinary(Kind::Spellings, &format!("address/{name}"))
            .file("a note#1.txt", "MY-NOTE\n")
            .file("note.txt", "MY-NOTE\n")
            .play(move |scene| {
                with_team(scene, |team| {
                    let session = team.session("bob")?;
                    let part = json!({"type": "file", "mime": "text/plain", "url": scene.fill(address)});
                    let body = json!({"parts": [{"type": "text", "text": "t"}, part]});
                    let (status, answer) =
                        team.json("bob", "POST", &format!("/session/{session}/message"), &body)?;
                    ensure!(status == 200, "it was answered {status} {answer}");
                    Ok(())
                })
            })
            .model_gets("MY-NOTE")
    };
    vec![
        ordinary(Kind::Principals, "member/reply").user(r#"{"permission": {"bash": "ask"}}"#).play(|scene| {
            with_team(scene, |team| {
                scene.script_calls(vec![vec![("bash".to_owned(), json!({"command": "touch made"}))]]);
                let session = team.session("bob")?;
                team.prompt_async("bob", &session, 0)?;
                let request = team.request("/permission")?;
                let id = request["id"].as_str().context("no request")?.to_owned();
                let (status, answer) =
                    team.json("bob", "POST", &format!("/permission/{id}/reply"), &json!({"reply": "once"}))?;
                ensure!(status == 200, "{answer}");
                team.wait(|| Ok(scene.path("made").exists()))?;
                ensure!(scene.path("made").exists(), "the command did not run");
                Ok(())
            })
        }),
        ordinary(Kind::Principals, "member/command-with-a-file")
            .user(r#"{"command": {"look": {"template": "look at @$1"}}}"#)
            .file("note.txt", "MY-NOTE\n")
            .play(|scene| {
                with_team(scene, |team| {
                    let session = team.session("bob")?;
                    let body = json!({"command": "look", "arguments": "note.txt"});
                    let (status, answer) =
                        team.json("bob", "POST", &format!("/session/{session}/command"), &body)?;
                    ensure!(status == 200, "{answer}");
                    Ok(())
                })
            })
            .model_gets("MY-NOTE"),
        attached("plain", "file://@P/note.txt"),
        attached("with-lines", "file://@P/note.txt?start=1&end=1"),
        attached("encoded", "file://@P/n%6fte.txt"),
        attached("encoded-mark", "file://@P/a%20note%231.txt"),
        attached("data", "data:text/plain,MY-NOTE"),
    ]
}

/// Plugins of a trusted repository.
fn plugins() -> Vec<Case> {
    let case = |name: &str, text: &str| {
        ordinary(Kind::Principals, &format!("plugin/{name}"))
            .states(&[Trust::All])
            .file(".opencode/plugin/p.js", text)
            .file("note.txt", "MY-NOTE\n")
    };
    let calls = |name: &str, attempt: &str| {
        let text = format!(
            "import {{ writeFileSync }} from 'node:fs';\nexport const P = async ({{ client, directory, $ }}) => {{\n  let text = '';\n  try {{ {attempt} }} catch (error) {{ text = 'FAILED ' + error; }}\n  writeFileSync(directory + '/results', 'x' + text);\n  return {{}};\n}};\n"
        );
        case(name, &text).run_well(&["run", "hello"]).holds(|scene| {
            let text = std::fs::read_to_string(scene.path("results")).unwrap_or_default();
            (!text.contains("WORKED")).then(|| format!("the results are {text:.200}"))
        })
    };
    vec![
        case("environment", "export const P = async () => ({ 'shell.env': async (i, o) => { o.env.THEIRS = 'FROM-THEIR-PLUGIN'; } });\n").bash("echo $THEIRS").done().model_gets("FROM-THEIR-PLUGIN").short(),
        case("tool", "export const P = async () => ({ tool: { theirs: { description: 'd', args: {}, execute: async () => 'THEIR-ANSWER' } } });\n").calls([("theirs", "{}")]).done().model_gets("THEIR-ANSWER"),
        case("refuses", "export const P = async () => ({ 'tool.execute.before': async (i, o) => { if (i.tool === 'read') throw new Error('NOT-TODAY'); } });\n").calls([("read", r#"{"filePath": "README.md"}"#)]).model_gets("NOT-TODAY"),
        calls("file", "text = JSON.stringify((await client.file.read({ query: { path: 'note.txt' } })).data).includes('MY-NOTE') ? 'WORKED' : 'no';"),
        calls("sessions", "text = Array.isArray((await client.session.list()).data) ? 'WORKED' : 'no';"),
        calls("log", "text = (await client.app.log({ body: { service: 'p', level: 'info', message: 'm' } })).error === undefined ? 'WORKED' : 'no';"),
        calls("shell", "text = (await $`echo WORKED`.text());"),
        calls("agents", "text = (await client.app.agents()).data.length > 0 ? 'WORKED' : 'no';"),
    ]
}

/// Imports, batches, masks and trust.
fn others() -> Vec<Case> {
    const DOCUMENT: &str = r#"{"info": {"id": "ses_fine0001", "slug": "s", "projectID": "p", "directory": "/project", "path": "", "title": "Imported", "version": "1.18.33", "time": {"created": 1795313399089, "updated": 1795313403237}}, "messages": [{"info": {"role": "user", "id": "msg_a1", "sessionID": "ses_fine0001", "time": {"created": 1795313399286}, "agent": "build", "model": {"providerID": "mock", "modelID": "plain-model"}}, "parts": [{"id": "prt_a1", "sessionID": "ses_fine0001", "messageID": "msg_a1", "type": "text", "text": "EARLIER-WORD"}]}]}"#;
    let denied = |name: &str, command: &str| {
        ordinary(Kind::Identities, &format!("beside-denied-files/{name}"))
            .user(r#"{"permission": {"read": {"*": "allow", "private/*": "deny"}}}"#)
            .file("private/a.txt", "x\n")
            .file("open/a.txt", "MY-NOTE\n")
            .bash(command)
    };
    vec![
        ordinary(Kind::Principals, "import/continues").file("document.json", DOCUMENT).run_well(&["import", "document.json"]).run_well(&["run", "--session", "ses_fine0001", "hello"]).model_gets("EARLIER-WORD"),
        ordinary(Kind::Principals, "import/works").file("document.json", DOCUMENT).run_well(&["import", "document.json"]).commands(&["--session", "ses_fine0001"], &["echo x > made"]).done().present("made"),
        ordinary(Kind::Principals, "batch").user(r#"{"experimental": {"batch_tool": true}}"#).calls([("batch", r#"{"tool_calls": [{"tool": "bash", "parameters": {"command": "touch made"}}, {"tool": "read", "parameters": {"filePath": "README.md"}}]}"#)]).done().present("made"),
        ordinary(Kind::Principals, "subagent").calls([("task", r#"{"description": "x", "prompt": "hello", "subagent_type": "explore"}"#)]).done(),
        denied("grep", "grep -r MY-NOTE open > made").present("made"),
        denied("everything", "tar -cf made open README.md").present("made"),
        denied("git", "git add open && git commit -q -m x && touch made").present("made"),
        denied("build", "cp open/a.txt made").present("made"),
        ordinary(Kind::Identities, "trust/after-a-decision").file(".opencode/command/a'b.md", "---\ndescription: d\n---\nit is !`echo THEIR-$((40 + 2))`\n").run_well(&["trust", "add"]).run_well(&["run", "--command", "a'b", "words"]).model_gets("THEIR-42"),
        ordinary(Kind::Identities, "git/own-hooks").git_config("[core]\n\thooksPath = .githooks").script(".githooks/pre-commit", "touch hook-ran").play(|scene| {
            let run = Run::new("git", &scene.project).args(["commit", "--allow-empty", "-q", "-m", "x"]);
            scene.finish(run).map(drop)
        }).bash("git status --short > made").done().present("made"),
        ordinary(Kind::Published, "fetch/allowed").user(r#"{"permission": {"webfetch": {"*": "deny", "@L/good/*": "allow"}}}"#).calls([("webfetch", r#"{"url": "@L/good/x", "format": "text"}"#)]).holds(|scene| (!scene.received().contains("/good/x")).then(|| "the page was not requested".to_owned())),
    ]
}
