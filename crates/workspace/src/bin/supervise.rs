//! The supervisor as a separate program, for the tests of this crate. The product has it built in.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    match args.next() {
        Some(first) if first == codewright_workspace::CONFINE => codewright_workspace::confine(args),
        _ => codewright_workspace::supervise(args),
    }
}
