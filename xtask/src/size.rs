//! Says what the program consists of: sections, code by crate, and embedded files.
//!
//! Needs a program with symbols, and readelf. A generic function counts for the crate that defines it, because the old form of
//! symbols does not name the types that it was compiled for. Functions of `core`, `alloc` and `std` count for the first other
//! crate in their name: `drop_in_place::<engine::Run>` is code of the engine.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail, ensure};

/// The rows of the table of crates. The others are one row.
const ROWS: usize = 40;
/// The crates of the compiler.
const STANDARD: [&str; 3] = ["core", "alloc", "std"];
/// The directories of files that are in the program, with the ends of the names.
const EMBEDDED: [(&str, &[&str]); 5] = [
    ("crates/llm/data", &["bin", "tsv"]),
    ("web/dist", &["gz"]),
    ("web/dist/assets", &["gz", "woff2"]),
    ("plugin-host/dist", &["deflate"]),
    ("crates/config/src/skills", &["md"]),
];
/// The end of a file that is searched in the program. The start is the same for all compressed files.
const SAMPLE_BYTES: usize = 16;

/// A symbol of the program.
#[derive(Debug, PartialEq, Eq)]
struct Symbol<'a> {
    kind: &'a str,
    size: u64,
    name: &'a str,
    /// The source file, for functions of C that only their file sees.
    file: &'a str,
}

/// Prints the tables.
pub(crate) fn main(rest: &[String]) -> Result<ExitCode> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the workspace")?;
    let mut program: Option<PathBuf> = None;
    let mut rest = rest.iter();
    while let Some(flag) = rest.next() {
        match flag.as_str() {
            "--bin" => program = Some(crate::value(flag, &mut rest)?.into()),
            other => bail!("`size` has no flag `{other}`; see `cargo xtask --help`"),
        }
    }
    let program = program.context("`size` needs `--bin PATH`")?;
    let bytes = fs::read(&program).with_context(|| format!("cannot read {}", program.display()))?;
    let table = readelf(&["--symbols", "--wide"], &program)?;
    let symbols = symbols(&table);
    ensure!(
        symbols.iter().any(|symbol| symbol.kind == "FUNC" && symbol.name.starts_with('_')),
        "{} has no symbols; build with CARGO_PROFILE_DIST_STRIP=none",
        program.display()
    );
    let sections = sections(&readelf(&["--section-headers", "--wide"], &program)?);
    let mut out = std::io::stdout();
    print(&mut out, "section", &sections, usize::MAX)?;
    let (mut code, mut data) = (BTreeMap::new(), BTreeMap::new());
    for symbol in &symbols {
        let table = if symbol.kind == "FUNC" { &mut code } else { &mut data };
        *table.entry(owner(symbol)).or_insert(0) += symbol.size;
    }
    print(&mut out, "code of crate", &code, ROWS)?;
    print(&mut out, "named data of crate", &data, ROWS / 4)?;
    print(&mut out, "embedded files", &embedded(root, &bytes)?, usize::MAX)?;
    Ok(ExitCode::SUCCESS)
}

