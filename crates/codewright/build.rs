//! Options of the linker that make the program start faster. They do not change its behaviour.

#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a build script reads variables of cargo and prints its results for it"
)]

use std::env::var;
use std::process::Command;

/// The first version of glibc that reads packed relocations.
const PACKED_SINCE: (u32, u32) = (2, 36);
/// The file with the functions in the order of the program. `cargo xtask package` sets it.
const ORDER: &str = "CODEWRIGHT_LINK_ORDER";
/// The file for the map of the linker. `cargo xtask package` sets it.
const MAP: &str = "CODEWRIGHT_LINK_MAP";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed={ORDER}");
    println!("cargo:rerun-if-env-changed={MAP}");
    let is_gnu = var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux")
        && var("CARGO_CFG_TARGET_ENV").as_deref() == Ok("gnu")
        && var("HOST") == var("TARGET")
        // Another linker has other options, and builds for other systems, such as zig for an old glibc.
        && var("RUSTC_LINKER").is_err();
    // Relocations are 2.6 MiB without packing, and the loader reads them at every start. The version of this machine
    // decides, because programs are built on the oldest system that they support.
    if is_gnu && glibc().is_some_and(|version| version >= PACKED_SINCE) {
        link("-z,pack-relative-relocs");
    }
    if let Ok(map) = var(MAP) {
        link(&format!("-Map={map}"));
        link("--no-demangle");
    }
    if let Ok(order) = var(ORDER) {
        link(&format!("--symbol-ordering-file={order}"));
        link("--no-warn-symbol-ordering");
    }
}

fn link(option: &str) {
    println!("cargo:rustc-link-arg-bins=-Wl,{option}");
}

/// The version of this machine's glibc.
fn glibc() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    let minor = minor.split('.').next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
