//! `web` starts a server and opens its page.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use anyhow::{Context, Result};
use codewright_testkit::{Run, Running, Script};

use crate::support::{Stage, check_code, check_has, get, program, wait_until};

/// The program with a browser that records the addresses.
fn with_browser(stage: &Stage, args: &[&str], then: &str) -> Result<(Run, std::path::PathBuf)> {
    let (browser, opened) = (stage.project.path("browser"), stage.project.path("opened"));
    fs::write(
        &browser,
        format!("#!/bin/sh\necho \"$*\" > {0}.new\nmv {0}.new {0}\n{then}\n", opened.display()),
    )?;
    fs::set_permissions(&browser, fs::Permissions::from_mode(0o700))?;
    let run = program(&stage.project, args.iter().copied());
    Ok((run.env("BROWSER", browser.display().to_string()), opened))
}

fn shows(server: &Running, what: &str) -> Result<()> {
    wait_until(what, || server.so_far().contains(what))
}

#[test]
fn the_page_is_opened_and_the_browser_not_waited_for() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    // A browser that keeps running is not waited for.
    let pid = stage.project.path("pid");
    let stays = format!("echo $$ > {}; exec sleep 600", pid.display());
    let (run, opened) = with_browser(&stage, &["web"], &stays)?;
    let server = run.start()?;
    wait_until("the browser", || opened.exists())?;
    let url = fs::read_to_string(&opened)?.trim().to_owned();
    check_has(&url, &["http://127.0.0.1:"]);
    check_has(&server.so_far(), &["Web interface:", &url, "OPENCODE_SERVER_PASSWORD is not set"]);
    assert_eq!(get(url.trim_end_matches('/'), "/global/health")?["healthy"], true);
    server.interrupt()?;
    let done = server.finish()?;
    check_code(&done, 0);
    assert_eq!(done.stdout, "", "no line that clients wait for");
    let pid = fs::read_to_string(&pid)?;
    assert!(std::process::Command::new("kill").arg(pid.trim()).status()?.success(), "it stayed");
    Ok(())
}

#[test]
fn without_a_browser_the_addresses_are_printed() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    let run =
        program(&stage.project, ["web", "--hostname", "0.0.0.0"]).env("BROWSER", "/nonexistent/browser");
    let server = run.env("OPENCODE_SERVER_PASSWORD", "secret").start()?;
    shows(&server, "open the address yourself")?;
    check_has(&server.so_far(), &["Local access:", "http://localhost:"]);
    server.terminate()?;
    check_code(&server.finish()?, 0);
    Ok(())
}

#[test]
fn the_browser_does_not_get_the_servers_password() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    let (run, opened) = with_browser(&stage, &["web"], "")?;
    let seen = stage.project.path("seen");
    fs::write(
        stage.project.path("browser"),
        format!("#!/bin/sh\nenv > {}\n: > {}\n", seen.display(), opened.display()),
    )?;
    let server = run.env("OPENCODE_SERVER_PASSWORD", "hunter2").start()?;
    wait_until("the browser", || opened.exists())?;
    let seen = fs::read_to_string(&seen).context("what the browser saw")?;
    assert!(seen.contains("PATH=") && !seen.contains("hunter2"), "{seen}");
    server.terminate()?;
    check_code(&server.finish()?, 0);
    Ok(())
}
