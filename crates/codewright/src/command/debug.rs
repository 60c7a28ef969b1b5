//! `debug`: how the program is set up.

use std::process::ExitCode;

use codewright_config::{Dirs, Env};

use crate::cli::{DebugArgs, DebugCommand};
use crate::output::{Output, ended};

pub(crate) fn main(args: &DebugArgs) -> anyhow::Result<ExitCode> {
    match &args.command {
        DebugCommand::Paths(_) => paths(),
    }
}

fn paths() -> anyhow::Result<ExitCode> {
    let dirs = Dirs::new(&Env::from_process())?;
    let mut output = Output::new();
    let lines = [
        ("home", &dirs.home),
        ("data", &dirs.data),
        ("cache", &dirs.cache),
        ("config", &dirs.own_config),
        ("state", &dirs.state),
        ("tmp", &dirs.tmp),
    ];
    let mut write = || {
        for (name, path) in lines {
            output
                .write(&format!("{name:<10} {}\n", crate::clean::clean_line(&path.display().to_string())))?;
        }
        // What is found there is read as well.
        output.write(&format!(
            "{:<10} {}\n",
            "opencode",
            crate::clean::clean_line(&dirs.config.display().to_string())
        ))
    };
    ended(write().and_then(|()| output.finish()))
}
