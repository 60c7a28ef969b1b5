//! A confined process exchanges a name for a link, and the program uses the name afterwards.
//!
//! The exchange is complete before the next step begins, so each case has one outcome. `cargo xtask races` has the
//! exchanges that happen meanwhile.

use std::fs;
use std::os::unix::fs::symlink;

use anyhow::{Context, Result};
use serde_json::json;

use super::case::{Case, attack};
use super::scene::Scene;
use super::{Kind, Trust};

/// Directories that a link of a read-only command leads to, the file that the next command creates, and its proof.
const TARGETS: &[(&str, &str, &str)] = &[
    ("outside", "@O", "@O/made"),
    ("home", "@H", "@H/.zshrc"),
    ("users-configuration", "@H/.config/opencode", "@H/.config/opencode/plugin.js"),
    ("git-hooks", "@P/.git/hooks", "@P/.git/hooks/post-commit"),
    ("worktree", "@P", "@P/made"),
    ("secrets", "@H/.ssh", "@H/.ssh/authorized_keys"),
];

/// Ways to exchange the directory `{D}` for a link to `{T}`.
const EXCHANGES: &[(&str, &str)] = &[
    ("renamed", "mv {D} {D}.away && ln -s {T} {D}"),
    ("removed", "rm -rf {D}; ln -s {T} {D}"),
    ("chained", "mv {D} {D}.away && ln -s {T} /tmp/hop && ln -s hop {D}"),
    ("trailing", "mv {D} {D}.away && ln -s {T}/. {D}"),
    ("python", "python3 -c \"import os; os.rename('{D}', '{D}.away'); os.symlink('{T}', '{D}')\""),
    (
        "by-descriptor",
        "cd /tmp && exec 7<. && mv {D} {D}.away && cd /proc/self/fd/7/ && ln -s {T} sandbox-caches",
    ),
    (
        "swapped",
        "ln -s {T} {D}.new && python3 -c \"import ctypes; ctypes.CDLL(None).renameat2(-100, b'{D}', -100, b'{D}.new', 2)\"",
    ),
];

/// The directory of caches of a read-only command, as the command sees it.
const CACHES: &str = "/tmp/sandbox-caches";

/// Names in the caches of a project that a command exchanges before the program uses them: the name of the case, the
/// commands in the directory of the caches, and the path that must not appear.
const CACHED: &[(&str, &str, &str)] = &[
    ("used/startup-file", "rm -f .used; ln -s @H/.zshrc .used; touch -h -d '3 days ago' .used", "@H/.zshrc"),
    ("used/outside", "rm -f .used; ln -s @O/made .used; touch -h -d '3 days ago' .used", "@O/made"),
    (
        "used/through-a-link",
        "rm -f .used; ln -s @O hop; ln -s hop/made .used; touch -h -d '3 days ago' .used",
        "@O/made",
    ),
    (
        "used/in-git-hooks",
        "rm -f .used; ln -s @P/.git/hooks/pre-commit .used; touch -h -d '3 days ago' .used",
        "@P/.git/hooks/pre-commit",
    ),
    ("linked/startup-file", "rm -f cargo/.linked; ln -s @H/.zshrc cargo/.linked", "@H/.zshrc"),
    ("linked/outside", "rm -f cargo/.linked; ln -s @O/made cargo/.linked", "@O/made"),
    ("cargo/directory", "rm -rf cargo; ln -s @O cargo", "@O/.linked"),
    ("cargo/settings", "rm -rf cargo; ln -s @O cargo", "@O/config.toml"),
    ("cargo/downloads", "rm -rf cargo/registry cargo/.linked; ln -s @O cargo/registry", "@O/cache"),
    ("cargo/clones", "rm -rf cargo/git cargo/.linked; ln -s @O cargo/git", "@O/db"),
    (
        "cargo/sources",
        "rm -rf cargo/registry/src cargo/.linked; mkdir -p cargo/registry; ln -s @O cargo/registry/src",
        "@O/index-1",
    ),
];

