//! Links between packages, caches and directories of control files, and files that rules deny to programs of a repository.
//! The tests of the sandbox are skipped, with a note, where it is not complete.

use std::fs;
use std::os::unix::fs::symlink;

use anyhow::{Result, ensure};
use codewright_testkit::{Project, Run, Script, Turn};
use serde_json::{Value, json};

use crate::sandbox::is_enforced;
use crate::support::{Stage, check_has, program, wait_until};

fn shell(stage: &Stage, line: &str) -> Result<String> {
    let done = stage.program(["sandbox", "run", "--", "sh", "-c", line]).finish()?;
    Ok(format!("{}{}", done.stdout, done.stderr))
}

#[test]
fn a_link_gives_no_other_name_to_what_packages_and_caches_contain() -> Result<()> {
    let stage = Stage::git(Script::new())?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    for line in [
        "mkdir -p node_modules/p/.vscode && ln -s node_modules/p src1 && echo x > src1/.vscode/tasks.json",
        "ln -s node_modules/later src2; mkdir -p node_modules/later/.vscode; echo x > src2/.vscode/tasks.json",
        "mkdir -p a/vendor/q; ln -s vendor/q a/src3; mkdir a/src3/.vscode; echo x > a/src3/.vscode/tasks.json",
        "ln -s node_modules/p/l src4; mkdir -p node_modules/p/l/.vscode; echo x > src4/.vscode/tasks.json",
        "echo x > node_modules/f; ln -s node_modules/f src5; rm node_modules/f; mkdir -p node_modules/f/.vscode; \
         echo x > src5/.vscode/tasks.json",
        "mkdir -p \"$XDG_CACHE_HOME/c/.git\"; ln -s \"$XDG_CACHE_HOME/c\" node_modules/c; echo x > node_modules/c/.git/config",
        "mkdir -p \"$XDG_CACHE_HOME/d/.git\"; ln -s \"$XDG_CACHE_HOME/d\" vendor; echo x > vendor/.git/config",
        "mkdir -p node_modules/m; ln -s x node_modules/m/l; mv node_modules/m/l src6; mkdir -p x/.vscode; \
         echo x > src6/.vscode/tasks.json",
    ] {
        let said = shell(&stage, line)?;
        for name in ["src1", "src2", "a/src3", "src4", "src5", "src6"] {
            let tasks = stage.project.path(name).join(".vscode/tasks.json");
            ensure!(!tasks.exists(), "{line}: {said}");
        }
        for name in ["node_modules/c", "vendor"] {
            ensure!(!stage.project.path(name).join(".git/config").exists(), "{line}: {said}");
        }
    }
    Ok(())
}

#[test]
fn a_link_of_the_repository_into_packages_opens_no_name() -> Result<()> {
    let stage = Stage::git(Script::new())?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    fs::create_dir_all(stage.project.path("deep/er"))?;
    symlink("node_modules/x", stage.project.path("src"))?;
    symlink("../../node_modules/y", stage.project.path("deep/er/lib"))?;
    stage.project.run_git(&["add", "-A"])?;
    stage.project.run_git(&["commit", "-qm", "links"])?;
    let line = "mkdir -p node_modules/x/.vscode node_modules/y/.idea node_modules/z/.idea; \
                echo x > node_modules/x/.vscode/tasks.json; echo x > node_modules/y/.idea/w; \
                echo x > node_modules/z/.idea/w; echo x > node_modules/x/a.js";
    let said = shell(&stage, line)?;
    for name in ["src/.vscode/tasks.json", "deep/er/lib/.idea/w"] {
        ensure!(!stage.project.path(name).exists(), "{name}: {said}");
    }
    for name in ["src/a.js", "node_modules/z/.idea/w"] {
        ensure!(stage.project.path(name).exists(), "{name}: {said}");
    }
    Ok(())
}

#[test]
fn ordinary_links_of_packages_work() -> Result<()> {
    let stage = Stage::git(Script::new())?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    let line = "set -e; mkdir -p pkgs/a pkgs/b node_modules/.bin node_modules/.store/c target/debug out; \
                ln -s ../pkgs/a node_modules/a; ln -s .store/c node_modules/c; echo x > node_modules/c/cli.js; \
                ln -s ../c/cli.js node_modules/.bin/c; ln -s ../../node_modules pkgs/b/node_modules; \
                echo x > target/debug/app; ln -s target/debug/app app; ln -s pkgs/a direct; \
                echo x > node_modules/a/index.js; echo x > direct/more.js; ln -s /usr/lib lib; echo fine";
    check_has(&shell(&stage, line)?, &["fine"]);
    Ok(())
}

