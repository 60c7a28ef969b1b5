//! Builds the program as packages have it: functions that usual runs use come first.
//!
//! The kernel maps the code in pieces of 64 KiB around each first use. Functions that are next to each other need few
//! pieces, so the program starts faster and uses less memory. valgrind reports the executed addresses, and the map of
//! the linker their functions. Names of functions depend on every dependency, so the order is made for each build.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use codewright_testkit::{BlockingServer, Project, Run, Script, Terminal, TerminalOptions};
use serde_json::json;

/// The variable that makes the build script of the program write the linker's map.
const MAP: &str = "CODEWRIGHT_LINK_MAP";
/// The variable that names the file with the order for the build script.
const ORDER: &str = "CODEWRIGHT_LINK_ORDER";
/// The profile of packages.
const PROFILE: &str = "dist";
/// The time limit of a run, which is slow under valgrind.
const DEADLINE: Duration = Duration::from_secs(300);
/// The size of a page.
const PAGE: u64 = 4096;
/// The executed addresses that decide where the program was loaded.
const SAMPLES: usize = 2000;
/// The largest distance in pages between the start of the code and its first executed function.
const SEARCHED_PAGES: u64 = 16 * 1024;
/// The column of the linker's map where sections of the program are named. Everything else is further right.
const SECTIONS_END: usize = 52;

/// A function in the program.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Function {
    start: u64,
    end: u64,
    name: String,
}

/// Builds the program twice: the second time with the functions in the order of the first one's use.
pub(crate) fn main(rest: &[String]) -> Result<ExitCode> {
    ensure!(rest.is_empty(), "`package` has no flags");
    let found = Command::new("valgrind").arg("--version").output().context("`package` needs valgrind")?;
    ensure!(found.status.success(), "`package` needs valgrind");
    let folder = tempfile::tempdir()?;
    let (map, order) = (folder.path().join("map"), folder.path().join("order"));
    let program = crate::bench::build_with("codewright", PROFILE, &[(MAP, map.as_os_str())])?;
    let map = fs::read_to_string(&map).context("reading the map of the linker")?;
    let functions = functions(&map);
    let used = used(&program, &functions, folder.path())?;
    writeln!(std::io::stdout(), "{} of {} functions are used and come first", used.len(), functions.len())?;
    fs::write(&order, used.join("\n") + "\n")?;
    let program = crate::bench::build_with("codewright", PROFILE, &[(ORDER, order.as_os_str())])?;
    writeln!(std::io::stdout(), "{}", program.display())?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the functions that usual runs use: those that every run needs, then those of the terminal client.
fn used(program: &Path, functions: &[Function], folder: &Path) -> Result<Vec<String>> {
    let wrapper = folder.join("codewright");
    let (mut used, mut known) = (Vec::new(), BTreeSet::new());
    for (at, play) in [version, turns, server, terminal].into_iter().enumerate() {
        let results = folder.join(at.to_string());
        fs::create_dir(&results)?;
        write_wrapper(&wrapper, program, &results)?;
        play(&wrapper)?;
        let executed = executed(&results)?;
        let base = base(&executed, functions)?;
        for address in executed {
            let Some(function) = function_at(functions, address.wrapping_sub(base)) else { continue };
            if known.insert(function.start) {
                used.push(function.name.clone());
            }
        }
    }
    Ok(used)
}

/// Writes a program that runs the real one under valgrind.
fn write_wrapper(path: &Path, program: &Path, results: &Path) -> Result<()> {
    let text = format!(
        "#!/bin/sh\nexec valgrind -q --tool=callgrind --dump-instr=yes --compress-strings=no --compress-pos=no \
         --callgrind-out-file='{}/%p.out' '{}' \"$@\"\n",
        results.display(),
        program.display()
    );
    fs::write(path, text)?;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o755))?)
}

fn version(program: &Path) -> Result<()> {
    Run::new(program, &Project::plain()?).args(["--version"]).deadline(DEADLINE).finish()?.success()?;
    Ok(())
}

/// A turn with an answer, and one with a read and an edit.
fn turns(program: &Path) -> Result<()> {
    let project = Project::git()?;
    let file = project.write("a.txt", "hello\n")?;
    let edit = json!({"filePath": file, "oldString": "hello", "newString": "HELLO"});
    let script = Script::new().text("Hello.");
    let script = script.tool("read", json!({"filePath": file})).tool("edit", edit).text("Done.");
    let model = BlockingServer::start(script)?;
    project.configure(&model.url())?;
    for prompt in ["hi", "edit"] {
        Run::new(program, &project).args(["run", prompt]).deadline(DEADLINE).finish()?.success()?;
    }
    Ok(())
}

/// A server that starts and ends.
fn server(program: &Path) -> Result<()> {
    let project = Project::git()?;
    let mut server = Run::new(program, &project).args(["serve", "--port", "0"]).deadline(DEADLINE).start()?;
    server.line_that(|line| line.contains(" on http"))?;
    server.terminate()?;
    server.finish()?;
    Ok(())
}