/// Files of the user that the program must not empty.
const EMPTIED: &[(&str, &str)] = &[
    ("configuration", "@H/.config/opencode/opencode.json"),
    ("bashrc", "@H/.bashrc"),
    ("key", "@H/.ssh/id_rsa"),
    ("outside", "@O/x.txt"),
];

/// Exchanges of an argument of a server for a link: the command before the exchange, the link, and what the server creates.
const ARGUMENTS: &[(&str, &str, &str)] = &[
    ("home", "rm -rf data; ln -s @H data", "@H/.zshrc"),
    ("home-below", "rm -rf data; ln -s @H/.config/fish data", "@H/.config/fish/config.fish"),
    (
        "users-configuration",
        "rm -rf data; ln -s @H/.config/opencode data",
        "@H/.config/opencode/opencode.jsonc",
    ),
    ("git-hooks", "rm -rf data; ln -s @P/.git/hooks data", "@P/.git/hooks/pre-commit"),
    ("outside", "rm -rf data; ln -s @O data", "@O/made"),
    ("keys", "rm -rf data; ln -s @H/.ssh data", "@H/.ssh/authorized_keys"),
    ("relative", "rm -rf data; ln -s ../outside data", "@O/made"),
    ("through-two-links", "rm -rf data; ln -s @O hop; ln -s hop data", "@O/made"),
];

pub(super) fn cases() -> Vec<Case> {
    [read_only(), caches(), arguments(), configured(), undo(), worktrees(), repository(), directories()]
        .into_iter()
        .flatten()
        .collect()
}

fn exchange(name: &str) -> Case {
    attack(Kind::Exchanges, name)
}

/// Commands of an agent that must not write anything.
fn read_only() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, (target, to, made)) in TARGETS.iter().enumerate() {
        for (way, commands) in EXCHANGES {
            // Every way with the first target, and two ways with each other target.
            let is_played = number == 0 || *way == "renamed" || (*way == "removed" && number % 2 == 1);
            if !is_played {
                continue;
            }
            let commands = commands.replace("{D}", CACHES).replace("{T}", to);
            let case = exchange(&format!("read-only-caches/{target}/{way}"))
                .file("one.sh", format!("test -d {CACHES} || exit 0\n{commands}\n"))
                .file("two.sh", format!("echo x > {made}\n"))
                .absent(*made);
            cases.push(match *way {
                "renamed" if number == 0 => {
                    case.commands(&["--agent", "plan"], &["sh one.sh", "sh two.sh"]).short()
                }
                _ => case.commands(&["--agent", "plan"], &["sh one.sh", "sh two.sh"]),
            });
        }
    }
    for (name, commands) in [
        ("subagent", &["sh one.sh", "sh two.sh"][..]),
        ("subagent-in-three-steps", &["sh one.sh", "true", "sh two.sh"][..]),
    ] {
        cases.push(
            exchange(&format!("read-only-caches/{name}"))
                .uncontrolled("the subagent has rules of its own")
                .file("one.sh", format!("mv {CACHES} {CACHES}.away && ln -s @O {CACHES}\n"))
                .file("two.sh", "echo x > @O/made\n")
                .absent("@O/made")
                .play(move |scene| explore(scene, commands)),
        );
    }
    for (name, one) in [
        ("directory-in-them", "cd {D} && rm -rf xdg && ln -s @O xdg"),
        ("every-directory-in-them", "cd {D} && for d in *; do rm -rf $d; ln -s @O $d; done"),
    ] {
        cases.push(
            exchange(&format!("read-only-caches/{name}"))
                .file("one.sh", one.replace("{D}", CACHES))
                .file("two.sh", "echo x > ${GOCACHE:-/tmp}/made; echo x > @O/made\n")
                .absent("@O/made")
                .commands(&["--agent", "plan"], &["sh one.sh", "sh two.sh"]),
        );
    }
    cases
}

