//! Shell completions, man pages, and the commands that refuse.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result};
use codewright_testkit::Project;

use crate::support::{check_code, check_has, files, program};

#[test]
fn every_shell_gets_a_script_of_our_commands() -> Result<()> {
    let project = Project::plain()?;
    for (shell, start) in [
        ("bash", "complete -F _codewright"),
        ("zsh", "#compdef codewright"),
        ("fish", "complete -c codewright"),
        ("powershell", "Register-ArgumentCompleter -Native -CommandName 'codewright'"),
        ("elvish", "set edit:completion:arg-completer[codewright]"),
    ] {
        let done = program(&project, ["completion", shell]).finish()?.success()?;
        check_has(&done.stdout, &[start, "providers", "uninstall", "dry-run"]);
        assert_eq!(done.stderr, "", "{shell}");
    }
    check_code(&program(&project, ["completion", "ksh"]).finish()?, 1);
    Ok(())
}

#[test]
fn the_shell_of_the_user_is_the_default() -> Result<()> {
    let project = Project::plain()?;
    let script = |shell: &str| program(&project, ["completion"]).env("SHELL", shell).finish()?.success();
    check_has(&script("/bin/zsh")?.stdout, &["#compdef codewright"]);
    check_has(&script("/bin/sh")?.stdout, &["complete -F _codewright"]);
    Ok(())
}

#[test]
fn bash_completes_commands_and_options() -> Result<()> {
    let project = Project::plain()?;
    let script = program(&project, ["completion", "bash"]).finish()?.success()?.stdout;
    let path = project.write("complete.bash", script)?;
    let complete = |words: &[&str]| -> Result<String> {
        let last = words.len() - 1;
        let ask = format!(
            "source {}; COMP_WORDS=({}); COMP_CWORD={last}; _codewright codewright '{}' '{}'; echo \"${{COMPREPLY[@]}}\"",
            path.display(),
            words.join(" "),
            words[last],
            words[last - 1],
        );
        let output = Command::new("bash").args(["--norc", "-c", &ask]).output().context("bash")?;
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    };
    assert_eq!(complete(&["codewright", "unin"])?, "uninstall");
    assert_eq!(complete(&["codewright", "uninstall", "--dr"])?, "--dry-run");
    assert_eq!(complete(&["codewright", "debug", "snap"])?, "snapshot");
    Ok(())
}

#[test]
fn completion_and_man_pages_create_no_files_of_the_program() -> Result<()> {
    let project = Project::plain()?;
    fs::create_dir(project.path("man"))?;
    program(&project, ["completion"]).finish()?.success()?;
    program(&project, ["man", "man"]).finish()?.success()?;
    let created = files(project.home())?;
    assert!(created.is_empty(), "{created:?}");
    Ok(())
}

#[test]
fn every_command_has_a_man_page() -> Result<()> {
    let project = Project::plain()?;
    fs::create_dir(project.path("man"))?;
    program(&project, ["man", "man"]).finish()?.success()?;
    for (page, text) in [
        ("codewright.1", "coding agent"),
        ("codewright-run.1", "Run one prompt"),
        ("codewright-debug-rg-search.1", "regular expression"),
        ("codewright-uninstall.1", "dry\\-run"),
    ] {
        let page = project.read(format!("man/{page}")).with_context(|| page.to_owned())?;
        check_has(&page, &[".TH", text]);
    }
    check_code(&program(&project, ["man", "missing"]).finish()?, 1);
    Ok(())
}

#[test]
fn upgrade_prints_the_command_of_the_package_manager() -> Result<()> {
    let project = Project::plain()?;
    for (args, expected) in [
        (&["upgrade"][..], "build the new version from source: `cargo build --release --locked`\n"),
        (&["upgrade", "v9.9.9", "-m", "npm"], "npm install -g codewright@9.9.9\n"),
        (&["upgrade", "--method", "brew"], "brew upgrade codewright\n"),
        (&["upgrade", "9.9.9", "--method", "curl"], "run the install script with --version 9.9.9\n"),
    ] {
        let done = program(&project, args.iter().copied()).finish()?;
        check_code(&done, 1);
        assert_eq!(done.stdout, expected);
        check_has(&done.stderr, &["was not installed by the install script"]);
    }
    check_code(&program(&project, ["upgrade", "--method", "apt"]).finish()?, 1);
    let version = program(&project, ["--version"]).finish()?.success()?.stdout;
    // The version of the interface follows.
    let version = version.split(' ').next().context("no version")?;
    let done = program(&project, ["upgrade", version]).finish()?.success()?;
    assert_eq!(done.stdout, format!("version {version} is installed\n"));
    Ok(())
}

/// A repository whose hooks, and a `gh` whose start, leave a mark.
#[test]
fn a_pull_request_is_not_checked_out_and_starts_nothing() -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let project = Project::git()?;
    let mark = project.path("mark");
    let script = format!("#!/bin/sh\ntouch '{}'\n", mark.display());
    for path in ["bin/gh", "bin/git", ".git/hooks/post-checkout"] {
        let path = project.write(path, &script)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    }
    let search = format!("{}:/usr/bin:/bin", project.path("bin").display());
    let done = program(&project, ["pr", "5"]).env("PATH", search).finish()?;
    check_code(&done, 1);
    check_has(&done.stderr, &["does not check out pull requests", "`gh pr checkout 5 --branch pr/5`"]);
    assert!(!mark.exists());
    for number in ["0", "abc", "--repo=x"] {
        check_code(&program(&project, ["pr", number]).finish()?, 1);
    }
    Ok(())
}
