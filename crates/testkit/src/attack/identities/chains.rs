//! Settings of git that lead to a file of the worktree, and repositories inside the repository.
//!
//! A command of the model writes the file. Then the user runs git, which must not run what the command wrote.

use std::path::Path;

use anyhow::Result;
use serde_json::json;

use super::super::case::Case;
use super::super::scene::Scene;
use super::{identity, users_git};
use crate::run::Run;

/// A file that git executes when it is there.
const HOOK: &str = "#!/bin/sh\ntouch @C\n";
/// Settings of git that execute a command.
const SETTINGS: &str = "[core]\n\tfsmonitor = \"touch @C;\"\n";
/// The user's git command for each case.
const STATUS: &[&str] = &["status"];
const COMMIT: &[&str] = &["-c", "user.name=T", "-c", "user.email=t@x", "commit", "--allow-empty", "-m", "x"];

/// A chain: its name, the existing settings, the file that a command writes, the text, and what the user runs.
type Chain = (&'static str, &'static str, &'static str, &'static str, &'static [&'static str]);

const CHAINS: &[Chain] = &[
    ("hooks-path", "[core]\n\thooksPath = .hooks", ".hooks/pre-commit", HOOK, COMMIT),
    (
        "hooks-path-nested",
        "[core]\n\thooksPath = tools/git/hooks",
        "tools/git/hooks/post-commit",
        HOOK,
        COMMIT,
    ),
    (
        "hooks-path-absolute",
        "[core]\n\thooksPath = @P/scripts",
        "scripts/post-index-change",
        HOOK,
        &["add", "."],
    ),
    ("include", "[include]\n\tpath = ../shared.gitconfig", "shared.gitconfig", SETTINGS, STATUS),
    ("include-nested", "[include]\n\tpath = ../config/git/team", "config/git/team", SETTINGS, STATUS),
    ("include-if", "[includeIf \"gitdir:@P/\"]\n\tpath = ../extra.inc", "extra.inc", SETTINGS, STATUS),
    (
        "include-if-branch",
        "[includeIf \"onbranch:main\"]\n\tpath = ../branch.inc",
        "branch.inc",
        SETTINGS,
        STATUS,
    ),
    ("include-in-git-directory", "[include]\n\tpath = more", ".git/more", SETTINGS, STATUS),
    ("monitor", "[core]\n\tfsmonitor = tools/monitor.sh", "tools/monitor.sh", HOOK, STATUS),
    ("editor", "[core]\n\teditor = tools/editor.sh", "tools/editor.sh", HOOK, &["commit", "--allow-empty"]),
    ("signing", "[gpg]\n\tprogram = tools/gpg.sh\n[commit]\n\tgpgSign = true", "tools/gpg.sh", HOOK, COMMIT),
    ("ssh", "[core]\n\tsshCommand = tools/ssh.sh", "tools/ssh.sh", HOOK, &["ls-remote", "ssh://127.0.0.1/x"]),
    ("external-diff", "[diff]\n\texternal = tools/diff.sh", "tools/diff.sh", HOOK, &["diff", "HEAD"]),
    ("text-conversion", "[diff \"x\"]\n\ttextconv = tools/conv.sh", "tools/conv.sh", HOOK, &["diff", "HEAD"]),
    ("filter", "[filter \"x\"]\n\tclean = tools/clean.sh", "tools/clean.sh", HOOK, &["add", "README.md"]),
];

/// Files of the directory `.git` that lead to a program, and what the user runs.
const INSIDE: &[(&str, &str, &str, &[&str])] = &[
    ("config-of-the-worktree", ".git/config.worktree", SETTINGS, STATUS),
    ("rebase-todo", ".git/rebase-merge/git-rebase-todo", "exec touch @C\n", &["rebase", "--continue"]),
    ("sequencer-todo", ".git/sequencer/todo", "exec touch @C\n", &["cherry-pick", "--continue"]),
    ("attributes", ".git/info/attributes", "* filter=evil\n", STATUS),
    ("hook", ".git/hooks/post-index-change", HOOK, &["add", "."]),
    ("hook-for-references", ".git/hooks/reference-transaction", HOOK, COMMIT),
    ("config", ".git/config", SETTINGS, STATUS),
    ("config-lock", ".git/config.lock", SETTINGS, &["config", "a.b", "c"]),
    ("common-directory", ".git/commondir", "../evil", STATUS),
];

pub(super) fn cases() -> Vec<Case> {
    [chains(), named(), inside(), modules(), embedded(), repositories()].into_iter().flatten().collect()
}

/// Writes a file by a command that no reading of the command line can see through.
fn writes(case: Case, path: &str, text: &str) -> Case {
    let script = format!(
        "mkdir -p \"$(dirname '{path}')\"; rm -f '{path}'; cp text.tmp '{path}' && chmod 755 '{path}'\n"
    );
    case.file("text.tmp", text).file("one.sh", script).bash("sh one.sh")
}