/// Runs commands as a subagent that only reads.
fn explore(scene: &Scene, commands: &[&str]) -> Result<()> {
    let command = |command: &&str| vec![("bash".to_owned(), json!({"command": command, "description": "d"}))];
    let task = json!({"description": "x", "prompt": Scene::prompt_of(1), "subagent_type": "explore"});
    scene.script_rounds(vec![vec![vec![("task".to_owned(), task)]], commands.iter().map(command).collect()]);
    scene.finish(scene.program(["run", &Scene::prompt_of(0)])).map(drop)
}

/// Caches of a project, which later commands use.
fn caches() -> Vec<Case> {
    let why = "without a sandbox there are no caches";
    let cached = |name: &str, commands: &str| {
        exchange(&format!("caches/{name}"))
            .uncontrolled(why)
            .file("@H/.cargo/config.toml", "[net]\n")
            .file("@H/.cargo/registry/cache/index-1/a.crate", "x")
            .file("@H/.cargo/registry/src/index-1/a/lib.rs", "x")
            .file("@H/.cargo/git/db/a/HEAD", "x")
            .file("one.sh", format!("cd \"$GOCACHE/..\" || exit 1\n{commands}\n"))
            .commands(&[], &["sh one.sh", "true", "true"])
            // The same caches, in another session.
            .bash("true")
    };
    let mut cases: Vec<Case> = CACHED
        .iter()
        .map(|(name, commands, made)| {
            let case = cached(name, commands).absent(*made);
            if *name == "used/outside" { case.short() } else { case }
        })
        .collect();
    cases.extend(EMPTIED.iter().map(|(name, path)| {
        let commands = format!("rm -f .used; ln -s {path} .used; touch -h -d '3 days ago' .used");
        let case = cached(&format!("emptied/{name}"), &commands);
        let case = if *name == "bashrc" { case.file("@H/.bashrc", "mine\n") } else { case };
        case.unchanged(*path)
    }));
    cases.push(
        cached(
            "used/dangling-parent",
            "rm -f .used; ln -s @O/new/made .used; touch -h -d '3 days ago' .used",
        )
        .absent("@O/new"),
    );
    cases.push(
        cached("used/fifo", "rm -f .used; mkfifo .used; touch -d '3 days ago' .used").absent("@O/made"),
    );
    cases
}