#[test]
fn every_link_on_the_way_from_a_hook_stays_as_it_is() -> Result<()> {
    let stage = Stage::git(Script::new())?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    for directory in ["scripts", "shared/skill", ".agents/skills/deep", ".git/hooks"] {
        fs::create_dir_all(stage.project.path(directory))?;
    }
    for (target, link) in [
        ("../../scripts/a", ".git/hooks/pre-commit"),
        ("b", "scripts/a"),
        ("../last/c", "scripts/b"),
        ("real", "last"),
        ("../../../shared/skill", ".agents/skills/deep/skill"),
    ] {
        symlink(target, stage.project.path(link))?;
    }
    stage.project.write("real/c", "good\n")?;
    for line in [
        "rm scripts/a; echo evil > scripts/a",
        "rm scripts/b; echo evil > scripts/b",
        "echo evil > e; mv e scripts/a",
        "ln -sfn evil scripts/b; echo evil > scripts/evil",
        "echo evil > real/c",
        "rm real/c; echo evil > real/c",
        "rm last; mkdir last; echo evil > last/c",
        "mv real old; mkdir real; echo evil > real/c",
        "echo evil > shared/skill/SKILL.md",
        "mv scripts s2; mkdir scripts; echo evil > scripts/a",
    ] {
        let said = shell(&stage, line)?;
        let hook = fs::read_to_string(stage.project.path(".git/hooks/pre-commit")).unwrap_or_default();
        ensure!(!hook.contains("evil"), "{line}: {said}");
        ensure!(!stage.project.path("shared/skill/SKILL.md").exists(), "{line}: {said}");
    }
    Ok(())
}

/// Writes what it can read of the files with secrets to a file, the name of which is its argument, and answers a client.
const LOOK: &str = r#"import os, sys
seen = []
for above, _, names in os.walk(os.environ.get("LOOK_AT") or sys.argv[2]):
    for name in names:
        try:
            text = open(os.path.join(above, name), errors="replace").read()
        except OSError:
            continue
        if "content-" + "7f3a" in text:
            seen.append(name)
open(os.path.join(sys.argv[2], sys.argv[1]), "w").write("looked " + " ".join(sorted(seen)))
"#;

#[test]
fn programs_of_a_trusted_repository_read_no_denied_file_and_those_of_the_user_do() -> Result<()> {
    let calls =
        [("write", json!({"filePath": "a.zz", "content": "x"})), ("read", json!({"filePath": "a.zz"}))];
    let stage =
        Stage::git(Script::new().default_turn(Turn::text("Done.")).turn(Turn::tools(calls)).text("Done."))?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    for name in ["secrets/key", "deep/a/b/server.pem", ".hidden.env", "deep/app.env"] {
        stage.project.write(name, "content-7f3a")?;
    }
    stage.project.write("look.py", LOOK)?;
    let own = stage.project.home().join("look.py");
    fs::write(&own, LOOK)?;
    let root = stage.project.directory().canonicalize()?.display().to_string();
    let words = |script: &str, result: &str| json!(["python3", script, result, root]);
    let mut config = Project::config(&stage.server.url());
    config["permission"] = json!({
        "edit": "allow",
        "read": {"*": "allow", "secrets/**": "deny", "**/*.pem": "deny", "*.env": "deny"},
    });
    config["mcp"] =
        json!({"own": {"type": "local", "command": words(&own.display().to_string(), "own-mcp")}});
    stage.project.write_config(&config)?;
    let hook = format!("python3 look.py their-hook {root}");
    let theirs = json!({
        "mcp": {"theirs": {"type": "local", "command": words("look.py", "their-mcp")}},
        "lsp": {"theirs": {"command": words("look.py", "their-lsp"), "extensions": [".zz"]}},
        "hooks": {"PostToolUse": [{"matcher": "write", "hooks": [{"type": "command", "command": hook, "timeout": 20}]}]},
    });
    stage.project.write("opencode.json", json!({"mcp": theirs["mcp"], "lsp": theirs["lsp"]}).to_string())?;
    stage.project.write("codewright.json", json!({"hooks": theirs["hooks"]}).to_string())?;
    let run: Run = program(&stage.project, ["run", "go"]).env("CODEWRIGHT_TRUST", "all");
    run.finish()?.success()?;
    let read = |name: &str| stage.project.read(name).unwrap_or_default();
    let results = ["their-mcp", "their-lsp", "their-hook", "own-mcp"];
    wait_until("the results", || results.iter().all(|name| read(name).starts_with("looked")))?;
    for name in &results[..3] {
        assert_eq!(read(name).trim(), "looked", "{name}");
    }
    check_has(&read("own-mcp"), &["key", "server.pem", ".hidden.env", "app.env"]);
    Ok(())
}

