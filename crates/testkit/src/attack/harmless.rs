//! Everyday use that must work without a permission request, mostly in a directory that is not trusted.

use std::io::{Read, Write};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::case::{Case, harmless, hostile};
use super::scene::{KEY, Scene};
use super::wire::Wire;
use super::{Kind, Trust};

/// Rules with which every command is analysed.
const RULES: &str = r#"{"permission": {"bash": {"*": "allow", "rm -rf *": "deny", "git push *": "deny", "curl *": "ask"},
    "edit": {"*": "allow", "locked/*": "deny", "*.lock": "ask"}, "read": {"*": "allow", "secrets/*": "deny"}}}"#;

/// Everyday commands that those rules allow.
const COMMANDS: &[(&str, &str)] = &[
    ("list", "ls -la && pwd"),
    ("pipeline", "cat README.md | grep Project | wc -l"),
    (
        "long-pipeline",
        "cat README.md | sort | uniq | head -n 5 | tail -n 3 | cut -c1-10 | tr a-z A-Z | rev | nl | cat",
    ),
    ("redirect", "echo x > out.txt && cat out.txt"),
    ("heredoc", "cat > notes.txt <<'E'\none\ntwo\nE"),
    ("loop", "for f in *.md; do echo \"$f\"; done"),
    ("long-loop", "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do echo $i; done"),
    ("condition", "if [ -f README.md ]; then echo yes; else echo no; fi"),
    ("substitution", "echo \"today is $(date +%Y)\""),
    ("variables", "X=1; Y=2; echo $((X + Y))"),
    ("find", "find . -name '*.md' -not -path './.git/*'"),
    ("find-exec", "find . -name '*.md' -exec wc -l {} +"),
    ("xargs", "ls *.md | xargs wc -l"),
    ("make-directory", "mkdir -p src/deep && touch src/deep/a.txt && ls src/deep"),
    ("copy-and-move", "cp README.md a.md && mv a.md b.md && rm b.md"),
    ("sed", "sed -i 's/Project/Thing/' README.md && cat README.md"),
    ("awk", "awk '{print $1}' README.md"),
    ("git-status", "git status --short && git log --oneline -n 3"),
    ("git-branch", "git branch topic && git branch"),
    (
        "git-commit",
        "echo x > new.txt && git add new.txt && git -c user.name=T -c user.email=t@x commit -q -m 'Add x'",
    ),
    ("git-diff", "echo more >> README.md && git diff --stat"),
    ("git-show", "git show --stat HEAD"),
    ("git-config-read", "git config --get user.name; git remote -v"),
    ("make", "make -f Makefile all"),
    ("script", "sh ./build.sh"),
    ("python", "python3 -c 'print(1 + 1)'"),
    ("timeout", "timeout 5 echo hello"),
    ("env", "FOO=bar env | grep FOO"),
    ("background", "sleep 0.1 & wait; echo done"),
    ("test-runner", "sh build.sh 2>&1 | tee build.log | tail -n 5"),
    ("archive", "tar -cf a.tar README.md && tar -tf a.tar"),
    ("compare", "diff README.md README.md && echo same"),
    ("null-device", "ls nothing 2>/dev/null; true > /dev/null"),
    ("process-substitution", "diff <(echo a) <(echo a)"),
    ("brace-expansion", "touch {a,b,c}.txt && ls ?.txt"),
    ("quotes", "echo 'a \"b\" c' \"d 'e' f\" g\\ h"),
    ("function", "greet() { echo \"hello $1\"; }; greet you"),
    ("subshell", "(cd .git && pwd) && pwd"),
    ("long-line", "echo AAAA"),
];

