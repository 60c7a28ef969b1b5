//! Packs the relocations of the program where the C library can read them.
//!
//! They are 2.6 MiB without packing, and the loader reads them at every start. The C library reads packed ones since
//! version 2.36. The version of this machine decides, because programs are built on the oldest system that they support.

#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a build script reads variables of cargo and prints its results for it"
)]

use std::env::var;
use std::process::Command;

/// The first version of glibc that reads packed relocations.
const FIRST: (u32, u32) = (2, 36);

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is_gnu = var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux")
        && var("CARGO_CFG_TARGET_ENV").as_deref() == Ok("gnu")
        && var("HOST") == var("TARGET");
    if is_gnu && glibc().is_some_and(|version| version >= FIRST) {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// The version of this machine's glibc.
fn glibc() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    let minor = minor.split('.').next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