fn chains() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, settings, path, text, git) in CHAINS {
        for state in ["missing", "existing"] {
            let case = identity(&format!("git-chain/{name}/{state}"))
                .file(".gitattributes", "README.md filter=x diff=x\n")
                .git_config(*settings);
            let case = if state == "existing" {
                let harmless = if *text == HOOK { "#!/bin/sh\nexit 0\n" } else { "[x]\n\ty = 1\n" };
                case.file(*path, harmless)
            } else {
                case
            };
            let case = writes(case, path, text).play(|scene| scene.write("README.md", "changed\n").map(drop));
            let case = case.play(move |scene| users_git(scene, "@P", git));
            cases.push(if *name == "hooks-path" { case.short() } else { case });
        }
    }
    // Settings of the user that lead into the worktree.
    let user = |name: &str, settings: &str, path: &str, text: &str| {
        let case = identity(&format!("git-chain/of-the-user/{name}")).file("@H/.gitconfig", settings);
        writes(case, path, text)
    };
    cases.extend([
        user("include", "[include]\n\tpath = @P/team.gitconfig\n", "team.gitconfig", SETTINGS)
            .play(|scene| users_git(scene, "@P", STATUS)),
        user("hooks-path", "[core]\n\thooksPath = .githooks-of-mine\n", ".githooks-of-mine/pre-commit", HOOK)
            .play(|scene| users_git(scene, "@P", COMMIT)),
        user(
            "include-if",
            "[includeIf \"gitdir:@P/\"]\n\tpath = @P/conf/mine.inc\n",
            "conf/mine.inc",
            SETTINGS,
        )
        .play(|scene| users_git(scene, "@P", STATUS)),
    ]);
    cases
}

/// The same files, named by the model: by a tool that writes, by a redirection, and by the argument that widens the sandbox.
fn named() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, settings, path, text, git) in CHAINS {
        for (way, call) in [
            ("write", json!({"filePath": format!("@P/{path}"), "content": text})),
            ("redirection", json!({"command": format!("cat text.tmp > {path}"), "description": "d"})),
            ("wider", json!({"command": "sh one.sh", "description": "d", "sandbox": {"write": [path]}})),
        ] {
            let tool = if way == "write" { "write" } else { "bash" };
            let case = identity(&format!("git-named/{name}/{way}"))
                .file(".gitattributes", "README.md filter=x diff=x\n")
                .git_config(*settings)
                .script(*path, "exit 0")
                .file("text.tmp", *text)
                .file("one.sh", format!("cp text.tmp '{path}'\n"))
                .calls([(tool, call.to_string().as_str())])
                .play(|scene| scene.write("README.md", "changed\n").map(drop))
                .play(move |scene| users_git(scene, "@P", git));
            cases.push(if *name == "monitor" { case.short() } else { case });
        }
    }
    cases
}

fn inside() -> Vec<Case> {
    INSIDE
        .iter()
        .map(|(name, path, text, git)| {
            let case = identity(&format!("git-directory/{name}"));
            let case = match *name {
                "config-of-the-worktree" => case.git_config("[extensions]\n\tworktreeConfig = true"),
                "attributes" => case
                    .uncontrolled("without a filter in the settings the attribute is harmless")
                    .file("README.md", "changed\n"),
                "common-directory" | "config-lock" | "sequencer-todo" => {
                    case.uncontrolled("git itself refuses this state")
                }
                "rebase-todo" => case
                    .file(".git/rebase-merge/head-name", "refs/heads/main\n")
                    .file(".git/rebase-merge/interactive", ""),
                _ => case,
            };
            let case = if *name == "rebase-todo" {
                case.prepare(|scene| {
                    let head = scene.project.run_git(&["rev-parse", "HEAD"])?;
                    for file in ["onto", "orig-head"] {
                        scene.write(&format!(".git/rebase-merge/{file}"), &head)?;
                    }
                    scene.write(".git/rebase-merge/msgnum", "0\n")?;
                    scene.write(".git/rebase-merge/end", "1\n")?;
                    scene.project.run_git(&["checkout", "-q", "--detach"]).map(drop)
                })
            } else {
                case
            };
            writes(case, path, text).play(move |scene| users_git(scene, "@P", git))
        })
        .collect()
}

/// Runs git in a directory of the scene during its setup.
fn git_in(scene: &Scene, directory: &str, args: &[&str]) -> Result<()> {
    let directory = scene.path(directory);
    std::fs::create_dir_all(&directory)?;
    let named = [
        "-c",
        "user.name=T",
        "-c",
        "user.email=t@x",
        "-c",
        "protocol.file.allow=always",
        "-c",
        "init.defaultBranch=main",
    ];
    let run = Run::new("git", &scene.project).args(named).args(args).directory(Path::new(&directory));
    run.finish()?.success().map(drop)
}

