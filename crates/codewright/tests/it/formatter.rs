//! Formatters, as a user of the program sees them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use anyhow::Result;
use codewright_testkit::{Project, Script};
use serde_json::{Value, json};

use crate::support::{Stage, check_has, get, program, serve};

/// The time that a formatter has for a file.
const DEADLINE: Duration = Duration::from_secs(30);

/// An entry of `formatter` that runs a shell script on files `.sh`.
fn entry(script: &str) -> Value {
    json!({"command": ["/bin/sh", "-c", script, "sh", "$FILE"], "extensions": [".sh"]})
}

/// A stage whose user configured these formatters, and a directory of programs with a known formatter.
fn stage(script: Script, formatter: &Value) -> Result<(Stage, String)> {
    let stage = Stage::git(script)?;
    let mut config = Project::config(&stage.server.url());
    config["formatter"] = formatter.clone();
    config["sandbox"] = json!({"mode": "off"});
    stage.project.write_config(&config)?;
    let programs = stage.project.home().join("programs");
    fs::create_dir_all(&programs)?;
    let known = programs.join("shfmt");
    fs::write(&known, "#!/bin/sh\nfor last; do :; done\necho known >> \"$last\"\n")?;
    fs::set_permissions(&known, fs::Permissions::from_mode(0o755))?;
    let path = format!("{}:/usr/bin:/bin", programs.display());
    Ok((stage, path))
}

fn write(file: &str) -> Value {
    json!({"filePath": file, "content": "written\n"})
}

fn content(stage: &Stage, file: &str) -> Result<String> {
    Ok(fs::read_to_string(stage.project.path(file))?)
}

#[test]
fn known_formatters_run_before_own_ones_in_their_order() -> Result<()> {
    let script = Script::new().tool("write", write("a.sh")).text("Done.");
    let own = json!({
        "zz": entry("echo first >> \"$1\"; echo \"$1\" > \"$HOME/named\""),
        "aa": entry("echo second >> \"$1\""),
        "off": {"disabled": true, "command": ["/bin/sh", "-c", "echo off >> \"$0\"", "$FILE"], "extensions": [".sh"]},
    });
    let (stage, path) = stage(script, &own)?;
    program(&stage.project, ["run", "go"]).env("PATH", &path).finish()?.success()?;
    assert_eq!(content(&stage, "a.sh")?, "written\nknown\nfirst\nsecond\n");
    let named = fs::read_to_string(stage.project.home().join("named"))?;
    assert_eq!(named.trim(), stage.project.path("a.sh").to_string_lossy());
    // The list shows what runs, the own ones last.
    let (server, url) = serve(program(&stage.project, ["serve"]).env("PATH", &path))?;
    let list = get(&url, "/formatter")?;
    let list = list.as_array().into_iter().flatten().filter(|one| one["enabled"] == true);
    let names: Vec<_> = list.filter_map(|one| one["name"].as_str()).collect();
    assert!(names.contains(&"shfmt") && names.ends_with(&["zz", "aa"]), "{names:?}");
    drop(server);
    stage.no_problems()
}

#[test]
fn false_and_a_disabled_entry_switch_formatters_off() -> Result<()> {
    for (config, expected) in [
        (json!(false), "written\n"),
        (json!({"shfmt": {"disabled": true}}), "written\n"),
        (json!(true), "written\nknown\n"),
        (json!({}), "written\nknown\n"),
    ] {
        let script = Script::new().tool("write", write("a.sh")).text("Done.");
        let (stage, path) = stage(script, &config)?;
        program(&stage.project, ["run", "go"]).env("PATH", path).finish()?.success()?;
        assert_eq!(content(&stage, "a.sh")?, expected, "{config}");
    }
    Ok(())
}

#[test]
fn the_diff_and_undo_show_the_formatted_file() -> Result<()> {
    let edit = json!({"filePath": "a.sh", "oldString": "two", "newString": "2"});
    let script = Script::new().tool("edit", edit).text("Done.");
    let (stage, path) = stage(script, &json!({"mine": entry("echo formatted >> \"$1\"")}))?;
    stage.project.write("a.sh", "one\ntwo\n")?;
    program(&stage.project, ["run", "go"]).env("PATH", path).finish()?.success()?;
    assert_eq!(content(&stage, "a.sh")?, "one\n2\nknown\nformatted\n");
    let messages = stage.stored()?;
    let parts = messages.iter().flat_map(|message| message["parts"].as_array().into_iter().flatten());
    let call = parts.clone().find(|part| part["type"] == "tool").cloned().unwrap_or_default();
    check_has(&call["state"]["metadata"]["diff"].to_string(), &["-two", "+2", "+known", "+formatted"]);
    stage.program(["session", "undo"]).finish()?.success()?;
    assert_eq!(content(&stage, "a.sh")?, "one\ntwo\n");
    stage.program(["session", "redo"]).finish()?.success()?;
    assert_eq!(content(&stage, "a.sh")?, "one\n2\nknown\nformatted\n");
    Ok(())
}

#[test]
fn a_formatter_that_is_late_is_ended_once_and_keeps_the_edit() -> Result<()> {
    let script = Script::new().tool("write", write("a.sh")).tool("write", write("b.sh")).text("Done.");
    let late = entry("echo half > \"$1\"; sleep 600");
    let (stage, path) = stage(script, &json!({"late": late, "next": entry("echo next >> \"$1\"")}))?;
    let begun = Instant::now();
    let run = program(&stage.project, ["run", "go"]).env("PATH", path).deadline(4 * DEADLINE);
    let done = run.finish()?.success()?;
    let took = begun.elapsed();
    assert!(took >= DEADLINE && took < 2 * DEADLINE, "{took:?}");
    for file in ["a.sh", "b.sh"] {
        assert_eq!(content(&stage, file)?, "written\nknown\nnext\n", "{file}");
    }
    assert_eq!(done.stderr.matches("formatter `late`").count(), 1, "{}", done.stderr);
    Ok(())
}
