//! Machines that lack a part of the sandbox: which restrictions remain, and which reason the user reads.
//!
//! A small program removes the part: it makes system calls fail, or exchanges bubblewrap, and then starts this program.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use codewright_testkit::{Run, Script, Turn};
use serde_json::{Value, json};

use crate::support::{Stage, check_has};

/// Makes system calls fail and starts a program: `LIMIT,... PROGRAM ARGUMENT...`.
const LIMITED: &str = r#"
import ctypes, os, platform, struct, sys

ENOSYS, EPERM, NEWUSER = 38, 1, 0x10000000
old = {'x86_64': {'clone': 56, 'unshare': 272}, 'aarch64': {'clone': 220, 'unshare': 97}}[platform.machine()]
# The number of a call, the error, and the flag in the first argument, if only calls with this flag fail.
limits = {
    'landlock': [(444, ENOSYS, 0)],
    'openat2': [(437, ENOSYS, 0)],
    'mounts': [(428, ENOSYS, 0)],
    'namespaces': [(old['clone'], EPERM, NEWUSER), (old['unshare'], EPERM, NEWUSER), (435, ENOSYS, 0)],
}
code = b''
for name in sys.argv[1].split(','):
    for number, error, flag in limits[name]:
        # Load the number; compare; load the low half of the argument; test the flag; return the error.
        code += struct.pack('HBBI', 0x20, 0, 0, 0)
        code += struct.pack('HBBI', 0x15, 0, 3 if flag else 1, number)
        if flag:
            code += struct.pack('HBBI', 0x20, 0, 0, 16)
            code += struct.pack('HBBI', 0x45, 0, 1, flag)
        code += struct.pack('HBBI', 0x06, 0, 0, 0x50000 | error)
code += struct.pack('HBBI', 0x06, 0, 0, 0x7fff0000)
filters = ctypes.create_string_buffer(code)

class Program(ctypes.Structure):
    _fields_ = [('length', ctypes.c_ushort), ('filters', ctypes.c_void_p)]

libc = ctypes.CDLL(None, use_errno=True)
program = Program(len(code) // 8, ctypes.addressof(filters))
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(program)) == 0, ctypes.get_errno()
os.execvp(sys.argv[2], sys.argv[2:])
"#;
/// The path at which bubblewrap is exchanged.
const BUBBLEWRAP: &str = "/usr/bin/bwrap";
/// A program that fails like bubblewrap without user namespaces.
const BROKEN: &str = "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n";

/// A stage whose model runs a command that no reading of the command line can see through.
fn stage() -> Result<Stage> {
    let call = json!({"command": "python3 -c \"open('made', 'w'); print('ran')\""});
    let stage = Stage::git(Script::new().turn(Turn::tools([("bash", call)])).text("Done."))?;
    stage.project.write("limited.py", LIMITED)?;
    Ok(stage)
}

/// The program behind other programs, without another sandbox.
fn behind(stage: &Stage, launcher: &[&str], args: &[&str]) -> Run {
    let words = launcher.iter().chain(&[env!("CARGO_BIN_EXE_codewright")]).chain(args);
    let mut words = words.map(ToString::to_string);
    let run = Run::new(words.next().unwrap_or_default(), &stage.project).args(words);
    let run = run.env("OPENCODE_DISABLE_LOCAL_SERVERS", "1").env("OPENCODE_DISABLE_MODELS_FETCH", "1");
    run.without_env("CODEWRIGHT_SANDBOX_OUTER")
}

fn report(stage: &Stage, launcher: &[&str]) -> Result<Value> {
    let done = behind(stage, launcher, &["sandbox", "--json"]).finish()?.success()?;
    serde_json::from_str(&done.stdout).context("not JSON")
}

