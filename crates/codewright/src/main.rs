//! The command line of Codewright, and the wiring of its rooms.

fn main() {}