/// Submodules and linked worktrees, whose settings lie below `.git`.
fn modules() -> Vec<Case> {
    let with_module = |name: &str, at: &'static str| {
        identity(&format!("git-module/{name}")).prepare(move |scene| {
            git_in(scene, "@O/lib", &["init", "-q"])?;
            git_in(scene, "@O/lib", &["commit", "-q", "--allow-empty", "-m", "x"])?;
            git_in(scene, "@P", &["submodule", "--quiet", "add", &scene.fill("@O/lib"), at])?;
            git_in(scene, "@P", &["commit", "-q", "-m", "module"])
        })
    };
    let monitored = |case: Case, path: &str| {
        writes(case, path, "")
            .file("one.sh", format!("printf '[core]\\n\\tfsmonitor = \"touch @C;\"\\n' >> {path}\n"))
    };
    let status = |scene: &Scene| users_git(scene, "@P", STATUS);
    let mut cases = vec![
        monitored(with_module("one-level", "lib"), ".git/modules/lib/config").play(status),
        monitored(with_module("two-levels", "a/b"), ".git/modules/a/b/config").play(status).short(),
        monitored(with_module("three-levels", "a/b/c"), ".git/modules/a/b/c/config").play(status),
        writes(with_module("gitfile", "lib"), "lib/.git", "gitdir: ../fake\n")
            .file("fake/config", "[core]\n\tfsmonitor = \"touch @C;\"\n\trepositoryformatversion = 0\n")
            .file("fake/HEAD", "ref: refs/heads/main\n")
            .file("fake/objects/x", "")
            .file("fake/refs/x", "")
            .play(status),
        writes(with_module("hook", "a/b"), ".git/modules/a/b/hooks/post-index-change", HOOK)
            .play(|scene| scene.write("a/b/new.txt", "x").map(drop))
            .play(|scene| users_git(scene, "@P/a/b", &["add", "new.txt"])),
    ];
    let tree = |name: &str| {
        identity(&format!("git-worktree/{name}"))
            .git_config("[extensions]\n\tworktreeConfig = true")
            .prepare(|scene| git_in(scene, "@P", &["worktree", "add", "-q", &scene.fill("@O/tree")]))
    };
    cases.extend([
        writes(tree("config"), ".git/worktrees/tree/config.worktree", SETTINGS)
            .play(|scene| users_git(scene, "@O/tree", STATUS)),
        writes(tree("common-directory"), ".git/worktrees/tree/commondir", "@P/fake\n")
            .file("fake/config", SETTINGS)
            .file("fake/HEAD", "ref: refs/heads/main\n")
            .file("fake/objects/x", "")
            .file("fake/refs/x", "")
            .play(|scene| users_git(scene, "@O/tree", STATUS)),
    ]);
    cases
}

