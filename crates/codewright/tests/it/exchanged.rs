//! Names that a command exchanges before this program uses them again.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::Result;
use codewright_testkit::{Script, Steps, Turn};
use serde_json::json;

use crate::sandbox::is_enforced;
use crate::support::{Stage, check_has, text_of};

/// Exchanges everything that is shared with a command for a link to another directory, as far as that is possible.
const EXCHANGE: &str = r#"
import os, shutil, sys, time
target = sys.argv[1]
places = set()
for name in ["GOCACHE", "GOMODCACHE", "PIP_CACHE_DIR", "CARGO_HOME", "npm_config_cache", "TMPDIR"]:
    path = os.environ.get(name)
    while path and path not in ("/", os.environ["HOME"]):
        places.add(path)
        path = os.path.dirname(path)
places.update(["/tmp/sandbox-caches", "/tmp/caches"])
for place in sorted(places, key=len, reverse=True):
    for name in [".used", ".linked", "x"]:
        try:
            link = os.path.join(place, name)
            if os.path.lexists(link):
                os.remove(link)
            os.symlink(os.path.join(target, "settings.json"), link)
            os.utime(link, (0, 0), follow_symlinks=False)
        except OSError:
            pass
for place in sorted(places, key=len, reverse=True):
    try:
        if os.path.lexists(place):
            try:
                os.rename(place, place + ".moved-%d" % time.time_ns())
            except OSError:
                shutil.rmtree(place)
        os.symlink(target, place)
        print("exchanged", place)
    except OSError as error:
        print("kept", place, error.strerror)
print("tried")
"#;
/// Writes into the directory that the links lead to.
const WRITE: &str = r#"
import os, sys
for path in [sys.argv[1] + "/written", os.environ.get("GOCACHE", "/none") + "/cached", "/tmp/private"]:
    try:
        open(path, "w").write("x")
        print("wrote", path)
    except OSError as error:
        print("failed", path, error.strerror)
"#;

/// A stage with a directory outside, whose commands exchange names and then write.
fn stage() -> Result<(Stage, tempfile::TempDir)> {
    let outside = tempfile::TempDir::new_in("/var/tmp")?;
    fs::write(outside.path().join("settings.json"), "kept")?;
    let target = outside.path().display();
    let commands =
        ["exchange", "write", "exchange", "write"].map(|name| format!("python3 {name}.py {target}"));
    let script = commands.iter().fold(Script::new(), |script, command| {
        script.turn(Turn::tools([("bash", json!({"command": command}))]))
    });
    let stage = Stage::git(script.text("Done."))?;
    stage.project.write("exchange.py", EXCHANGE)?;
    stage.project.write("write.py", WRITE)?;
    Ok((stage, outside))
}

/// The directory of this program's state.
fn state(stage: &Stage) -> PathBuf {
    stage.project.home().join(".local/state/codewright")
}

#[test]
fn exchanged_caches_and_private_directories_lead_nowhere() -> Result<()> {
    for args in [&["--auto", "--agent", "plan", "go"][..], &["--auto", "go"]] {
        let (stage, outside) = stage()?;
        if !is_enforced(&stage)? {
            return Ok(());
        }
        stage.run(args.iter().copied())?.success()?;
        let results = stage.results(4)?;
        assert_eq!(results.len(), 4);
        for result in &results {
            assert!(
                result.contains("tried") || result.contains("wrote /tmp/private"),
                "{args:?}: {results:#?}"
            );
        }
        assert_eq!(fs::read_to_string(outside.path().join("settings.json"))?, "kept", "{args:?}");
        let names = fs::read_dir(outside.path())?.count();
        assert_eq!(names, 1, "{args:?}: {results:#?}");
        stage.no_problems()?;
    }
    Ok(())
}

/// Runs a program in the sandbox of a directory. Returns its output and the warnings.
fn tried(stage: &Stage, mode: &str, command: &str) -> Result<(String, String)> {
    let args = ["sandbox", "--sandbox", mode, "run", "--", "sh", "-c", command];
    let done = stage.program(args).finish()?;
    Ok((done.stdout, done.stderr))
}

