//! Sessions in the home directory: files that other programs obey need permission by name, and no command and no server of
//! the user's creates them. The sandbox's tests are skipped, with a note, where it is not complete.

use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};
use codewright_testkit::{Project, Script, Turn};
use serde_json::{Value, json};

use crate::asked::requests_in;
use crate::sandbox::is_enforced;
use crate::support::{Stage, check_has};

/// The paths of each row of the table, with a name for each pattern.
fn rows() -> Vec<Vec<String>> {
    let text = include_str!("../../../permission/src/control/home.rs");
    let table = text.split_once("const HOME: &[HomeRow] = &[").map_or("", |(_, table)| table);
    let table = table.split_once("\n];").map_or("", |(table, _)| table);
    let strings: Vec<&str> = table.split('"').skip(1).step_by(2).collect();
    let paths = strings.chunks(2).filter_map(|row| row.get(1));
    let joined =
        paths.map(|paths| paths.replace("\\\n", "").split_whitespace().collect::<Vec<_>>().join(" "));
    joined.map(|row| row.replace('*', "x").split(", ").map(str::to_owned).collect()).collect()
}

/// The first path of each row, and the names that this is about.
fn samples() -> Vec<String> {
    let named = [
        ".local/share/dbus-1/services/x.service",
        ".config/systemd/user/x.service",
        ".local/share/bash-completion/completions/git",
        ".local/share/zsh/site-functions/_git",
        ".config/fish/conf.d/x.fish",
        ".config/nvim/after/plugin/x.lua",
        ".local/share/nvim/site/plugin/x.vim",
        ".local/lib/python3.12/site-packages/usercustomize.py",
        ".ipython/profile_default/startup/00.py",
        ".kube/config",
        ".aws/config",
        ".docker/config.json",
        ".config/gh/config.yml",
        ".config/glab-cli/config.yml",
        ".netrc",
        ".pgpass",
    ];
    let first = rows().into_iter().filter_map(|row| row.into_iter().next());
    first.chain(named.map(str::to_owned)).collect()
}

fn call(tool: &str, input: Value) -> Turn {
    Turn::steps().tool(tool, input).into()
}

/// Returns the kinds of permission that calls in the home directory need.
fn kinds(calls: Vec<Turn>, model: &str, prepare: impl Fn(&Path)) -> Result<Vec<Option<String>>> {
    let count = calls.len();
    // A rejection ends the turn, so the next session may find the end of this one.
    let script = Script::new().default_turn(Turn::text("done"));
    let script = calls.into_iter().fold(script, |script, call| script.turn(call));
    let stage = Stage::plain(script)?;
    let mut config = Project::config(&stage.server.url());
    config["permission"] = json!({"edit": "allow", "bash": "allow", "read": "allow"});
    config["provider"]["mock"]["models"][model] =
        json!({"name": model, "limit": {"context": 200_000, "output": 32_000}});
    config["model"] = format!("mock/{model}").into();
    stage.project.write_config(&config)?;
    prepare(stage.project.home());
    let found = requests_in(&stage, stage.project.home(), count, "reject")?;
    let kind = |asked: Option<Value>| Some(asked?["permission"].as_str()?.to_owned());
    Ok(found.into_iter().map(kind).collect())
}

#[track_caller]
fn check_all_ask(paths: &[String], found: &[Option<String>]) {
    let silent: Vec<_> = paths.iter().zip(found).filter(|(_, kind)| kind.is_none()).collect();
    assert!(silent.is_empty() && paths.len() == found.len(), "no permission was needed: {silent:?}");
}

#[test]
fn a_write_in_the_home_asks_for_each_row() -> Result<()> {
    let paths = samples();
    assert!(paths.len() > 100, "{}", paths.len());
    let write = |path: &String| call("write", json!({"filePath": path, "content": "x\n"}));
    check_all_ask(&paths, &kinds(paths.iter().map(write).collect(), "plain-model", |_| {})?);
    Ok(())
}

#[test]
fn edits_patches_and_redirections_in_the_home_ask_for_rows_of_each_kind() -> Result<()> {
    let paths: Vec<String> = samples().into_iter().step_by(8).collect();
    let prepare = |home: &Path| {
        for path in &paths {
            let path = home.join(path);
            drop(path.parent().map(fs::create_dir_all));
            drop(fs::write(path, "old\n"));
        }
    };
    let edit =
        |path: &String| call("edit", json!({"filePath": path, "oldString": "old", "newString": "new"}));
    check_all_ask(&paths, &kinds(paths.iter().map(edit).collect(), "plain-model", prepare)?);
    let redirect =
        |path: &String| call("bash", json!({"command": format!("printf x > '{path}'"), "description": "x"}));
    check_all_ask(&paths, &kinds(paths.iter().map(redirect).collect(), "plain-model", prepare)?);
    let patch = |path: &String| {
        let text = format!("*** Begin Patch\n*** Update File: {path}\n@@\n-old\n+new\n*** End Patch");
        call("apply_patch", json!({ "patchText": text }))
    };
    check_all_ask(&paths, &kinds(paths.iter().map(patch).collect(), "gpt-5", prepare)?);
    Ok(())
}

