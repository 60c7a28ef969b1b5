//! Tests the web app in browsers, measures it, and draws the pictures of its guide.
//!
//! The acts are scripts in `web/acts`. They start the program and the scripted model themselves, because some of them
//! restart a server or use two. This module finds the browsers and installs the libraries.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};

use crate::clients::{package, program, search};

/// The library that controls installed browsers, and the one that finds problems of accessibility. Newer versions of the
/// first send commands that the Firefox of distributions does not know.
const BROWSING: (&str, &str) = ("playwright-core", "1.58.2");
const CHECKING: (&str, &str) = ("axe-core", "4.14.1");
/// The names of browsers.
const CHROMIUM: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
const FIREFOX: [&str; 2] = ["firefox-esr", "firefox"];
/// The driver of WebKit, and the display that its browser needs.
const WEBKIT_DRIVER: [&str; 1] = ["WebKitWebDriver"];
const DISPLAY: [&str; 1] = ["Xvfb"];
/// The directory below which distributions install the browser of WebKitGTK: `ARCHITECTURE/webkit2gtk-VERSION/MiniBrowser`.
const LIBRARIES: &str = "/usr/lib";
/// The deadline of all acts.
const ACTS_SECONDS: &str = "900";

/// Runs the acts, or with `--bench` the measurements, or with `--pictures` the pictures.
pub(crate) fn main(rest: &[String]) -> Result<ExitCode> {
    let (mut bin, mut passed) = (Vec::new(), Vec::new());
    let mut rest = rest.iter();
    while let Some(flag) = rest.next() {
        match flag.as_str() {
            "--bin" => bin = vec![flag.clone(), crate::value(flag, &mut rest)?.to_owned()],
            "--bench" | "--pictures" | "--firefox" => passed.push(flag.clone()),
            "--only" => passed.extend([flag.clone(), crate::value(flag, &mut rest)?.to_owned()]),
            other => bail!("`web` has no flag `{other}`; see `cargo xtask --help`"),
        }
    }
    let mut node = node("run.mjs", &program(&bin)?)?;
    node.args(passed);
    let done = node.status().context("cannot start node")?;
    Ok(if done.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns a script of `web/acts` with its libraries, browsers and this program.
pub(crate) fn node(script: &str, program: &Path) -> Result<Command> {
    let playwright = package(BROWSING.0, BROWSING.1)?;
    let axe = package(CHECKING.0, CHECKING.1)?;
    let chromium = browser(&CHROMIUM).context("chromium is not installed")?;
    let acts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../web/acts").join(script);
    let mut node = Command::new("timeout");
    node.args([ACTS_SECONDS, "node"]).arg(acts);
    node.arg("--program").arg(program).arg("--xtask").arg(std::env::current_exe()?);
    node.arg("--playwright").arg(playwright).arg("--axe").arg(axe).arg("--chromium").arg(chromium);
    if let Some(path) = browser(&FIREFOX) {
        node.arg("--firefox-path").arg(path);
    }
    if let (Some(driver), Some(display), Some(page)) =
        (browser(&WEBKIT_DRIVER), browser(&DISPLAY), webkit_browser(Path::new(LIBRARIES)))
    {
        node.arg("--webkit").arg(driver).arg("--xvfb").arg(display).arg("--browser").arg(page);
    }
    node.env_clear().env("PATH", search());
    Ok(node)
}

/// Returns the browser that WebKit's driver starts.
fn webkit_browser(libraries: &Path) -> Option<PathBuf> {
    let directories = |path: &Path| {
        let entries = path.read_dir().ok().into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect::<Vec<_>>()
    };
    let all = directories(libraries).into_iter().flat_map(|architecture| directories(&architecture));
    let mut found: Vec<_> = all
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("webkit2gtk-")))
        .map(|path| path.join("MiniBrowser"))
        .filter(|path| path.is_file())
        .collect();
    found.sort();
    found.pop()
}

/// Returns the first installed browser.
fn browser(names: &[&str]) -> Option<PathBuf> {
    let search: OsString = search();
    let folders: Vec<PathBuf> = std::env::split_paths(&search).collect();
    names
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|path| path.is_file())
}