#[test]
fn a_link_or_a_foreign_directory_in_place_of_a_shared_one_is_refused_and_named() -> Result<()> {
    let (stage, outside) = stage()?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    let write =
        format!("touch /tmp/x $GOCACHE/y && echo done; touch {0}/a 2>&1; ls /tmp", outside.path().display());
    let (text, warnings) = tried(&stage, "workspace", &write)?;
    assert!(text.contains("done") && warnings.is_empty(), "{text} {warnings}");
    let state = state(&stage);
    let caches = fs::read_dir(state.join("sandbox-caches"))?.flatten().map(|entry| entry.path());
    let caches: Vec<PathBuf> = caches.filter(|path| path.is_dir()).collect();
    let private = state.join("sandbox/ses_trial");
    let moved = |path: &Path| path.with_extension("moved");
    let is_root = nix_is_root();
    for (place, what) in [(&caches[0], "caches"), (&private, "private temporary directory")] {
        fs::rename(place, moved(place))?;
        for kind in ["link", "file", "foreign"] {
            match kind {
                "link" => symlink(outside.path(), place)?,
                "file" => fs::write(place, "")?,
                _ if !is_root => continue,
                _ => {
                    fs::create_dir(place)?;
                    std::os::unix::fs::chown(place, Some(12345), Some(12345))?;
                }
            }
            let (text, warnings) = tried(&stage, "workspace", &write)?;
            assert!(text.contains("done"), "{what} {kind}: {text} {warnings}");
            check_has(&warnings, &[what, "not used", "remove it"]);
            fs::remove_file(place).or_else(|_| fs::remove_dir_all(place))?;
        }
        fs::rename(moved(place), place)?;
    }
    assert_eq!(fs::read_dir(outside.path())?.count(), 1);
    let (_, warnings) = tried(&stage, "workspace", &write)?;
    assert_eq!(warnings, "");
    Ok(())
}

/// Whether the tests run as root, who alone can give files away.
fn nix_is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}

#[test]
fn old_directories_are_removed_without_following_links() -> Result<()> {
    let (stage, outside) = stage()?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    tried(&stage, "workspace", "true")?;
    let state = state(&stage);
    for parent in ["sandbox-caches", "sandbox"] {
        let old = state.join(parent).join("old");
        fs::create_dir_all(old.join("deep"))?;
        symlink(outside.path(), old.join("link"))?;
        symlink(outside.path(), old.join("deep/link"))?;
        fs::File::open(&old)?.set_modified(std::time::SystemTime::UNIX_EPOCH)?;
        symlink(outside.path(), state.join(parent).join("old-link"))?;
    }
    fs::remove_dir_all(state.join("sandbox/ses_trial"))?;
    for entry in fs::read_dir(state.join("sandbox-caches"))?.flatten() {
        if entry.file_name().to_string_lossy().ends_with("~used") {
            fs::File::open(entry.path())?.set_modified(std::time::SystemTime::UNIX_EPOCH)?;
        }
    }
    tried(&stage, "workspace", "true")?;
    assert!(!state.join("sandbox-caches/old").exists() && !state.join("sandbox/old").exists());
    assert_eq!(fs::read_to_string(outside.path().join("settings.json"))?, "kept");
    assert!(outside.path().is_dir());
    Ok(())
}

/// Prints what programs that name no file see of some contents.
const SEARCH: &str = r#"
import os, subprocess, sys
mark = "content-" + "7f3a"
def run(name, line):
    done = subprocess.run(line, shell=True, capture_output=True, text=True, errors="replace")
    print(name, "sees" if mark in done.stdout + done.stderr else "misses", done.returncode)
run("grep", "grep -r . .")
run("git-grep", "git grep --no-index -h . ; git grep -h .")
run("tar", "tar cf - . | cat")
run("cp", "cp -r . /tmp/copy; cat /tmp/copy/*/* /tmp/copy/*/*/* /tmp/copy/*")
run("link", "ln secrets/key linked; cat linked; mv secrets moved; cat moved/key; chmod 600 secrets/key; cat secrets/key")
run("write", "echo x >> secrets/key; rm -f secrets/key; cat secrets/key")
def walk():
    for top, _, names in os.walk("."):
        for name in names:
            try:
                if mark in open(os.path.join(top, name), errors="replace").read():
                    return True
            except OSError:
                pass
    return False
print("python", "sees" if walk() else "misses", 0)
open("made.pem", "w").write("own")
print("own", open("made.pem").read())
print("open", open("src/open.txt").read())
"#;

