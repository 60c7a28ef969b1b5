//! The supervisor by itself, for the tests of this room; the program has it built in.

use std::process::ExitCode;

fn main() -> ExitCode {
    codewright_workspace::supervise(std::env::args_os().skip(2))
}