/// The terminal client, with a turn.
fn terminal(program: &Path) -> Result<()> {
    let project = Project::git()?;
    let model = BlockingServer::start(Script::new().text("Hello there."))?;
    project.configure(&model.url())?;
    let mut terminal = Terminal::start(&TerminalOptions {
        program: program.as_os_str(),
        args: &[],
        project: &project,
        variables: &[],
        size: (100, 30),
    })?;
    terminal.shows("plain-model")?;
    terminal.send("hi\r")?;
    terminal.shows("Hello there.")?;
    terminal.send("\u{3}\u{3}")?;
    terminal.ended()?;
    Ok(())
}

/// Returns the functions in the map of the linker, by address.
fn functions(map: &str) -> Vec<Function> {
    let mut functions = Vec::new();
    let mut section = "";
    for line in map.lines().skip(1) {
        let mut words = line.split_whitespace();
        let (Some(start), _, Some(size), _) = (words.next(), words.next(), words.next(), words.next()) else {
            continue;
        };
        let (Ok(start), Ok(size)) = (u64::from_str_radix(start, 16), u64::from_str_radix(size, 16)) else {
            continue;
        };
        let Some(name) = words.next() else { continue };
        // A section of the program, a section of an object (`FILE:(SECTION)`), or a symbol.
        if line.rfind(name).is_some_and(|at| at < SECTIONS_END) {
            section = name;
        } else if section == ".text" && size > 0 && !line.contains(":(") && words.next().is_none() {
            functions.push(Function { start, end: start + size, name: name.to_owned() });
        }
    }
    functions.sort_by_key(|function| function.start);
    functions.dedup_by_key(|function| function.start);
    functions
}

/// Returns the executed addresses of all processes in a folder of results.
fn executed(results: &Path) -> Result<BTreeSet<u64>> {
    let mut executed = BTreeSet::new();
    for entry in fs::read_dir(results)? {
        let text = fs::read_to_string(entry?.path())?;
        let addresses = text.lines().filter_map(|line| line.strip_prefix("0x")?.split(' ').next());
        executed.extend(addresses.filter_map(|address| u64::from_str_radix(address, 16).ok()));
    }
    ensure!(!executed.is_empty(), "valgrind reported no executed addresses");
    Ok(executed)
}

/// Returns the address where the program was loaded: the one at which most functions begin at an executed address.
fn base(executed: &BTreeSet<u64>, functions: &[Function]) -> Result<u64> {
    let first = functions.first().context("there are functions")?.start;
    let lowest = *executed.first().context("there are addresses")?;
    let highest = (lowest / PAGE * PAGE).wrapping_sub(first / PAGE * PAGE);
    let candidates = (0..SEARCHED_PAGES).map(|pages| highest.wrapping_sub(pages * PAGE));
    let step = (executed.len() / SAMPLES).max(1);
    let samples: Vec<u64> = executed.iter().copied().step_by(step).collect();
    let starts: HashSet<u64> = functions.iter().map(|function| function.start).collect();
    let hits =
        |base: &u64| samples.iter().filter(|address| starts.contains(&address.wrapping_sub(*base))).count();
    candidates.max_by_key(hits).context("there are candidates")
}

fn function_at(functions: &[Function], address: u64) -> Option<&Function> {
    let after = functions.partition_point(|function| function.start <= address);
    functions.get(after.checked_sub(1)?).filter(|function| address < function.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPPED: &str = "\
             VMA              LMA     Size Align Out     In      Symbol
             2e0              2e0       1c     1 .interp
            1000             1000       60     4 .text
            1000             1000       20     4         a.o:(.text._ZN1aE)
            1000             1000       20     1                 _ZN1aE
            1040             1040       20     4         a.o:(.text._ZN1bE)
            1040             1040       20     1                 _ZN1bE
            2000             2000        8     4 .data
            2000             2000        8     1                 value
";

    #[test]
    fn functions_are_read_from_the_code_only() {
        let functions = functions(MAPPED);
        let names: Vec<_> =
            functions.iter().map(|function| (function.start, function.name.as_str())).collect();
        assert_eq!(names, [(0x1000, "_ZN1aE"), (0x1040, "_ZN1bE")]);
        assert_eq!(function_at(&functions, 0x1041).map(|found| found.name.as_str()), Some("_ZN1bE"));
        assert_eq!(function_at(&functions, 0x1030), None);
        assert_eq!(function_at(&functions, 0xfff), None);
    }

    #[test]
    fn the_place_of_the_program_is_found() {
        let executed = BTreeSet::from([0x40_1000, 0x40_1004, 0x40_1040, 0x4800_0000]);
        assert_eq!(base(&executed, &functions(MAPPED)).unwrap(), 0x40_0000);
    }
}