/// Calls that the model may make for ordinary files.
const CALLS: &[(&str, &str, &str)] = &[
    ("write", "write", r#"{"filePath": "src/new.rs", "content": "fn main() {}\n"}"#),
    ("write-workflow", "write", r#"{"filePath": ".github/workflows/ci.yml", "content": "on: push\n"}"#),
    ("write-ignore", "write", r#"{"filePath": ".gitignore", "content": "target\n"}"#),
    ("write-package", "write", r#"{"filePath": "package.json", "content": "{}\n"}"#),
    ("write-similar-name", "write", r#"{"filePath": "docs/opencode.md", "content": "x\n"}"#),
    ("write-similar-directory", "write", r#"{"filePath": "opencode/plugin/x.js", "content": "x\n"}"#),
    ("write-hooks-elsewhere", "write", r#"{"filePath": "hooks/pre-commit", "content": "x\n"}"#),
    ("read", "read", r#"{"filePath": "README.md"}"#),
    ("read-control-file", "read", r#"{"filePath": "opencode.json"}"#),
    ("read-git-config", "read", r#"{"filePath": ".git/config"}"#),
    ("read-env-example", "read", r#"{"filePath": ".env.example"}"#),
    ("grep", "grep", r#"{"pattern": "Project"}"#),
    ("grep-beside-env", "grep", r#"{"pattern": "WORD"}"#),
    ("glob", "glob", r#"{"pattern": "**/*.md"}"#),
    ("list", "list", r#"{"path": "."}"#),
    (
        "todo",
        "todowrite",
        r#"{"todos": [{"id": "1", "content": "x", "status": "pending", "priority": "low"}]}"#,
    ),
];

/// Keys of a repository that apply without trust, with a text that proves it in a request to the model.
const APPLIES: &[(&str, &str, &str)] = &[
    ("model", r#"{"model": "mock/other-model"}"#, "other-model"),
    ("model-of-another-provider", r#"{"model": "mockanth/claude-mock"}"#, "claude-mock"),
    ("small-model", r#"{"small_model": "mock/other-model"}"#, "other-model"),
    ("default-agent-of-the-user", r#"{"default_agent": "mine"}"#, "MY-OWN-AGENT"),
    ("instructions", r#"{"instructions": ["rules.md"]}"#, "INSIDE-RULES"),
    ("instructions-pattern", r#"{"instructions": ["docs/*.md"]}"#, "INSIDE-DOCS"),
    ("instructions-below", r#"{"instructions": ["docs/deep/**/*.md"]}"#, "INSIDE-DEEP"),
    ("instructions-dot", r#"{"instructions": ["./rules.md"]}"#, "INSIDE-RULES"),
    (
        "instructions-among-waiting",
        r#"{"instructions": ["~/.netrc", "rules.md"], "shell": "./x", "mcp": {"x": {"type": "local", "command": ["x"]}}}"#,
        "INSIDE-RULES",
    ),
    ("comments", "{\n  // a comment\n  \"instructions\": [\"rules.md\",],\n}", "INSIDE-RULES"),
    (
        "schema",
        r#"{"$schema": "https://opencode.ai/config.json", "instructions": ["rules.md"]}"#,
        "INSIDE-RULES",
    ),
    ("unknown-keys", r#"{"later": {"x": 1}, "instructions": ["rules.md"]}"#, "INSIDE-RULES"),
    (
        "display",
        r#"{"theme": "x", "keybinds": {"leader": "ctrl+x"}, "layout": "auto", "tui": {"scroll_speed": 3}, "instructions": ["rules.md"]}"#,
        "INSIDE-RULES",
    ),
    (
        "waiting-plugin",
        r#"{"plugin": ["./x.js"], "formatter": {"x": {"command": ["x"]}}, "instructions": ["rules.md"]}"#,
        "INSIDE-RULES",
    ),
];

/// Keys of the user's own configuration, which apply in every directory.
const USERS: &[(&str, &str, &str)] = &[
    ("agent-prompt", r#"{"agent": {"build": {"prompt": "USERS-PROMPT"}}}"#, "USERS-PROMPT"),
    ("env", r#"{"agent": {"build": {"prompt": "user {env:USERS_WORD}"}}}"#, "user USERS-VALUE"),
    ("file", r#"{"agent": {"build": {"prompt": "{file:~/prompt.txt}"}}}"#, "USERS-FILE"),
    ("instructions-in-the-home", r#"{"instructions": ["~/prompt.txt"]}"#, "USERS-FILE"),
    ("instructions-absolute", r#"{"instructions": ["@H/prompt.txt"]}"#, "USERS-FILE"),
    ("model", r#"{"model": "mock/other-model"}"#, "other-model"),
];

/// Keys of a repository that apply once it is trusted.
const TRUSTED: &[(&str, &str, &str)] = &[
    ("agent-prompt", r#"{"agent": {"build": {"prompt": "REPOSITORYS-PROMPT"}}}"#, "REPOSITORYS-PROMPT"),
    ("file-inside", r#"{"agent": {"build": {"prompt": "{file:./rules.md}"}}}"#, "INSIDE-RULES"),
    ("env", r#"{"agent": {"build": {"prompt": "word {env:USERS_WORD}"}}}"#, "word USERS-VALUE"),
    ("instructions", r#"{"instructions": ["rules.md"]}"#, "INSIDE-RULES"),
    (
        "default-agent-of-its-own",
        r#"{"default_agent": "theirs", "agent": {"theirs": {"mode": "primary", "prompt": "THEIR-AGENT"}}}"#,
        "THEIR-AGENT",
    ),
];

pub(super) fn cases() -> Vec<Case> {
    [commands(), calls(), keys(), stricter(), trusted(), repositories(), requests(), texts()]
        .into_iter()
        .flatten()
        .collect()
}

fn commands() -> Vec<Case> {
    let case = |(name, command): &(&str, &str)| {
        let command = command.replace("AAAA", &"a".repeat(1000));
        let case = harmless(Kind::Commands, format!("everyday/{name}"))
            .user(RULES)
            .file("Makefile", "all:\n\t@echo made\n")
            .file("build.sh", "echo built\n")
            .file("locked/a.txt", "x")
            .bash(&command)
            .done();
        if ["pipeline", "git-commit", "heredoc"].contains(name) { case.short() } else { case }
    };
    COMMANDS.iter().map(case).collect()
}

fn calls() -> Vec<Case> {
    let case = |(name, tool, input): &(&str, &str, &str)| {
        let case = harmless(Kind::Tools, format!("everyday/{name}"))
            .config("{}")
            .file(".env", "WORD=x\n")
            .file(".env.example", "WORD=\n")
            .file("notes.txt", "a WORD here\n")
            .calls([(*tool, *input)])
            .done();
        if *name == "write" || *name == "grep-beside-env" { case.short() } else { case }
    };
    let mut cases: Vec<Case> = CALLS.iter().map(case).collect();
    let edited = |name: &str| harmless(Kind::Tools, format!("everyday/{name}")).file("a.txt", "one two\n");
    cases.extend([
        edited("edit")
            .calls([("read", r#"{"filePath": "a.txt"}"#)])
            .calls([("edit", r#"{"filePath": "a.txt", "oldString": "one", "newString": "three"}"#)])
            .play(|scene| {
                let text = std::fs::read_to_string(scene.path("a.txt"))?;
                ensure!(text.contains("three") || scene.printed().contains("read"), "not edited: {text}");
                Ok(())
            }),
        edited("patch")
            .user(
                r#"{"model": "mock/gpt-5", "provider": {"mock": {"models": {"gpt-5": {"name": "gpt-5"}}}}}"#,
            )
            .calls([(
                "apply_patch",
                r#"{"patchText": "*** Begin Patch\n*** Add File: b.txt\n+x\n*** End Patch"}"#,
            )])
            .done()
            .present("b.txt"),
        edited("grep-shows-the-rest")
            .file(".env", "TWO=two\n")
            .calls([("grep", r#"{"pattern": "two"}"#)])
            .done()
            .model_gets("a.txt"),
        edited("subagent")
            .calls([("task", r#"{"description": "x", "prompt": "hello", "subagent_type": "general"}"#)])
            .done(),
        edited("skill-of-the-user")
            .file("@H/.claude/skills/mine/SKILL.md", "---\nname: mine\ndescription: d\n---\nUSERS-SKILL\n")
            .calls([("skill", r#"{"name": "mine"}"#)])
            .done()
            .model_gets("USERS-SKILL"),
    ]);
    cases
}

/// Creates a case with the files that the tables of keys use.
fn keyed(name: &str) -> Case {
    harmless(Kind::Configuration, name)
        .user(r#"{"provider": {"mock": {"models": {"other-model": {"name": "o"}}}}, "agent": {"mine": {"mode": "primary", "prompt": "MY-OWN-AGENT"}}}"#)
        .env("USERS_WORD", "USERS-VALUE")
        .file("@H/prompt.txt", "USERS-FILE\n")
        .file("rules.md", "INSIDE-RULES\n")
        .file("docs/a.md", "INSIDE-DOCS\n")
        .file("docs/deep/er/b.md", "INSIDE-DEEP\n")
}

fn keys() -> Vec<Case> {
    let applies = |(name, json, shown): &(&str, &str, &str)| {
        let case =
            keyed(&format!("applies/{name}")).config(*json).run_well(&["run", "hello"]).model_gets(*shown);
        if *name == "model" || *name == "instructions" { case.short() } else { case }
    };
    let users = |(name, json, shown): &(&str, &str, &str)| {
        keyed(&format!("users-own/{name}")).user(*json).run_well(&["run", "hello"]).model_gets(*shown)
    };
    let mut cases: Vec<Case> = APPLIES.iter().map(applies).collect();
    cases.extend(USERS.iter().map(users));
    cases.extend([
        keyed("users-own/command-with-a-shell-line")
            .user(r#"{"command": {"mine": {"template": "it is !`echo USERS-$((40 + 2))`"}}}"#)
            .run_well(&["run", "--command", "mine", "words"])
            .model_gets("USERS-42")
            .short(),
        keyed("users-own/command-with-an-attachment")
            .user(r#"{"command": {"mine": {"template": "look at @~/prompt.txt"}}}"#)
            .run_well(&["run", "--command", "mine", "words"])
            .model_gets("USERS-FILE"),
        keyed("users-own/command-file")
            .file("@H/.config/opencode/command/mine.md", "---\ndescription: x\n---\nit is !`echo USERS-$((40 + 2))`\n")
            .run_well(&["run", "--command", "mine", "words"])
            .model_gets("USERS-42"),
        keyed("users-own/shell").user(r#"{"shell": "/bin/sh"}"#).bash("echo hello").done(),
        keyed("users-own/agents-file").file("@H/.config/opencode/AGENTS.md", "USERS-RULES\n").run_well(&["run", "hello"]).model_gets("USERS-RULES"),
        keyed("users-own/key-of-a-provider")
            .user(r#"{"provider": {"groq": {"options": {"baseURL": "@M/v1"}, "models": {"m": {"name": "m"}}}}}"#)
            .env("GROQ_API_KEY", "@K")
            .run_well(&["run", "--model", "groq/m", "hello"])
            .play(|scene| {
                let sent = scene.requests().iter().any(|request| {
                    request.headers.get("authorization").is_some_and(|value| value.contains(KEY))
                });
                ensure!(sent, "the key did not reach its provider");
                Ok(())
            }),
        keyed("users-own/config-by-variable")
            .env("OPENCODE_CONFIG_CONTENT", r#"{"agent": {"build": {"prompt": "BY-VARIABLE"}}}"#)
            .run_well(&["run", "hello"])
            .model_gets("BY-VARIABLE"),
        keyed("users-own/config-by-named-file")
            .file("@O/my.json", r#"{"agent": {"build": {"prompt": "BY-FILE"}}}"#)
            .env("OPENCODE_CONFIG", "@O/my.json")
            .run_well(&["run", "hello"])
            .model_gets("BY-FILE"),
        keyed("applies/agents-file").file("AGENTS.md", "INSIDE-AGENTS\n").run_well(&["run", "hello"]).model_gets("INSIDE-AGENTS").short(),
        keyed("applies/claude-file").file("CLAUDE.md", "INSIDE-CLAUDE\n").run_well(&["run", "hello"]).model_gets("INSIDE-CLAUDE"),
        keyed("applies/agents-below")
            .file("sub/AGENTS.md", "INSIDE-SUB\n")
            .file("sub/x.txt", "x\n")
            .calls([("read", r#"{"filePath": "sub/x.txt"}"#)])
            .done()
            .model_gets("INSIDE-SUB"),
        keyed("applies/agents-link-inside").file("docs/rules.md", "INSIDE-LINKED\n").link("AGENTS.md", "docs/rules.md").run_well(&["run", "hello"]).model_gets("INSIDE-LINKED"),
        keyed("applies/warning-names-what-waits")
            .config(r#"{"shell": "./x.sh"}"#)
            .run_well(&["run", "hello"])
            .printed("--trust"),
    ]);
    cases
}

/// Stricter rules of a repository apply without trust.
fn stricter() -> Vec<Case> {
    let case = |name: &str, json: &str| {
        hostile(Kind::Configuration, format!("stricter/{name}"))
            .always()
            .user(r#"{"permission": {"bash": "allow", "edit": "allow"}}"#)
            .config(json)
            .file("kept.txt", "kept\n")
            .bash("touch made.txt")
            .calls([("write", r#"{"filePath": "kept.txt", "content": "x"}"#)])
            .absent("made.txt")
            .unchanged("kept.txt")
    };
    vec![
        case("deny", r#"{"permission": {"bash": "deny", "edit": "deny"}}"#).short(),
        case(
            "deny-pattern",
            r#"{"permission": {"bash": {"touch *": "deny"}, "edit": {"kept.txt": "deny"}}}"#,
        ),
        case("ask", r#"{"permission": {"bash": "ask", "edit": "ask"}}"#),
        case("everything-denied", r#"{"permission": "deny"}"#),
        case("star", r#"{"permission": {"*": "deny"}}"#),
        case("tools-off", r#"{"tools": {"bash": false, "write": false, "edit": false}}"#),
        case(
            "tools-off-for-the-agent",
            r#"{"agent": {"build": {"tools": {"bash": false, "write": false}}}}"#,
        ),
        case(
            "permission-of-the-agent",
            r#"{"agent": {"build": {"permission": {"bash": "deny", "edit": "deny"}}}}"#,
        ),
        case(
            "beside-looser-ones",
            r#"{"permission": {"read": "allow", "external_directory": "allow", "bash": "deny", "edit": "deny"}, "shell": "./x"}"#,
        ),
    ]
}

fn trusted() -> Vec<Case> {
    let by_variable = |(name, json, shown): &(&str, &str, &str)| {
        keyed(&format!("trusted/{name}"))
            .states(&[Trust::All])
            .config(*json)
            .run_well(&["run", "hello"])
            .model_gets(*shown)
    };
    let by_flag = |(name, json, shown): &(&str, &str, &str)| {
        keyed(&format!("trusted-by-flag/{name}"))
            .config(*json)
            .run_well(&["run", "--trust", "hello"])
            .model_gets(*shown)
    };
    let mut cases: Vec<Case> = TRUSTED.iter().map(by_variable).collect();
    cases.extend(TRUSTED.iter().map(by_flag));
    let all = |name: &str| keyed(&format!("trusted/{name}")).states(&[Trust::All]);
    cases.extend([
        all("command-with-a-shell-line")
            .file(".opencode/command/x.md", "---\ndescription: x\n---\nit is !`echo THEIR-$((40 + 2))`\n")
            .run_well(&["run", "--command", "x", "words"])
            .model_gets("THEIR-42")
            .short(),
        all("agent-file")
            .file(".opencode/agent/theirs.md", "---\nmode: primary\n---\nTHEIR-AGENT\n")
            .run_well(&["run", "--agent", "theirs", "hello"])
            .model_gets("THEIR-AGENT"),
        all("skill")
            .file(".opencode/skill/theirs/SKILL.md", "---\nname: theirs\ndescription: d\n---\nTHEIR-SKILL\n")
            .calls([("skill", r#"{"name": "theirs"}"#)])
            .done()
            .model_gets("THEIR-SKILL"),
        all("provider-with-its-own-key")
            .config(r#"{"provider": {"theirs": {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "@M/v1", "apiKey": "theirs"}, "models": {"m": {"name": "their-model"}}}}}"#)
            .run_well(&["run", "--model", "theirs/m", "hello"]),
        all("shell").script("shell.sh", "exec /bin/sh \"$@\"").config(r#"{"shell": "@P/shell.sh"}"#).bash("echo hello").done(),
        keyed("trusted-by-command/stays-trusted")
            .config(r#"{"agent": {"build": {"prompt": "REPOSITORYS-PROMPT"}}}"#)
            .run_well(&["trust", "add"])
            .run_well(&["run", "hello"])
            .run_well(&["run", "hello"])
            .play(|scene| {
                let prompts = scene.requests().iter().filter(|request| request.body.to_string().contains("REPOSITORYS-PROMPT")).count();
                ensure!(prompts >= 2, "the second run had lost its trust");
                Ok(())
            }),
        keyed("trusted-by-command/list-and-remove")
            .config(r#"{"agent": {"build": {"prompt": "REPOSITORYS-PROMPT"}}}"#)
            .run_well(&["trust", "add"])
            .run_well(&["trust", "list"])
            .printed("@P")
            .run_well(&["run", "hello"])
            .model_gets("REPOSITORYS-PROMPT"),
    ]);
    cases
}

/// Ordinary repositories, which open and show their git status.
fn repositories() -> Vec<Case> {
    let case = |name: &str| harmless(Kind::Repositories, format!("usual/{name}"));
    let changed = |scene: &Scene| -> Result<()> {
        let (server, wire) = scene.serve("@O")?;
        let status = wire.get(&format!("/vcs/status?directory={}", scene.fill("@P")))?;
        ensure!(status.to_string().contains("README.md"), "the change is not shown: {status}");
        let diff = wire.get(&format!("/vcs/diff?mode=git&directory={}", scene.fill("@P")))?;
        ensure!(diff.to_string().contains("changed"), "the difference is not shown: {diff}");
        scene.end(server)
    };
    let edited =
        |name: &str| case(name).file("README.md", "changed\n").play(changed).run_well(&["run", "hello"]);
    vec![
        edited("plain").short(),
        edited("remote").git_config("[remote \"origin\"]\n\turl = https://github.com/x/y.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*"),
        edited("branch-settings").git_config("[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n[pull]\n\trebase = true"),
        edited("attributes").file(".gitattributes", "*.png binary\n*.sh text eol=lf\n"),
        edited("large-file-settings")
            .file(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
            .git_config("[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n\tsmudge = git-lfs smudge -- %f\n\tprocess = git-lfs filter-process\n\trequired = true"),
        edited("own-aliases").git_config("[alias]\n\tst = status\n\tco = checkout"),
        edited("unused-hooks").script(".git/hooks/pre-push", "exit 0"),
        edited("ignore-file").file(".gitignore", "target\n*.log\n").file("x.log", "x"),
        edited("linked-worktree").git(&["worktree", "add", "-q", "@O/tree"]).run_in("@O/tree", &["run", "hello"]),
        edited("unusual-branch").git(&["checkout", "-q", "-b", "feature/ümlaut"]),
        edited("whitespace-settings").git_config("[core]\n\tautocrlf = input\n\tfilemode = false\n\tquotePath = false"),
        case("without-commits").plain().prepare(|scene| scene.project.run_git(&["init", "-q"]).map(drop)).run_well(&["run", "hello"]),
        case("no-repository").plain().run_well(&["run", "hello"]),
        case("home-below-the-project").run_in("@H", &["run", "hello"]),
        case("read-only").file("README.md", "x\n").prepare(|scene| {
            use std::os::unix::fs::PermissionsExt as _;
            Ok(std::fs::set_permissions(scene.path("@P"), std::fs::Permissions::from_mode(0o555))?)
        }).run_well(&["run", "hello"]),
    ]
}

fn requests() -> Vec<Case> {
    let case = |name: &str| harmless(Kind::Requests, format!("usual/{name}"));
    let request = |name: &str, headers: &'static [(&'static str, &'static str)]| {
        case(name).play(move |scene| {
            served(scene, |wire| {
                let own = format!("http://{}", wire.address);
                let headers: Vec<(&str, &str)> = headers
                    .iter()
                    .map(|(name, value)| (*name, if *value == "OWN" { own.as_str() } else { *value }))
                    .collect();
                for (method, path) in
                    [("GET", "/config"), ("GET", "/session"), ("GET", "/path"), ("POST", "/session")]
                {
                    let body = if method == "POST" { "{}" } else { "" };
                    let mut headers = headers.clone();
                    headers.push(("Content-Type", "application/json"));
                    let answer = wire.send(method, path, &headers, body)?;
                    ensure!(answer.status == 200, "{method} {path} was answered {}", answer.status);
                }
                Ok(())
            })
        })
    };
    vec![
        request("program", &[]).short(),
        request("own-page", &[("Origin", "OWN"), ("Sec-Fetch-Site", "same-origin")]).short(),
        request("typed-address", &[("Sec-Fetch-Site", "none"), ("Sec-Fetch-Mode", "navigate")]),
        request("user-agent", &[("User-Agent", "opencode/1.18.33"), ("Accept", "*/*")]),
        case("host-names").play(|scene| served(scene, |wire| {
            let port = wire.address.split_once(':').context("no port")?.1;
            for host in [format!("localhost:{port}"), format!("127.0.0.1:{port}"), format!("[::1]:{port}"), "localhost".to_owned()] {
                let answer = wire.send_raw("GET", "/config", &[("Host", &host)], "")?;
                ensure!(answer.status == 200, "the host `{host}` was answered {}", answer.status);
            }
            Ok(())
        })),
        case("json-with-charset").play(|scene| served(scene, |wire| {
            let answer = wire.send("POST", "/session", &[("Content-Type", "application/json; charset=utf-8")], "{}")?;
            ensure!(answer.status == 200, "answered {}", answer.status);
            Ok(())
        })),
        case("password").env("OPENCODE_SERVER_PASSWORD", "word").play(|scene| served(scene, |wire| {
            // `opencode:word` in base64.
            for (headers, path) in [(vec![("Authorization", "Basic b3BlbmNvZGU6d29yZA==")], "/config"), (vec![], "/config?auth_token=b3BlbmNvZGU6d29yZA==")] {
                let answer = wire.send("GET", path, &headers, "")?;
                ensure!(answer.status == 200, "{path} was answered {}", answer.status);
            }
            Ok(())
        })),
        case("many-event-streams").play(|scene| served(scene, |wire| {
            let mut connections = Vec::new();
            for _ in 0..50 {
                let mut stream = wire.connect()?;
                write!(stream, "GET /event HTTP/1.1\r\nHost: {}\r\n\r\n", wire.address)?;
                stream.set_read_timeout(Some(Duration::from_secs(5)))?;
                let mut buffer = [0; 64];
                let count = stream.read(&mut buffer)?;
                ensure!(String::from_utf8_lossy(&buffer[..count]).contains(" 200 "), "a stream was refused");
                connections.push(stream);
            }
            wire.get("/config").map(drop)
        })),
        case("terminal").play(|scene| served(scene, |wire| {
            let (status, terminal) = wire.post("/pty", &json!({"command": "/bin/sh"}))?;
            let id = terminal["id"].as_str().with_context(|| format!("{status} {terminal}"))?;
            let head = format!("GET /pty/{id}/connect HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", wire.address);
            let mut stream = wire.connect()?;
            stream.set_read_timeout(Some(Duration::from_secs(5)))?;
            stream.write_all(head.as_bytes())?;
            let mut buffer = [0; 64];
            let count = stream.read(&mut buffer)?;
            let answer = String::from_utf8_lossy(&buffer[..count]).into_owned();
            ensure!(answer.starts_with("HTTP/1.1 101"), "a terminal was refused: {answer}");
            Ok(())
        })),
        case("attached-run").play(|scene| {
            let (server, wire) = scene.serve("@P")?;
            let done = scene.finish(scene.program(["run", "--attach", &format!("http://{}", wire.address), "hello"]))?;
            ensure!(done.code == Some(0), "it ended with {:?}: {}", done.code, done.stderr);
            scene.end(server)
        }),
        case("command-asks-another-server").user(r#"{"permission": {"bash": "allow"}}"#)
            .bash("curl -s -o /dev/null @L/x; true")
            .asked()
            .done(),
        case("directory-by-header").play(|scene| served(scene, |wire| {
            let directory = scene.fill("@P");
            let answer = wire.send("GET", "/path", &[("X-Opencode-Directory", &directory)], "")?;
            ensure!(answer.text.contains(&directory), "{}", answer.text);
            Ok(())
        })),
        case("untrusted-session").config(r#"{"shell": "./x.sh", "mcp": {"x": {"type": "local", "command": ["x"]}}}"#).play(|scene| {
            served(scene, |wire| {
                let directory = scene.fill("@P");
                for path in ["/path", "/config", "/vcs", "/command", "/agent", "/file?path=."] {
                    let mark = if path.contains('?') { '&' } else { '?' };
                    wire.get(&format!("{path}{mark}directory={directory}"))?;
                }
                wire.session(&directory).map(drop)
            })
        }),
    ]
}

fn served(scene: &Scene, act: impl Fn(&Wire) -> Result<()>) -> Result<()> {
    let (server, wire) = scene.serve("@O")?;
    act(&wire)?;
    scene.end(server)
}

/// Texts that look like forgeries but are harmless.
fn texts() -> Vec<Case> {
    let case = |name: &str, text: &str, shown: &str| {
        harmless(Kind::Tools, format!("text/{name}"))
            .file("notes.txt", format!("{text}\n"))
            .calls([("read", r#"{"filePath": "notes.txt"}"#), ("bash", r#"{"command": "cat notes.txt"}"#)])
            .done()
            .model_gets(shown)
    };
    vec![
        case("html", "<div class=\"a\"><b>bold</b></div>", "<b>bold</b>"),
        case("words", "a system reminder for you", "a system reminder for you"),
        case("generics", "let x: Vec<Option<u8>> = y;", "Vec<Option<u8>>"),
        case("xml", "<system><name>x</name></system>", "<name>x</name>"),
        case("shell", "cat <<EOF\nx\nEOF", "<<EOF"),
    ]
}