/// Whether a command runs without permission. Checks that a rejected one has a reason and no effect.
fn runs(stage: &Stage, launcher: &[&str]) -> Result<bool> {
    let done = behind(stage, launcher, &["run", "go"]).finish()?.success()?;
    let result = stage.results(1)?.first().cloned().unwrap_or_default();
    let is_made = stage.project.path("made").exists();
    assert_eq!(result.contains("ran\n"), is_made, "{result}");
    if !is_made {
        check_has(&result, &["cannot enforce the sandbox", "bubblewrap", "sandbox.outer"]);
        check_has(&done.stderr, &["auto-rejecting"]);
    }
    Ok(is_made)
}

/// Runs a launcher that does nothing else. Reports why a test is skipped.
#[expect(clippy::print_stderr, reason = "the results must show that the test was skipped")]
fn is_usable(stage: &Stage, launcher: &[&str]) -> Result<bool> {
    let words: Vec<&str> = launcher.iter().copied().chain(["true"]).collect();
    let done = Run::new(words[0], &stage.project).args(&words[1..]).finish();
    let is_usable = done.as_ref().is_ok_and(|done| done.code == Some(0));
    if !is_usable {
        eprintln!("skipped: `{}` does not work here: {done:?}", words.join(" "));
    }
    Ok(is_usable)
}

/// The words that start a program without these system calls.
fn without(limits: &str) -> [&str; 3] {
    ["python3", "limited.py", limits]
}

/// The words that start a program in namespaces, with more options of bubblewrap.
fn contained<'a>(options: &[&'a str]) -> Vec<&'a str> {
    [&["bwrap", "--dev-bind", "/", "/"][..], options, &["--"]].concat()
}

#[test]
fn without_user_namespaces_landlock_is_used_and_commands_need_a_reply() -> Result<()> {
    let stage = stage()?;
    let launcher = without("namespaces");
    if !is_usable(&stage, &launcher)? {
        return Ok(());
    }
    let found = report(&stage, &launcher)?;
    assert_eq!(found["complete"], false, "{found}");
    assert!(found["mechanism"] == "landlock" || found["mechanism"] == "none", "{found}");
    check_has(&found["reasons"].to_string(), &["bubblewrap"]);
    assert!(!runs(&stage, &launcher)?);
    Ok(())
}

#[test]
fn without_landlock_new_names_cannot_be_compared_and_every_command_needs_a_reply() -> Result<()> {
    let stage = stage()?;
    let launcher = without("landlock");
    if !is_usable(&stage, &launcher)? || report(&stage, &[])?["complete"] != true {
        return Ok(());
    }
    let found = report(&stage, &launcher)?;
    assert_eq!((&found["mechanism"], &found["complete"]), (&json!("bubblewrap"), &json!(false)));
    check_has(&found["reasons"].to_string(), &["names of new files"]);
    assert!(!runs(&stage, &launcher)?);
    Ok(())
}

#[test]
fn without_both_nothing_is_enforced_and_commands_need_a_reply() -> Result<()> {
    let stage = stage()?;
    let launcher = without("landlock,namespaces");
    if !is_usable(&stage, &launcher)? {
        return Ok(());
    }
    let found = report(&stage, &launcher)?;
    assert_eq!((&found["mechanism"], &found["complete"]), (&json!("none"), &json!(false)));
    check_has(&found["reasons"].to_string(), &["bubblewrap", "no Landlock"]);
    assert!(!runs(&stage, &launcher)?);
    // Not even the user's own trial runs unrestricted.
    let tried = behind(&stage, &launcher, &["sandbox", "run", "--", "touch", "made"]).finish()?;
    assert!(tried.code != Some(0) && !stage.project.path("made").exists());
    check_has(&tried.stderr, &["cannot enforce the sandbox"]);
    Ok(())
}