/// A stage whose rules deny reading some files, and whose model runs the search in these turns.
fn masked_stage(rules: serde_json::Value, script: Script) -> Result<Stage> {
    let stage = Stage::git(script)?;
    let mut config = codewright_testkit::Project::config(&stage.server.url());
    config["permission"] = json!({ "read": rules });
    stage.project.write_config(&config)?;
    stage.project.write("search.py", SEARCH)?;
    for name in ["secrets/key", "deep/a/b/server.pem", ".hidden.env", "deep/app.env"] {
        stage.project.write(name, "content-7f3a")?;
    }
    stage.project.write("src/open.txt", "visible")?;
    Ok(stage)
}

/// What each program of the search saw.
fn check_masked(result: &str) {
    for name in ["grep", "git-grep", "tar", "cp", "link", "write", "python"] {
        assert!(result.contains(&format!("{name} misses")), "{name}: {result}");
    }
    check_has(result, &["own own", "open visible"]);
}

fn search() -> Steps {
    Turn::tools([("bash", json!({"command": "python3 search.py"}))])
}

#[test]
fn files_that_rules_deny_to_read_are_masked_for_commands_and_subagents() -> Result<()> {
    let rules = json!({"*": "allow", "secrets/**": "deny", "**/*.pem": "deny", "*.env": "deny"});
    let task = json!({"description": "search", "prompt": "search it", "subagent_type": "general"});
    let script = Script::new()
        .turn(search())
        .turn(Turn::tools([("task", task)]))
        .turn(search())
        .text("Done.")
        .text("Done.");
    let stage = masked_stage(rules, script)?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    stage.run(["--auto", "go"])?.success()?;
    let requests = stage.server.main_requests();
    let is_of_subagent = |body: &serde_json::Value| {
        let messages = body["messages"].as_array();
        let mut users = messages.into_iter().flatten().filter(|message| message["role"] == "user");
        users.any(|message| text_of(&message["content"]).contains("search it"))
    };
    let of_subagent: Vec<String> = requests
        .iter()
        .filter(|request| is_of_subagent(&request.body))
        .map(|request| request.body["messages"].to_string())
        .collect();
    assert!(of_subagent.iter().any(|text| text.contains("grep misses")), "{of_subagent:#?}");
    assert!(!of_subagent.iter().any(|text| text.contains("sees")), "{of_subagent:#?}");
    check_masked(&stage.results(1)?[0]);
    for name in ["secrets/key", "deep/a/b/server.pem", ".hidden.env"] {
        assert_eq!(stage.project.read(name)?, "content-7f3a", "{name}");
    }
    assert!(stage.project.path("made.pem").exists() && !stage.project.path("moved").exists());
    Ok(())
}

#[test]
fn without_a_denial_nothing_is_masked_and_too_many_denied_files_stop_the_command() -> Result<()> {
    let script = Script::new().turn(search()).text("Done.");
    let stage = masked_stage(json!({"*.env": "ask"}), script)?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    stage.run(["--auto", "go"])?.success()?;
    check_has(&stage.results(1)?[0], &["grep sees", "python sees", "open visible"]);
    let script = Script::new().turn(search()).text("Done.");
    let stage = masked_stage(json!({"*": "allow", "many/*": "deny"}), script)?;
    for number in 0..2001 {
        stage.project.write(format!("many/{number}"), "")?;
    }
    stage.run(["--auto", "go"])?.success()?;
    check_has(&stage.results(1)?[0], &["was not run", "more than 2000 files", "sandbox.hide"]);
    Ok(())
}