fn readelf(arguments: &[&str], program: &Path) -> Result<String> {
    let output =
        Command::new("readelf").args(arguments).arg(program).output().context("`size` needs readelf")?;
    ensure!(output.status.success(), "readelf cannot read {}", program.display());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Prints rows, the largest first. The rows after `limit` are one row.
fn print(out: &mut impl Write, title: &str, sizes: &BTreeMap<String, u64>, limit: usize) -> Result<()> {
    let mut rows: Vec<_> = sizes.iter().filter(|(_, size)| **size > 0).collect();
    rows.sort_by_key(|(_, size)| std::cmp::Reverse(**size));
    let total: u64 = sizes.values().sum();
    let kib = |size: u64| size.div_ceil(1024);
    writeln!(out, "| {title} | KiB |\n|---|---|")?;
    for (name, size) in rows.iter().take(limit) {
        writeln!(out, "| {name} | {} |", kib(**size))?;
    }
    if let Some(others) = rows.get(limit..).filter(|others| !others.is_empty()) {
        let size = others.iter().map(|(_, size)| **size).sum();
        writeln!(out, "| {} others | {} |", others.len(), kib(size))?;
    }
    writeln!(out, "| all | {} |\n", kib(total))?;
    Ok(())
}

/// The functions and objects in the output of `readelf --symbols --wide`.
fn symbols(table: &str) -> Vec<Symbol<'_>> {
    let mut file = "";
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    for line in table.lines() {
        let mut fields = line.split_ascii_whitespace();
        let (Some(_), Some(address), Some(size), Some(kind)) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let (scope, section) = (fields.next(), fields.nth(1));
        let name = fields.next().unwrap_or_default();
        match kind {
            "FILE" => file = name,
            "FUNC" | "OBJECT" if section != Some("UND") => {
                let size = match size.strip_prefix("0x") {
                    Some(digits) => u64::from_str_radix(digits, 16),
                    None => size.parse(),
                };
                // Several names of one function, also of functions that the linker has joined, are one function.
                if seen.insert(address) {
                    let file = if scope == Some("LOCAL") { file } else { "" };
                    found.push(Symbol { kind, size: size.unwrap_or(0), name, file });
                }
            }
            _ => {}
        }
    }
    found
}

/// The sections that are in the file, from the output of `readelf --section-headers --wide`.
fn sections(table: &str) -> BTreeMap<String, u64> {
    let row = |line: &str| {
        let rest = line.trim_start().strip_prefix('[')?.split_once(']')?.1;
        let fields: Vec<_> = rest.split_ascii_whitespace().collect();
        let (name, kind, size) = (*fields.first()?, *fields.get(1)?, *fields.get(4)?);
        let is_stripped = [".symtab", ".strtab", ".shstrtab"].contains(&name) || name.starts_with(".debug");
        let is_stored = kind != "NOBITS" && kind != "NULL" && !is_stripped;
        is_stored.then(|| Some((name.to_owned(), u64::from_str_radix(size, 16).ok()?)))?
    };
    table.lines().filter_map(row).collect()
}

/// The crate or the C library that a symbol belongs to.
fn owner(symbol: &Symbol<'_>) -> String {
    let name = symbol.name;
    if let Some(rest) = name.strip_prefix("_ZN") {
        return old_crate(rest).unwrap_or("std").to_owned();
    }
    if let Some(rest) = name.strip_prefix("_R") {
        return new_crate(rest).unwrap_or("std").to_owned();
    }
    let of_c = [
        ("sqlite3", "sqlite (C)"),
        ("ring_core", "ring (C)"),
        ("ts_", "tree-sitter (C)"),
        ("tree_sitter", "tree-sitter (C)"),
    ];
    let by_name =
        of_c.iter().find(|(start, _)| name.starts_with(start)).map(|(_, owner)| (*owner).to_owned());
    by_name.unwrap_or_else(|| match symbol.file {
        "sqlite3.c" => "sqlite (C)".to_owned(),
        "lib.c" | "parser.c" | "scanner.c" => "tree-sitter (C)".to_owned(),
        _ if name.contains("anon.") => "constants".to_owned(),
        _ => "other C and assembler".to_owned(),
    })
}

/// The crate in a name of the old form, such as `4core3ptr13drop_in_place$LT$engine..Run$GT$17h…E`.
fn old_crate(name: &str) -> Option<&str> {
    let mut parts = Vec::new();
    let mut rest = name;
    while let Some(end) = rest.find(|char: char| !char.is_ascii_digit()).filter(|end| *end > 0) {
        let length: usize = rest[..end].parse().ok()?;
        parts.push(rest.get(end..end + length)?);
        rest = &rest[end + length..];
    }
    let first = parts.first().copied().filter(|part| !part.contains('$') && !STANDARD.contains(part));
    // In types `..` separates the names of a path.
    let paths = parts.iter().flat_map(|part| part.split('$')).filter_map(|piece| piece.split_once(".."));
    let mut crates = paths.map(|(first, _)| first).filter(|name| {
        let is_lower = |char: u8| char.is_ascii_lowercase() || char.is_ascii_digit() || char == b'_';
        name.len() > 1 && name.bytes().all(is_lower) && !STANDARD.contains(name)
    });
    first.or_else(|| crates.next())
}

