//! The supervisor as a separate program, for the tests of this crate. The product has it built in.

use std::process::ExitCode;

fn main() -> ExitCode {
    codewright_workspace::supervise(std::env::args_os().skip(2))
}