#[test]
fn an_old_landlock_restricts_less_and_every_command_needs_a_reply() -> Result<()> {
    const VARIABLE: &str = "CODEWRIGHT_SANDBOX_MECHANISM";
    for (version, gaps) in [(6, 4), (5, 5), (2, 6), (1, 6)] {
        let stage = stage()?;
        let run = |args: &[&str]| behind(&stage, &[], args).env(VARIABLE, format!("landlock:{version}"));
        let found: Value = serde_json::from_str(&run(&["sandbox", "--json"]).finish()?.success()?.stdout)?;
        if found["mechanism"] != "landlock" {
            return Ok(());
        }
        assert_eq!(found["gaps"].as_array().map(Vec::len), Some(gaps), "{found}");
        // What the interface restricts is restricted.
        let line = "touch inside; ! touch /etc/codewright-outside";
        let tried = run(&["sandbox", "run", "--", "sh", "-c", line]).env("CODEWRIGHT_SANDBOX_OUTER", "1");
        tried.finish()?.success()?;
        let done = run(&["run", "--sandbox", "read-only", "go"]).finish()?.success()?;
        let is_asked = done.stderr.contains("auto-rejecting");
        assert_eq!(is_asked, version < 6, "{version}: {}", done.stderr);
        assert!(!stage.project.path("made").exists());
    }
    Ok(())
}

#[test]
fn without_its_own_mounts_the_helper_leaves_them_to_bubblewrap() -> Result<()> {
    let stage = stage()?;
    if report(&stage, &[])?["complete"] != true {
        return Ok(());
    }
    let line = "touch inside; ! touch /etc/outside && ! touch .git/hooks/one && cat /proc/self/mountinfo";
    let mut tables = Vec::new();
    for launcher in [&[][..], &without("mounts")[..]] {
        if !is_usable(&stage, &[launcher, &["env"]].concat())? {
            return Ok(());
        }
        assert_eq!(report(&stage, launcher)?["complete"], true);
        let done =
            behind(&stage, launcher, &["sandbox", "run", "--", "sh", "-c", line]).finish()?.success()?;
        tables.push(done.stdout.contains("/dev/codewright "));
    }
    assert_eq!(tables, [false, true]);
    Ok(())
}

#[test]
fn a_missing_or_broken_bubblewrap_is_named() -> Result<()> {
    for (content, reason) in
        [(None, "bubblewrap is not installed"), (Some(BROKEN), "No permissions to create new namespace")]
    {
        let stage = stage()?;
        let file = match content {
            Some(content) => stage.project.write("broken", content)?,
            None => "/dev/null".into(),
        };
        if content.is_some() {
            let is_set = Command::new("chmod").arg("755").arg(&file).status()?;
            assert!(is_set.success());
        }
        let file = file.to_string_lossy();
        let launcher = contained(&["--ro-bind", &file, BUBBLEWRAP]);
        if !is_usable(&stage, &launcher)? {
            return Ok(());
        }
        let found = report(&stage, &launcher)?;
        if found["mechanism"] == "bubblewrap" {
            // There is another one.
            return Ok(());
        }
        check_has(&found["reasons"].to_string(), &[reason]);
        assert!(!runs(&stage, &launcher)?, "{reason}");
    }
    Ok(())
}

#[test]
fn in_a_container_everything_holds_if_proc_can_be_mounted() -> Result<()> {
    let whole = ["--unshare-user", "--unshare-ipc", "--unshare-uts"];
    // Like most containers, bubblewrap covers parts of `/proc`, and then the kernel allows no other one.
    let covered = ["--unshare-all", "--share-net", "--proc", "/proc"];
    for (options, is_whole) in [(&whole[..], true), (&covered[..], false)] {
        let stage = stage()?;
        let launcher = contained(options);
        if !is_usable(&stage, &launcher)? || report(&stage, &[])?["complete"] != true {
            return Ok(());
        }
        let found = report(&stage, &launcher)?;
        assert_eq!(found["complete"], is_whole, "{found}");
        assert_eq!(runs(&stage, &launcher)?, is_whole);
    }
    Ok(())
}