/// The crate in a name of the new form: the first `C`, with an optional number for the compiler, the length and the name.
fn new_crate(name: &str) -> Option<&str> {
    let roots = name.match_indices('C').filter_map(|(at, _)| {
        let rest = &name[at + 1..];
        let rest = match rest.strip_prefix('s') {
            Some(hash) => hash.split_once('_')?.1,
            None => rest,
        };
        let digits = rest.find(|char: char| !char.is_ascii_digit()).filter(|end| *end > 0)?;
        let length: usize = rest[..digits].parse().ok()?;
        rest.get(digits..digits + length)
    });
    let mut roots = roots;
    roots.find(|name| !STANDARD.contains(name))
}

/// The embedded files that are in the program, by directory.
fn embedded(root: &Path, program: &[u8]) -> Result<BTreeMap<String, u64>> {
    let mut wanted: BTreeMap<[u8; SAMPLE_BYTES], (&str, u64)> = BTreeMap::new();
    for (directory, ends) in EMBEDDED {
        let files = fs::read_dir(root.join(directory)).with_context(|| format!("cannot read {directory}"))?;
        for file in files {
            let path = file?.path();
            let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
            let bytes = fs::read(&path).unwrap_or_default();
            if let (true, Some(sample)) = (ends.contains(&end), bytes.last_chunk()) {
                wanted.insert(*sample, (directory, bytes.len() as u64));
            }
        }
    }
    let firsts: BTreeSet<u8> = wanted.keys().map(|sample| sample[0]).collect();
    let mut sizes = BTreeMap::new();
    for window in program.windows(SAMPLE_BYTES).filter(|window| firsts.contains(&window[0])) {
        let sample = <[u8; SAMPLE_BYTES]>::try_from(window)?;
        if let Some((directory, size)) = wanted.remove(&sample) {
            *sizes.entry(directory.to_owned()).or_insert(0) += size;
        }
    }
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_belongs_to_the_first_crate_outside_of_the_standard_library() {
        for (name, expected) in [
            ("_ZN6engine7session5shell17h0123456789abcdefE", "engine"),
            ("_ZN4core3ptr41drop_in_place$LT$engine..run..run..Run$GT$17h0123456789abcdefE", "engine"),
            ("_ZN46_$LT$lsp..Status$u20$as$u20$core..clone..Clone$GT$5clone17h0123456789abcdefE", "lsp"),
            ("_ZN4core3fmt5write17h0123456789abcdefE", "std"),
            ("_RNvNtCs5QTYxp_4core3fmt5write", "std"),
            ("_RNvNtCs5QTYxp_6engine3run4next", "engine"),
            ("sqlite3_step", "sqlite (C)"),
        ] {
            let symbol = Symbol { kind: "FUNC", size: 1, name, file: "" };
            assert_eq!(owner(&symbol), expected, "{name}");
        }
    }

    #[test]
    fn functions_of_one_address_count_once_and_local_ones_have_a_file() {
        let table = "     1: 0000000000000000     0 FILE    LOCAL  DEFAULT  ABS sqlite3.c\n\
                     \x20    2: 0000000000001000    32 FUNC    LOCAL  DEFAULT   13 step\n\
                     \x20    3: 0000000000001000    32 FUNC    GLOBAL DEFAULT   13 same\n\
                     \x20    4: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND malloc\n";
        assert_eq!(symbols(table), [Symbol { kind: "FUNC", size: 32, name: "step", file: "sqlite3.c" }]);
    }

    #[test]
    fn symbols_and_empty_sections_do_not_count() {
        let table = "  [13] .text             PROGBITS        0000000000001000 001000 000100 00  AX  0   0 16\n\
                     \x20 [14] .bss              NOBITS          0000000000002000 002000 000100 00  WA  0   0 16\n\
                     \x20 [ 2] .symtab           SYMTAB          0000000000000000 003000 000100 00      5   6  8\n";
        assert_eq!(sections(table), BTreeMap::from([(".text".to_owned(), 256)]));
    }
}