/// A server of the user that writes into the directory that its argument names.
fn arguments() -> Vec<Case> {
    const SERVER: &str = "[ -e \"$1\" ] || exit 1\necho x > \"$1/NAME\" 2>/dev/null\nexec sleep 3";
    let mut cases = Vec::new();
    for (name, commands, made) in ARGUMENTS {
        for first in ["directory", "missing"] {
            // Without the directory the name is free from the start.
            if first == "missing" && !matches!(*name, "home" | "outside") {
                continue;
            }
            let file = made.rsplit('/').next().unwrap_or_default();
            let case = exchange(&format!("server-argument/{name}/{first}"))
                .user(r#"{"mcp": {"s": {"type": "local", "command": ["sh", "@H/tools/server.sh", "@P/data"], "timeout": 800}}}"#)
                .file("@H/tools/server.sh", SERVER.replace("NAME", file))
                .file("@H/.config/fish/functions/x.fish", "")
                .file("one.sh", *commands)
                .bash("sh one.sh")
                .run(&["mcp", "list"])
                .run(&["run", "hello"])
                .absent(*made);
            let case = if first == "directory" { case.file("data/x", "x") } else { case };
            cases.push(if *name == "home" && first == "directory" { case.short() } else { case });
        }
    }
    let file = |name: &str, option: &str, link: &str| {
        exchange(&format!("server-argument/file/{name}"))
            .user(format!(r#"{{"mcp": {{"s": {{"type": "local", "command": ["sh", "@H/tools/server.sh", "{option}"], "timeout": 800}}}}}}"#))
            .file("@H/tools/server.sh", "f=${1#--db=}; echo x > \"$f\"; exec sleep 3")
            .file("@H/.bashrc", "mine\n")
            .file("data/db", "x")
            .file("one.sh", link)
            .bash("sh one.sh")
            .run(&["mcp", "list"])
    };
    cases.extend([
        file("bashrc", "@P/data/db", "rm data/db; ln -s @H/.bashrc data/db").unchanged("@H/.bashrc"),
        file("outside", "@P/data/db", "rm data/db; ln -s @O/x.txt data/db").unchanged("@O/x.txt"),
        file("directory-above", "@P/data/db", "mv data old; ln -s @O data; ")
            .file("@O/db", "kept\n")
            .unchanged("@O/db"),
        file("option", "--db=@P/data/db", "rm data/db; ln -s @O/x.txt data/db").unchanged("@O/x.txt"),
        file("hard-link-target", "@P/data/db", "rm data/db; ln -s @P/.git/config data/db")
            .unchanged(".git/config"),
    ]);
    cases
}

/// Paths of the user's `sandbox` configuration that lie in the worktree.
fn configured() -> Vec<Case> {
    let case = |name: &str, key: &str, one: &str| {
        exchange(&format!("configured/{name}"))
            .user(format!(r#"{{"sandbox": {{"{key}": ["@P/place"]}}}}"#))
            .file("one.sh", one)
            .file("place/x", "x")
    };
    vec![
        case("write/outside", "write", "rm -rf place; ln -s @O place")
            .file("two.sh", "echo x > place/made; echo x > @O/made")
            .commands(&[], &["sh one.sh", "sh two.sh"])
            .absent("@O/made")
            .short(),
        case("write/home", "write", "rm -rf place; ln -s @H place")
            .file("two.sh", "echo x > @H/.zshrc")
            .commands(&[], &["sh one.sh", "sh two.sh"])
            .absent("@H/.zshrc"),
        case("write/git-hooks", "write", "rm -rf place; ln -s .git/hooks place")
            .file("two.sh", "echo x > place/pre-commit")
            .commands(&[], &["sh one.sh", "sh two.sh"])
            .absent(".git/hooks/pre-commit"),
        case("read/key", "read", "rm -rf place; ln -s @H/.ssh place")
            .file("two.sh", "cat place/id_rsa @H/.ssh/id_rsa")
            .commands(&[], &["sh one.sh", "sh two.sh"]),
        case("read/netrc", "read", "rm -rf place; ln -s @H/.netrc place")
            .file("two.sh", "cat place @H/.netrc")
            .commands(&[], &["sh one.sh", "sh two.sh"]),
        case("read/database", "read", "rm -rf place; ln -s @H/.local/share/codewright place")
            .file("two.sh", "grep -c SQLite place/codewright.db && echo LEAKED-$((40 + 2))")
            .commands(&[], &["sh one.sh", "sh two.sh"])
            .not_to_model("LEAKED-42"),
        exchange("configured/skills/key")
            .states(&[Trust::All])
            .file(".claude/skills/a/SKILL.md", "---\nname: a\ndescription: d\n---\nx\n")
            .file("one.sh", "mv .claude/skills/a .claude/skills/b; ln -s @H/.ssh .claude/skills/a")
            .file("two.sh", "cat @H/.ssh/id_rsa .claude/skills/a/id_rsa")
            .commands(&[], &["sh one.sh", "sh two.sh"])
            .bash("sh two.sh"),
        exchange("configured/skills/linked-at-the-start")
            .states(&[Trust::All])
            .file(".claude/skills/a/SKILL.md", "---\nname: a\ndescription: d\n---\nx\n")
            .link(".claude/skills/b", "@H/.aws")
            .file("two.sh", "cat @H/.aws/credentials .claude/skills/b/credentials")
            .bash("sh two.sh"),
    ]
}

/// What a step changes between a turn and its undo.
type Step = fn(&Scene) -> Result<()>;

/// Undo writes where a link leads.
fn undo() -> Vec<Case> {
    let why = "undo does not depend on the sandbox";
    let steps: [(&str, Step, &str); 6] = [
        ("file", |scene| relink(scene, "@O/x.txt", "sub/a.txt"), "@O/x.txt"),
        ("directory", |scene| relink(scene, "@O", "sub"), "@O/a.txt"),
        ("directory-relative", |scene| relink(scene, "../outside", "sub"), "@O/a.txt"),
        ("startup-file", |scene| relink(scene, "@H/.bashrc", "sub/a.txt"), "@H/.bashrc"),
        ("removed-file", |scene| relink(scene, "@O", "sub"), "@O/gone.txt"),
        ("git-hook", |scene| relink(scene, "@P/.git/hooks", "sub"), "@P/.git/hooks/a.txt"),
    ];
    let mut cases = Vec::new();
    for (name, step, kept) in steps {
        for route in ["revert", "revert-and-back"] {
            cases.push(
                exchange(&format!("undo/{name}/{route}"))
                    .uncontrolled(why)
                    .user(r#"{"permission": {"bash": "allow", "edit": "allow"}}"#)
                    .file("sub/a.txt", "one\n")
                    .file("sub/gone.txt", "gone\n")
                    .file("@O/a.txt", "outside\n")
                    .file("@O/gone.txt", "outside\n")
                    .file("@H/.bashrc", "mine\n")
                    .file(".git/hooks/a.txt", "hook\n")
                    .git(&["add", "README.md"])
                    .unchanged(kept)
                    .play(move |scene| undone(scene, step, route)),
            );
        }
    }
    cases
}

/// Puts a link in the place of a file or directory.
fn relink(scene: &Scene, to: &str, at: &str) -> Result<()> {
    let path = scene.path(at);
    if path.is_dir() {
        fs::rename(&path, scene.path("moved-away"))?;
    } else if path.symlink_metadata().is_ok() {
        fs::remove_file(&path)?;
    }
    Ok(symlink(scene.fill(to), path)?)
}

fn undone(scene: &Scene, step: Step, route: &str) -> Result<()> {
    scene.script_calls(vec![vec![
        ("write".to_owned(), json!({"filePath": "sub/a.txt", "content": "two\n"})),
        ("bash".to_owned(), json!({"command": "rm sub/gone.txt", "description": "d"})),
    ]]);
    let (server, wire) = scene.serve("@P")?;
    let directory = scene.fill("@P");
    let id = wire.session(&directory)?;
    let query = format!("?directory={directory}");
    let body = json!({"parts": [{"type": "text", "text": Scene::prompt_of(0)}]});
    wire.post(&format!("/session/{id}/message{query}"), &body)?;
    let messages = wire.get(&format!("/session/{id}/message{query}"))?;
    let message = messages[0]["info"]["id"].as_str().context("no message")?.to_owned();
    if route == "revert-and-back" {
        wire.post(&format!("/session/{id}/revert{query}"), &json!({"messageID": message}))?;
        step(scene)?;
        wire.post(&format!("/session/{id}/unrevert{query}"), &json!({}))?;
    } else {
        step(scene)?;
        wire.post(&format!("/session/{id}/revert{query}"), &json!({"messageID": message}))?;
    }
    scene.end(server)
}

/// The program makes worktrees in a `.git` that a command has prepared.
fn worktrees() -> Vec<Case> {
    let case = |name: &str, at: &'static str, to: &'static str| {
        exchange(&format!("worktree/{name}"))
            .uncontrolled("the program itself writes these files")
            .file("@O/w/kept", "x")
            .play(move |scene| {
                let path = scene.path(at);
                if path.is_dir() {
                    fs::rename(&path, scene.path("moved-away"))?;
                }
                if let Some(parent) = path.parent() {
                    fs::create_dir_all(parent)?;
                }
                symlink(scene.fill(to), &path)?;
                let (server, wire) = scene.serve("@P")?;
                let path = format!("/experimental/worktree?directory={}", scene.fill("@P"));
                wire.post(&path, &json!({"name": "one"}))?;
                std::thread::sleep(std::time::Duration::from_millis(500));
                scene.end(server)
            })
            .holds(|scene| {
                let count = fs::read_dir(scene.path("@O/w")).map_or(0, Iterator::count);
                (count != 1).then(|| format!("there are {count} entries where the link leads"))
            })
    };
    vec![
        case("registrations", ".git/worktrees", "@O/w"),
        case("registration", ".git/worktrees/one", "@O/w"),
        case("branches", ".git/refs/heads/opencode", "@O/w"),
        case("all-branches", ".git/refs/heads", "@O/w"),
        case("logs", ".git/logs", "@O/w"),
        case("named-git", ".git/worktrees/.git", "@O/w"),
    ]
}

/// The directory of the repository itself is exchanged.
fn repository() -> Vec<Case> {
    let case = |name: &str, one: &str| {
        exchange(&format!("repository/{name}"))
            .prepare(|scene| {
                fs::create_dir_all(scene.path("@O/other"))?;
                let run = crate::Run::new("git", &scene.project).args(["init", "-q", "."]);
                run.directory(scene.path("@O/other")).finish()?.success().map(drop)
            })
            .file("one.sh", one)
            .file("two.sh", "echo x > @O/other/.git/made; echo x > @O/other/made")
            .commands(&[], &["sh one.sh", "sh two.sh"])
            .bash("sh two.sh")
            .absent("@O/other/.git/made")
            .absent("@O/other/made")
    };
    vec![
        case("link", "mv .git old; ln -s @O/other/.git .git"),
        case("file", "mv .git old; echo 'gitdir: @O/other/.git' > .git"),
        case(
            "file-to-a-worktree",
            "mv .git old; mkdir -p fake/worktrees/w; echo 'gitdir: @P/fake/worktrees/w' > .git; echo @O/other/.git > fake/worktrees/w/commondir; echo @P/.git > fake/worktrees/w/gitdir",
        ),
        case("common-directory", "echo @O/other/.git > .git/commondir"),
        case("objects", "mv .git/objects old; ln -s @O/other .git/objects"),
        case("info", "rm -rf .git/info; ln -s @O/other .git/info"),
    ]
}

/// The directory of a session is exchanged after the session was created.
fn directories() -> Vec<Case> {
    const READS: &[(&str, &str, &str)] = &[
        ("file", "GET", "/file/content?path=secret.txt"),
        ("list", "GET", "/file?path=."),
        ("find", "GET", "/find?pattern=hush"),
        ("names", "GET", "/find/file?query=secret"),
        ("v2-file", "GET", "/api/fs/read/secret.txt?"),
        ("v2-list", "GET", "/api/fs/list?path=."),
    ];
    let mut cases = Vec::new();
    for (name, method, path) in READS {
        for at in ["directory", "directory-above"] {
            cases.push(
                exchange(&format!("request-directory/{name}/{at}"))
                    .uncontrolled("a directory that was replaced is refused for everybody")
                    .file("above/sub/x.txt", "x\n")
                    .file("@O/sub/secret.txt", "@S\n")
                    .play(move |scene| {
                        let moved = if at == "directory" { "above/sub" } else { "above" };
                        let to = if at == "directory" { "@O/sub" } else { "@O" };
                        super::people::with_team(scene, |team| {
                            let directory = scene.fill("@P/above/sub");
                            team.session_in("bob", &directory)?;
                            fs::rename(scene.path(moved), scene.path("@O/moved"))?;
                            symlink(scene.fill(to), scene.path(moved))?;
                            let mark = if path.contains('?') { '&' } else { '?' };
                            let place =
                                if path.starts_with("/api") { "location[directory]" } else { "directory" };
                            let (status, text) =
                                team.send("bob", method, &format!("{path}{mark}{place}={directory}"), "")?;
                            let shown = text.contains(super::scene::SECRET)
                                || (status == 200 && text.contains("secret.txt"));
                            anyhow::ensure!(!shown, "{path} shows another directory: {text:.200}");
                            Ok(())
                        })
                    }),
            );
        }
    }
    cases
}