#[test]
fn ordinary_files_in_the_home_need_no_permission() -> Result<()> {
    let paths = [
        "notes.md",
        "Documents/letter.txt",
        "work/app/bin/run.sh",
        "work/app/.config/sway/config",
        ".config/app/settings.json",
        ".local/share/app/data.json",
        ".cache/app/x",
        "src/R/plot.R",
        "package.json",
        "Makefile",
    ];
    let write = |path: &&str| call("write", json!({"filePath": path, "content": "x\n"}));
    let found = kinds(paths.iter().map(write).collect(), "plain-model", |_| {})?;
    assert_eq!(found, paths.map(|_| None));
    Ok(())
}

#[test]
fn what_a_link_in_a_directory_of_programs_leads_to_needs_permission() -> Result<()> {
    let write = |path: &str| call("write", json!({"filePath": path, "content": "x\n"}));
    let prepare = |home: &Path| {
        for directory in ["bin", "tools"] {
            drop(fs::create_dir_all(home.join(directory)));
        }
        drop(std::os::unix::fs::symlink("../tools/second.sh", home.join("bin/tool")));
    };
    let calls = vec![write("tools/second.sh"), write("tools/other.sh")];
    assert_eq!(kinds(calls, "plain-model", prepare)?, [Some("edit".to_owned()), None]);
    Ok(())
}

/// Tries to create each path below the home that it reads from a file, and writes the ones that worked to another.
const CREATOR: &str = "import os, sys
done = []
for name in open(sys.argv[1]).read().splitlines():
    path = os.path.join(sys.argv[3], name)
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        open(path, 'w').close()
        done.append(name)
    except OSError:
        pass
open(sys.argv[2], 'w').write('\\n'.join(done))
";
/// Files that nobody obeys.
const ORDINARY: [&str; 3] = [".config/app/x", ".local/share/app/x", ".cargo/registry/x"];

#[test]
fn a_command_creates_no_row_in_directories_of_the_home_that_it_can_write() -> Result<()> {
    let stage = Stage::git(Script::new())?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    let home = stage.project.home();
    let directories = [".config", ".local", ".cargo", "go"];
    for directory in directories {
        fs::create_dir_all(home.join(directory))?;
    }
    let mut config = Project::config(&stage.server.url());
    config["sandbox"] = json!({"write": directories.map(|name| format!("~/{name}"))});
    stage.project.write_config(&config)?;
    let is_below = |path: &String| directories.iter().any(|name| path.starts_with(&format!("{name}/")));
    let rows: Vec<String> = rows().into_iter().flatten().filter(is_below).collect();
    assert!(rows.len() > 300, "{}", rows.len());
    let all = rows.iter().map(String::as_str).chain(ORDINARY).collect::<Vec<_>>().join("\n");
    stage.project.write("creator.py", CREATOR)?;
    stage.project.write("paths", all)?;
    let home_text = home.display().to_string();
    let args = ["sandbox", "run", "--", "python3", "creator.py", "paths", "done", &home_text];
    let done = stage.program(args).finish()?.success()?;
    assert_eq!(stage.project.read("done")?, ORDINARY.join("\n"), "{}", done.stderr);
    let present: Vec<_> = rows.iter().filter(|row| home.join(row).symlink_metadata().is_ok()).collect();
    assert!(present.is_empty(), "{present:?}");
    // A name that the user lists is free.
    config["sandbox"]["write"] = json!(["~/.local", "~/.local/bin"]);
    fs::create_dir_all(home.join(".local/bin"))?;
    stage.project.write_config(&config)?;
    stage.project.write("paths", ".local/bin/tool\n.local/lib/x")?;
    stage.program(args).finish()?.success()?;
    assert_eq!(stage.project.read("done")?, ".local/bin/tool");
    Ok(())
}

#[test]
fn a_server_of_the_user_creates_no_row() -> Result<()> {
    let stage = Stage::git(Script::new().text("Done."))?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    let home = stage.project.home();
    // Directories of which other rows name parts, and those of this program.
    let is_divided =
        |row: &String| [".claude", ".codex", ".config/opencode", ".opencode"].contains(&row.as_str());
    let common = crate::names::rows().into_iter().filter(|row| !is_divided(row));
    let rows: Vec<String> = rows().into_iter().flatten().chain(common).collect();
    let all = rows.iter().map(String::as_str).chain(ORDINARY).collect::<Vec<_>>().join("\n");
    fs::write(home.join("creator.py"), CREATOR)?;
    fs::write(home.join("paths"), all)?;
    let done = stage.project.write("done", "")?;
    let words = ["python3".into(), home.join("creator.py"), home.join("paths"), done, home.to_owned()];
    let words = words.map(|word| word.display().to_string());
    let mut config = Project::config(&stage.server.url());
    config["mcp"] = json!({"own": {"type": "local", "command": words}});
    stage.project.write_config(&config)?;
    stage.run(["hi"])?.success()?;
    let done = stage.project.read("done")?;
    check_has(&done, &ORDINARY);
    ensure!(done.lines().count() == ORDINARY.len(), "it created {done}");
    Ok(())
}