#[test]
fn the_configuration_and_what_it_inserts_are_not_visible() -> Result<()> {
    let mark = "hidden-7f3a";
    let script =
        Script::new().turn(Turn::tools([("bash", json!({"command": "python3 look.py"}))])).text("Done.");
    let stage = Stage::git(script)?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    let home = stage.project.home();
    let other = tempfile::TempDir::new_in("/var/tmp")?;
    let put = |path: PathBuf, text: String| -> Result<String> {
        fs::create_dir_all(path.parent().unwrap_or(&path))?;
        fs::write(&path, text)?;
        Ok(path.to_string_lossy().into_owned())
    };
    let key = |name: &str| format!("{{\"username\": \"{mark}-{name}\"}}");
    let files = [
        put(home.join(".opencode/opencode.json"), key("a"))?,
        put(home.join(".codewright/codewright.json"), key("b"))?,
        put(home.join(".config/opencode/prompts/own.md"), mark.to_owned())?,
        put(other.path().join("dir/opencode.jsonc"), key("c"))?,
        put(other.path().join("other-dir/notes.md"), mark.to_owned())?,
        put(
            other.path().join("named.json"),
            format!("{{\"username\": \"{{file:{}/key}}\"}}", other.path().display()),
        )?,
        put(other.path().join("key"), mark.to_owned())?,
        put(other.path().join("aws"), mark.to_owned())?,
    ];
    let shown = put(home.join(".opencode/bin/tool"), "program".to_owned())?;
    let paths = serde_json::to_string(&files)?;
    let look = format!(
        "for path in {paths} + [{shown:?}]:\n  try:\n    print(path, 'is', repr(open(path).read()))\n  except OSError as error:\n    \
         print(path, 'fails')\n"
    );
    stage.project.write("look.py", look)?;
    let at = |name: &str| other.path().join(name);
    let run = stage.program(["run", "--auto", "go"]).env("CODEWRIGHT_CONFIG", at("named.json"));
    let run = run.env("CODEWRIGHT_CONFIG_DIR", at("dir")).env("OPENCODE_CONFIG_DIR", at("other-dir"));
    run.env("AWS_SHARED_CREDENTIALS_FILE", at("aws")).finish()?.success()?;
    let result = &stage.results(1)?[0];
    assert!(!result.contains(mark), "{result}");
    check_has(result, &["named.json", "'program'"]);
    Ok(())
}

#[test]
fn a_link_that_a_command_can_have_created_gives_a_server_nothing() -> Result<()> {
    let stage = Stage::git(Script::new().text("Done."))?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    let [exchanged, own] = [0, 1].map(|_| tempfile::TempDir::new_in("/var/tmp"));
    let (exchanged, own) = (exchanged?, own?);
    symlink(exchanged.path(), stage.project.path("data"))?;
    let link = stage.project.home().join("notes");
    symlink(own.path(), &link)?;
    let mut config = codewright_testkit::Project::config(&stage.server.url());
    let server =
        |path: &Path| json!({"type": "local", "command": ["sh", "-c", "touch \"$0/planted\"", path]});
    config["mcp"] = json!({"one": server(&stage.project.path("data")), "two": server(&link)});
    stage.project.write_config(&config)?;
    stage.run(["--auto", "go"])?.success()?;
    assert!(own.path().join("planted").exists(), "the user's own link is followed");
    assert_eq!(fs::read_dir(exchanged.path())?.count(), 0);
    Ok(())
}

#[test]
fn on_a_full_disk_a_command_runs_without_caches_and_says_so() -> Result<()> {
    // Mount points in the private `/tmp` would need space.
    let server = codewright_testkit::BlockingServer::start(Script::new().text("Done."))?;
    let project = codewright_testkit::Project::plain_in(Path::new("/var/tmp"))?.with_git()?;
    project.configure(&server.url())?;
    let stage = Stage { server, project };
    if !is_enforced(&stage)? {
        return Ok(());
    }
    tried(&stage, "workspace", "true")?;
    let state = state(&stage);
    // File systems without space for another directory.
    let full = "mount -t tmpfs -o nr_inodes=1,mode=700 none \"$0\" && mount -t tmpfs -o nr_inodes=2,mode=700 none \"$1\" && \
                mkdir -m 700 \"$1/ses_trial\" && shift && exec \"$@\"";
    let (caches, sessions) = (state.join("sandbox-caches"), state.join("sandbox"));
    let run = codewright_testkit::Run::new("unshare", &stage.project).args(["--mount", "sh", "-c", full]);
    let run = run.args([&caches, &sessions]).args([env!("CARGO_BIN_EXE_codewright")]);
    let run = run.args(["sandbox", "run", "--", "sh", "-c", "echo ran ${GOCACHE:-without}"]);
    let done = run.finish()?;
    if done.stderr.contains("unshare failed") {
        return Ok(());
    }
    check_has(&done.stdout, &["ran without"]);
    check_has(&done.stderr, &["had no caches", "full"]);
    Ok(())
}