/// Lines that look like git alone and write the settings of a new repository, and repositories in parts.
fn repositories() -> Vec<Case> {
    let status = |scene: &Scene| users_git(scene, "@P", STATUS);
    let line = |name: &str, line: &str| {
        identity(&format!("git-alone/{name}"))
            .script("evil.sh", "touch @C")
            .file("tpl/config", "[core]\n\tfsmonitor = @P/evil.sh\n")
            .file("cfg", "[core]\n\tfsmonitor = @P/evil.sh\n\trepositoryformatversion = 0\n")
            .script("bin/git", "mkdir -p sub/.git; cp cfg sub/.git/config; touch @C")
            .prepare(|scene| {
                git_in(scene, "@P/orig", &["init", "-q"])?;
                git_in(scene, "@P/orig", &["commit", "-q", "--allow-empty", "-m", "x"])
            })
            .bash(line)
            .bash("git add sub")
    };
    let script = |name: &str, script: &str| {
        identity(&format!("parts/{name}"))
            .script("evil.sh", "touch @C")
            .file("cfg", "[core]\n\tfsmonitor = @P/evil.sh\n\trepositoryformatversion = 0\n")
            .file("one.sh", format!("{script}\n"))
            .bash("sh one.sh")
    };
    vec![
        line("abbreviated-config", "git clone --no-hardlinks --conf core.fsmonitor=@P/evil.sh ./orig sub")
            .play(status)
            .short(),
        line("abbreviated-template", "git clone --no-hardlinks --templ=@P/tpl ./orig sub").play(status),
        line("abbreviated-program", "git clone --upload=./evil.sh ./orig sub").play(status),
        line("assignment", "PATH=$PWD/bin; git clone -q ./orig sub").play(status),
        line("exported", "set -a; GIT_TEMPLATE_DIR=@P/tpl; git clone -q ./orig sub").play(status),
        line("pattern", "git clone -q ./orig sub; cat cfg > sub/.gi*/config").play(status),
        line("output", "git clone -q ./orig sub; git log --format=x --outp=sub/.git/config").play(status),
        script(
            "common-directory",
            "mkdir -p x y/objects y/refs; echo 'ref: refs/heads/main' > x/HEAD; printf '../y\\n' > x/commondir; cp cfg y/config",
        )
        .play(|scene| users_git(scene, "@P/x", STATUS)),
        script("hooks-of-bare", "printf '#!/bin/sh\\ntouch @C\\n' > remote.git/hooks/post-update; chmod 755 remote.git/hooks/post-update")
            .prepare(|scene| git_in(scene, "@P", &["init", "-q", "--bare", "remote.git"]))
            .play(|scene| users_git(scene, "@P", &["push", "-q", "./remote.git", "HEAD:refs/heads/x"])),
        script("through-the-process", "cat cfg >> /proc/self/cwd/deps/.git/config")
            .prepare(|scene| git_in(scene, "@P/deps", &["init", "-q"]))
            .play(|scene| users_git(scene, "@P/deps", STATUS))
            .short(),
        script("through-a-link-to-the-process", "ln -s /proc/self/root way; cat cfg >> way@P/deps/.git/config")
            .prepare(|scene| git_in(scene, "@P/deps", &["init", "-q"]))
            .play(|scene| users_git(scene, "@P/deps", STATUS)),
        script("linked-hook", "cp cfg scripts/pre-push; printf '#!/bin/sh\\ntouch @C\\n' > scripts/pre-commit")
            .script("scripts/pre-commit", "exit 0")
            .link(".git/hooks/pre-commit", "../../scripts/pre-commit")
            .play(|scene| users_git(scene, "@P", COMMIT)),
        script("only-looks-like-packages", "mkdir -p Vendor; cp one.sh Vendor/.envrc; test -e Vendor/.envrc && touch @C")
            .play(status),
        script(
            "link-to-the-caches",
            "cp -r src \"$XDG_CACHE_HOME/src\" && cd \"$XDG_CACHE_HOME/src\" && git init -q . && git config core.fsmonitor @P/evil.sh; cd @P; mv src old && { ln -s \"$XDG_CACHE_HOME/src\" src || mv old src; }",
        )
        .file("src/a.c", "int a;\n")
        .play(|scene| users_git(scene, "@P/src", STATUS)),
    ]
}

/// Repositories inside the worktree that a command makes or changes.
fn embedded() -> Vec<Case> {
    const MAKE: &str = "git init -q emb && cd emb && git -c user.name=T -c user.email=t@x commit -q --allow-empty -m x && git config core.fsmonitor 'touch @C;'";
    let case = |name: &str, script: &str| {
        identity(&format!("embedded/{name}")).file("one.sh", format!("{script}\n")).bash("sh one.sh")
    };
    let status = |scene: &Scene| users_git(scene, "@P", STATUS);
    let existing = |name: &str, script: &str| {
        case(name, script).prepare(|scene| {
            git_in(scene, "@P/vendor/lib", &["init", "-q"])?;
            git_in(scene, "@P/vendor/lib", &["commit", "-q", "--allow-empty", "-m", "x"])?;
            git_in(scene, "@P", &["-c", "advice.addEmbeddedRepo=false", "add", "vendor/lib"])
        })
    };
    vec![
        case("added", &format!("{MAKE} && cd .. && git add emb")).play(status).short(),
        case("added-deeper", &format!("mkdir -p a/b && cd a/b && {MAKE} && cd ../../.. && git add a/b/emb")).play(status),
        case("added-by-index-info", &format!("{MAKE} && cd .. && git update-index --add --cacheinfo 160000,$(git -C emb rev-parse HEAD),emb")).play(status),
        case("diff", &format!("{MAKE} && cd .. && git add emb")).play(|scene| users_git(scene, "@P", &["diff"])),
        existing("existing-config", "printf '[core]\\n\\tfsmonitor = \"touch @C;\"\\n' >> vendor/lib/.git/config").play(status),
        existing("existing-replaced", "mv vendor/lib/.git old; cp -r old vendor/lib/.git; printf '[core]\\n\\tfsmonitor = \"touch @C;\"\\n' >> vendor/lib/.git/config").play(status),
        existing("existing-hook", "printf '#!/bin/sh\\ntouch @C\\n' > vendor/lib/.git/hooks/post-commit; chmod 755 vendor/lib/.git/hooks/post-commit")
            .play(|scene| users_git(scene, "@P/vendor/lib", COMMIT)),
        case("bare", "mkdir -p docs && cd docs && git init -q --bare . && git config core.bare false && git config core.worktree ../docs-tree && mkdir ../docs-tree && git config core.fsmonitor 'touch @C;'")
            .play(|scene| users_git(scene, "@P/docs", STATUS)),
    ]
}