#[test]
fn a_line_that_creates_a_repository_and_runs_it_is_told_to_be_two_calls() -> Result<()> {
    let bash = |line: &str| Turn::steps().tool("bash", json!({"command": line, "description": "x"}));
    let script = Script::new()
        .turn(bash("git clone -q . copy && cd copy && python3 -c \"print('ran')\""))
        .turn(bash("git clone -q . copy"))
        .turn(bash(
            "cd copy && python3 -c \"open('made', 'w').write('x')\" && cat README.md made && echo ran",
        ))
        .text("Done.");
    let stage = Stage::git(script)?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    stage.run(["go"])?.success()?;
    check_has(&stage.results(1)?[0], &["/copy/.git`", "Make two calls: `git clone …` alone"]);
    check_has(&stage.results(3)?[2], &["ran"]);
    Ok(())
}

/// Leaves lines that git runs when a rebase continues, and tries links in their place.
const LEAVE: &str = "import os, sys
os.makedirs('.git/rebase-merge', exist_ok=True)
open('.git/rebase-merge/git-rebase-todo', 'w').write('exec touch mark\\nx touch mark\\npick abc def\\n')
os.makedirs('.git/sequencer', exist_ok=True)
for make in (lambda: os.symlink('../../evil', '.git/sequencer/todo'),
             lambda: os.link('.git/rebase-merge/git-rebase-todo', 'other'),
             lambda: os.symlink('../evil', '.git/rebase-apply')):
    try:
        make()
    except OSError as error:
        print('refused', error)
";

#[test]
fn a_command_leaves_no_step_that_git_runs_later() -> Result<()> {
    let bash = |line: &str| Turn::steps().tool("bash", json!({"command": line, "description": "x"}));
    let script = Script::new()
        .turn(bash("git rebase -q --exec true HEAD~1 && echo rebased"))
        .turn(bash("python3 leave.py"))
        .text("Done.");
    let stage = Stage::git(script)?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    stage.project.run_git(&["commit", "-q", "--allow-empty", "-m", "second"])?;
    stage.project.write("leave.py", LEAVE)?;
    stage.run(["go"])?.success()?;
    let results = stage.results(2)?;
    check_has(&results[0], &["rebased"]);
    check_has(&results[1], &["left lines `exec`", "git-rebase-todo", "sandbox.write"]);
    let list = stage.project.read(".git/rebase-merge/git-rebase-todo")?;
    assert_eq!(list, "# exec touch mark\n# x touch mark\npick abc def\n");
    for name in [".git/sequencer/todo", ".git/rebase-apply", "other"] {
        ensure!(stage.project.path(name).symlink_metadata().is_err(), "{name}: {results:#?}");
    }
    Ok(())
}

/// Opens and closes sockets in a directory until a file appears.
const SOCKETS: &str = "import os, socket, sys
folder, stop = sys.argv[1:]
number = 0
while not os.path.exists(stop):
    opened = []
    for _ in range(20):
        number += 1
        path = os.path.join(folder, str(number))
        one = socket.socket(socket.AF_UNIX)
        one.bind(path)
        opened.append((one, path))
    for one, path in opened:
        os.unlink(path)
        one.close()
";

#[test]
fn sockets_that_vanish_while_a_sandbox_is_prepared_stop_no_command() -> Result<()> {
    let stage = Stage::git(Script::new())?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    // The sandbox has a `/tmp` of its own.
    let folder = tempfile::TempDir::new_in("/var/tmp")?;
    let stop = stage.project.home().join("stop");
    let script = stage.project.home().join("sockets.py");
    fs::write(&script, SOCKETS)?;
    let mut sockets: Vec<std::process::Child> = Vec::new();
    for _ in 0..2 {
        let own = tempfile::TempDir::new_in(folder.path())?.keep();
        let mut command = std::process::Command::new("python3");
        sockets.push(command.arg(&script).arg(own).arg(&stop).spawn()?);
    }
    let mut failed: Vec<Value> = Vec::new();
    for _ in 0..40 {
        let done = stage.program(["sandbox", "run", "--", "echo", "started"]).finish()?;
        if !done.stdout.contains("started") {
            failed.push(json!([done.stdout, done.stderr]));
        }
    }
    fs::write(&stop, "")?;
    for mut child in sockets {
        child.wait()?;
    }
    ensure!(failed.is_empty(), "{failed:#?}");
    Ok(())
}