#[test]
fn a_proc_of_other_processes_does_not_stop_the_program() -> Result<()> {
    let stage = stage()?;
    // Inside, `/proc` still shows the processes by the numbers that they have outside.
    let launcher = contained(&["--unshare-user", "--unshare-pid"]);
    let launcher: Vec<&str> = launcher.iter().copied().chain(launcher.iter().copied()).collect();
    if !is_usable(&stage, &launcher)? {
        return Ok(());
    }
    let run = behind(&stage, &launcher, &["sandbox", "--json"]).deadline(Duration::from_secs(30));
    let found: Value = serde_json::from_str(&run.finish()?.success()?.stdout).context("not JSON")?;
    let reasons = found["reasons"].to_string();
    assert!(found["mechanism"] == "bubblewrap" || reasons.contains("bubblewrap"), "{found}");
    Ok(())
}

#[test]
fn in_its_own_sandbox_the_program_has_no_namespaces() -> Result<()> {
    let stage = stage()?;
    if report(&stage, &[])?["complete"] != true {
        return Ok(());
    }
    // The program may be in `/tmp`, and the data of the outer one is hidden from the inner one.
    let inner = stage.project.path("inner").to_string_lossy().into_owned();
    let own = env!("CARGO_BIN_EXE_codewright");
    Run::new("cp", &stage.project).args([own, &inner]).finish()?.success()?;
    let mut launcher = [own, "sandbox", "run", "--", "env", "HOME=/tmp/home"].map(str::to_owned).to_vec();
    let homes = ["CONFIG", "DATA", "STATE", "CACHE"];
    launcher.extend(homes.map(|name| format!("XDG_{name}_HOME=/tmp/home/{name}")));
    let launcher: Vec<&str> = launcher.iter().map(String::as_str).collect();
    let words = launcher.iter().copied().skip(1).chain([&*inner, "sandbox", "--json"]);
    let done = behind(&stage, &[], &words.collect::<Vec<_>>()).finish()?.success()?;
    let found: Value = serde_json::from_str(&done.stdout).context("not JSON")?;
    assert_eq!(found["complete"], false, "{found}");
    assert!(found["mechanism"] == "landlock" || found["mechanism"] == "none", "{found}");
    check_has(&found["reasons"].to_string(), &["bubblewrap does not work here"]);
    Ok(())
}

#[test]
fn an_ordinary_user_and_root_have_the_same_sandbox() -> Result<()> {
    let stage = stage()?;
    if report(&stage, &[])?["complete"] != true {
        return Ok(());
    }
    let line = "touch inside && ! touch /etc/outside && ! mount -t tmpfs none /mnt && id -u";
    let args = ["sandbox", "run", "--", "sh", "-c", line];
    let done = behind(&stage, &[], &args).finish()?.success()?;
    assert!(stage.project.path("inside").exists() && !PathBuf::from("/etc/outside").exists());
    if done.stdout.trim() != "0" {
        return Ok(());
    }
    let run = crate::secret::unprivileged(&stage, &args)?.without_env("CODEWRIGHT_SANDBOX_OUTER");
    let done = run.finish()?.success()?;
    assert_eq!(done.stdout.trim(), "65534");
    Ok(())
}

#[test]
fn file_tools_work_without_openat2_and_follow_no_link_outside() -> Result<()> {
    let outside = tempfile::TempDir::new_in("/var/tmp")?;
    let script = Script::new()
        .turn(Turn::tools([
            ("write", json!({"filePath": "deep/new.txt", "content": "one\n"})),
            ("read", json!({"filePath": "README.md"})),
        ]))
        .turn(Turn::tools([
            ("edit", json!({"filePath": "deep/new.txt", "oldString": "one", "newString": "two"})),
            ("write", json!({"filePath": "link/file", "content": "outside\n"})),
        ]))
        .text("Done.");
    let stage = Stage::git(script)?;
    stage.project.write("limited.py", LIMITED)?;
    std::os::unix::fs::symlink(outside.path(), stage.project.path("link"))?;
    let launcher = without("openat2");
    if !is_usable(&stage, &launcher)? {
        return Ok(());
    }
    behind(&stage, &launcher, &["run", "go"]).finish()?.success()?;
    assert_eq!(stage.project.read("deep/new.txt")?, "two\n");
    assert!(stage.results(1)?.iter().any(|result| result.contains("# Project")));
    assert!(!outside.path().join("file").exists());
    Ok(())
}
