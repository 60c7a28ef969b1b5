//! The files with which git finds programs: settings, hooks, and what existing settings name.
//!
//! A command must not change them, because git runs the programs later, for the user, in every directory of the repository:
//! a `git status` in the root also looks into the repositories that the index names.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{DirEntry, read, read_dir, read_to_string};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use codewright_config::{Env, env};
use codewright_permission::control;
use codewright_workspace::{Guarded, folded_name, normalize, physical};

/// The longest file that names the directory of a repository.
const MAX_GITFILE_BYTES: u64 = 4096;
/// The names in the directory of a repository that decide which programs git runs.
const GIT_FILES: &[&str] = &["config", "config.worktree", "hooks", "commondir"];
/// The same in the directory of a worktree.
const WORKTREE_FILES: &[&str] = &["commondir", "config.worktree"];
/// The largest number of worktrees, modules and repositories inside whose settings are protected one by one. With more
/// modules or worktrees, nothing in their directory can be written.
const MAX_ADMINISTRATIONS: usize = 200;
/// The largest number of directories in which modules are searched.
const MAX_DIRECTORIES: usize = 2000;
/// The largest number of files with settings that are read.
const MAX_SETTINGS: usize = 32;
/// The largest file with settings that is read.
const MAX_SETTINGS_BYTES: u64 = 1024 * 1024;
/// The largest number of names that settings protect.
const MAX_TARGETS: usize = 500;
/// The largest index that is read.
const MAX_INDEX_BYTES: u64 = 256 * 1024 * 1024;
/// The largest number of indexes whose entries are kept.
const MAX_KNOWN: usize = 64;
/// The largest number of parts of an index.
const MAX_PARTS: usize = 16;
/// The beginning of the names of the other parts of an index.
const PART: &str = "sharedindex.";
/// The place of the mode in an entry of an index.
const MODE: usize = 24;
/// The place of the object's name, whose length depends on the kind of repository.
const OBJECT: usize = 40;
/// The lengths of such names.
const OBJECT_BYTES: [usize; 2] = [20, 32];
/// The mode of an entry that is a repository.
const REPOSITORY: u32 = 0o160_000;
/// The mode of an entry that is a link.
const LINK: u32 = 0o120_000;
/// The largest number of links in a worktree that are followed.
const MAX_LINKS: usize = 2000;
/// The flag of an entry with more flags, and the bits for the length of its path.
const EXTENDED: u16 = 0x4000;
/// See [`EXTENDED`].
const LENGTH: u16 = 0x0fff;

/// Settings whose values name a program or a file with settings: section and key in lower case. A key `*` means all.
const PROGRAMS: &[(&str, &str)] = &[
    ("alias", "*"),
    ("browser", "cmd"),
    ("core", "alternaterefscommand"),
    ("core", "askpass"),
    ("core", "attributesfile"),
    ("core", "editor"),
    ("core", "fsmonitor"),
    ("core", "gitproxy"),
    ("core", "hookspath"),
    ("core", "pager"),
    ("core", "sshcommand"),
    ("credential", "helper"),
    ("diff", "command"),
    ("diff", "external"),
    ("diff", "textconv"),
    ("difftool", "cmd"),
    ("difftool", "path"),
    ("filter", "clean"),
    ("filter", "process"),
    ("filter", "smudge"),
    ("gpg", "program"),
    ("hook", "command"),
    ("include", "path"),
    ("includeif", "path"),
    ("init", "templatedir"),
    ("interactive", "difffilter"),
    ("man", "cmd"),
    ("merge", "driver"),
    ("mergetool", "cmd"),
    ("mergetool", "path"),
    ("pager", "*"),
    ("remote", "receivepack"),
    ("remote", "uploadpack"),
    ("sendemail", "sendmailcmd"),
    ("sendemail", "tocmd"),
    ("sequence", "editor"),
    ("submodule", "update"),
    ("tar", "command"),
    ("trailer", "cmd"),
    ("trailer", "command"),
    ("uploadpack", "packobjectshook"),
];
/// The keys above whose value is one path. In the others, words can be paths.
const PATHS: &[&str] = &["attributesfile", "hookspath", "path", "templatedir"];
/// The keys whose path can be a directory with programs.
const DIRECTORIES: &[&str] = &["hookspath", "templatedir"];

/// The directory of a repository that git writes: `.git`, or the main repository of a linked worktree.
///
/// A repository must not be able to name a foreign directory. The main repository is therefore used only if it names
/// this worktree too.
pub(crate) fn directory(root: &Path) -> Option<PathBuf> {
    let own = root.join(".git");
    if own.symlink_metadata().ok()?.is_dir() {
        return Some(own);
    }
    let administration = linked(&own)?;
    let back = small(&administration.join("gitdir"))?;
    if normalize(Path::new(back.trim())) != own {
        return None;
    }
    let common = normalize(&administration.join(small(&administration.join("commondir"))?.trim()));
    (administration.parent()? == common.join("worktrees")).then_some(common)
}

/// The directory that a file `.git` names.
fn linked(file: &Path) -> Option<PathBuf> {
    let text = small(file)?;
    Some(normalize(&file.parent()?.join(text.trim().strip_prefix("gitdir:")?.trim())))
}

/// The text of a small regular file.
fn small(path: &Path) -> Option<String> {
    let metadata = path.symlink_metadata().ok()?;
    (metadata.is_file() && metadata.len() <= MAX_GITFILE_BYTES).then(|| read_to_string(path).ok())?
}

/// The names in the directory of a repository with which git finds other settings, also those of its worktrees and
/// modules.
pub(super) fn administration(directory: &Path) -> Vec<Guarded> {
    let mut rows = vec![row(directory, GIT_FILES)];
    let worktrees = directory.join("worktrees");
    let found = directories(&worktrees);
    if found.len() > MAX_ADMINISTRATIONS {
        rows.push(row(directory, &["worktrees"]));
    } else {
        rows.extend(found.iter().map(|path| row(path, WORKTREE_FILES)));
    }
    match modules(directory) {
        Some(found) => rows.extend(found.iter().map(|path| row(path, GIT_FILES))),
        None => rows.push(row(directory, &["modules"])),
    }
    rows
}

/// The repositories of modules, at any depth: the name of a module can contain slashes, and a module can have modules.
/// `None` if there are too many.
fn modules(directory: &Path) -> Option<Vec<PathBuf>> {
    let (mut found, mut waiting, mut seen) = (Vec::new(), vec![directory.join("modules")], 0);
    while let Some(next) = waiting.pop() {
        seen += 1;
        if found.len() > MAX_ADMINISTRATIONS || seen > MAX_DIRECTORIES {
            return None;
        }
        for path in directories(&next) {
            if path.join("HEAD").symlink_metadata().is_ok() {
                waiting.push(path.join("modules"));
                found.push(path);
            } else {
                waiting.push(path);
            }
        }
    }
    Some(found)
}

/// The directories in a directory, no links. One more than the limit means too many.
fn directories(directory: &Path) -> Vec<PathBuf> {
    let entries = read_dir(directory).into_iter().flatten().flatten();
    let entries = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    entries.map(|entry| entry.path()).take(MAX_DIRECTORIES).collect()
}

/// The settings of the repositories inside a worktree that its index names. Git looks into them.
pub(super) fn embedded(root: &Path) -> Vec<Guarded> {
    let mut rows = Vec::new();
    for path in indexed(root, REPOSITORY) {
        let own = path.join(".git");
        match own.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => rows.extend(administration(&own)),
            Ok(_) => {
                rows.push(row(&path, &[".git"]));
                rows.extend(
                    linked(&own)
                        .filter(|target| target.starts_with(root))
                        .iter()
                        .flat_map(|target| administration(target)),
                );
            }
            // It cannot be created either.
            Err(_) => {}
        }
    }
    rows
}

/// The paths in packages to which links outside of packages lead: links in the root of a worktree, and those that its index
/// names. `None` if there are too many links.
pub(super) fn package_links(root: &Path) -> Option<Vec<PathBuf>> {
    let is_link = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_symlink());
    let of_root = read_dir(root).into_iter().flatten().flatten().filter(is_link).map(|entry| entry.path());
    let is_in_package =
        |path: &Path| path.strip_prefix(root).is_ok_and(|rest| rest.iter().any(control::is_package));
    let mut found = Vec::new();
    for (number, link) in of_root.chain(indexed(root, LINK)).enumerate() {
        if number >= MAX_LINKS {
            return None;
        }
        let Some(target) = link.read_link().ok().filter(|_| !is_in_package(&link)) else { continue };
        let named = normalize(&link.parent().unwrap_or(root).join(target));
        let real = physical(&named).unwrap_or_else(|_| named.clone());
        found.extend([named, real].into_iter().filter(|path| is_in_package(path)));
    }
    found.sort();
    found.dedup();
    Some(found)
}

/// The paths of a kind in the index of a worktree.
fn indexed(root: &Path, mode: u32) -> Vec<PathBuf> {
    let own = root.join(".git");
    let directory = linked(&own).unwrap_or(own);
    let parts = read_dir(&directory).into_iter().flatten().flatten();
    let parts = parts.filter(|entry| entry.file_name().to_string_lossy().starts_with(PART));
    let parts = parts.take(MAX_PARTS).map(|entry| entry.path()).chain([directory.join("index")]);
    let found = parts.flat_map(|part| entries(&part)).filter(|(kind, _)| *kind == mode);
    found.map(|(_, path)| root.join(path)).collect()
}

/// The mode and the path of an entry in an index.
type Indexed = (u32, PathBuf);

/// The repositories and links that an index names, and the state of the file from which they are known.
type Known = (Option<(u64, SystemTime)>, Vec<Indexed>);

/// The repositories and links in an index. The last ones that were read are kept, because a large index takes long.
fn entries(index: &Path) -> Vec<Indexed> {
    static KNOWN: Mutex<BTreeMap<PathBuf, Known>> = Mutex::new(BTreeMap::new());
    let metadata = index.metadata().ok();
    let state = metadata.and_then(|metadata| Some((metadata.len(), metadata.modified().ok()?)));
    let Some((bytes, _)) = state else { return Vec::new() };
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((of, found)) = known.get(index)
        && *of == state
    {
        return found.clone();
    }
    if bytes > MAX_INDEX_BYTES {
        return Vec::new();
    }
    let found = read(index).map(|bytes| links(&bytes)).unwrap_or_default();
    if known.len() >= MAX_KNOWN {
        known.clear();
    }
    known.insert(index.to_owned(), (state, found.clone()));
    found
}

/// The entries of an index that are repositories or links. Ends at the first entry that is not valid.
fn links(index: &[u8]) -> Vec<Indexed> {
    let found = OBJECT_BYTES.map(|bytes| links_with(index, bytes));
    found.into_iter().flatten().next().unwrap_or_default()
}

/// The same for one length of the objects' names. `None` if an entry is not valid.
fn links_with(index: &[u8], object_bytes: usize) -> Option<Vec<Indexed>> {
    let number = |at: usize| Some(u32::from_be_bytes(index.get(at..at + 4)?.try_into().ok()?));
    let version = number(4).filter(|_| index.starts_with(b"DIRC"))?;
    let (mut found, mut at, mut path) = (Vec::new(), 12, Vec::new());
    for _ in 0..number(8)? {
        let flags_at = at + OBJECT + object_bytes;
        let flags = u16::from_be_bytes(index.get(flags_at..flags_at + 2)?.try_into().ok()?);
        let mut name_at = flags_at + if version >= 3 && flags & EXTENDED != 0 { 4 } else { 2 };
        if version >= 4 {
            let (removed, after) = length(index, name_at)?;
            path.truncate(path.len().checked_sub(removed)?);
            name_at = after;
        } else {
            path.clear();
        }
        let name = index.get(name_at..)?;
        let name = &name[..name.iter().position(|byte| *byte == 0)?];
        path.extend_from_slice(name);
        let is_valid = path.len() == usize::from(flags & LENGTH) || flags & LENGTH == LENGTH;
        if !is_valid {
            return None;
        }
        let mode = number(at + MODE)?;
        let most = match mode {
            REPOSITORY => MAX_ADMINISTRATIONS,
            LINK => MAX_LINKS,
            _ => 0,
        };
        // Links do not hide repositories.
        if most > 0 && found.iter().filter(|(kind, _)| *kind == mode).count() < most {
            found.push((mode, PathBuf::from(OsStr::from_bytes(&path))));
        }
        let end = name_at + name.len() + 1;
        // Entries of older versions have lengths that are multiples of eight.
        at = if version >= 4 { end } else { at + (end - at).next_multiple_of(8) };
    }
    Some(found)
}

/// A number with seven bits in each byte, and the place after it.
fn length(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut value = 0_usize;
    loop {
        let byte = usize::from(*bytes.get(at)?);
        at += 1;
        value = value.checked_add(byte & 0x7f)?;
        if byte & 0x80 == 0 {
            return Some((value, at));
        }
        value = value.checked_add(1)?.checked_mul(128)?;
    }
}

/// The files in the worktree that the existing settings of git name: programs, hooks and files with other settings.
pub(crate) fn targets(root: &Path, common: Option<&Path>, variables: &Env, home: &Path) -> Vec<Guarded> {
    named_by_settings(root, common, variables, home).into_iter().map(|(row, _)| row).collect()
}

/// Returns the first setting that names a file in the worktree, and this file, as text for the model. Returns `None` if no
/// setting names one.
pub(super) fn naming(root: &Path, common: Option<&Path>, variables: &Env, home: &Path) -> Option<String> {
    let (row, setting) = named_by_settings(root, common, variables, home).into_iter().next()?;
    let name = row.patterns.first()?;
    Some(format!("{setting} names `{}`", row.directory.join(name).display()))
}

/// The files that settings name, each with the setting.
fn named_by_settings(
    root: &Path,
    common: Option<&Path>,
    variables: &Env,
    home: &Path,
) -> Vec<(Guarded, String)> {
    let own = variables.filled(env::XDG_CONFIG_HOME).map_or_else(|| home.join(".config"), PathBuf::from);
    let of_user = [home.join(".gitconfig"), own.join("git/config"), PathBuf::from("/etc/gitconfig")];
    let administration = linked(&root.join(".git"));
    let directories = common.map(Path::to_owned).into_iter().chain(administration);
    let of_repository =
        directories.flat_map(|path| ["config", "config.worktree"].map(|name| path.join(name)));
    let mut waiting: Vec<PathBuf> = of_repository.chain(of_user).collect();
    let (mut seen, mut rows): (Vec<PathBuf>, Vec<(Guarded, String)>) = (Vec::new(), Vec::new());
    while let Some(file) = waiting.pop() {
        let is_small =
            file.metadata().is_ok_and(|about| about.is_file() && about.len() <= MAX_SETTINGS_BYTES);
        if seen.contains(&file) || seen.len() >= MAX_SETTINGS || !is_small {
            continue;
        }
        seen.push(file.clone());
        for setting in settings(
            &read(&file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default(),
        ) {
            let is_include = setting.section.starts_with("include");
            let base = if is_include { file.parent().unwrap_or(root) } else { root };
            for path in setting.paths(base, root, home) {
                if is_include {
                    waiting.push(path.clone());
                }
                let is_inside = path.starts_with(root) && path != root
                    || common.is_some_and(|own| path.starts_with(own) && path != own);
                if let (Some(above), Some(name), true) =
                    (path.parent(), path.file_name(), is_inside && rows.len() < MAX_TARGETS)
                {
                    let key = if setting.key == "hookspath" { "hooksPath" } else { &setting.key };
                    let shown = format!("`{}.{key}` in `{}`", setting.section, file.display());
                    rows.push((row(above, &[&folded_name(&name.to_string_lossy())]), shown));
                }
            }
        }
    }
    rows
}

/// A setting of git, with section and key in lower case and without the part of the section in quotes.
#[derive(Debug, PartialEq, Eq)]
struct Setting {
    section: String,
    key: String,
    value: String,
}

impl Setting {
    /// The paths that the value may name.
    fn paths(&self, base: &Path, root: &Path, home: &Path) -> Vec<PathBuf> {
        let is_named =
            |(section, key): &(&str, &str)| self.section == *section && (*key == "*" || self.key == *key);
        let is_command = self.section != "alias" || self.value.starts_with('!');
        if !PROGRAMS.iter().any(is_named) || !is_command {
            return Vec::new();
        }
        let full = |word: &str| match word.strip_prefix("~/") {
            Some(rest) => normalize(&home.join(rest)),
            None => normalize(&base.join(word)),
        };
        if PATHS.contains(&self.key.as_str()) && !self.value.contains('*') {
            return vec![full(&self.value)];
        }
        let words = self.value.split(|c: char| c.is_whitespace() || "!\"'`;|&()<>$={},".contains(c));
        let words = words.filter(|word| !word.is_empty() && !word.contains('*'));
        let is_path = |path: &PathBuf, word: &str| {
            let is_directory = path.is_dir() && !DIRECTORIES.contains(&self.key.as_str());
            path.starts_with(root) && !is_directory && (word.contains('/') || path.symlink_metadata().is_ok())
        };
        words
            .map(|word| (full(word), word))
            .filter(|(path, word)| is_path(path, word))
            .map(|(path, _)| path)
            .collect()
    }
}

/// The settings of a file. What git would reject is skipped.
fn settings(text: &str) -> Vec<Setting> {
    let (mut section, mut found) = (String::new(), Vec::new());
    let joined = text.replace("\\\r\n", "").replace("\\\n", "");
    for line in joined.lines() {
        let mut line = line.trim();
        if line.starts_with('[') {
            // A subsection in quotes can contain the bracket.
            let quoted = line.find('"').filter(|at| line.find(']').is_some_and(|end| *at < end));
            let end = match quoted {
                Some(_) => line.rfind("\"]").map(|at| at + 1),
                None => line.find(']'),
            };
            let Some(end) = end else { continue };
            let name = line[1..end].split(|c: char| c.is_whitespace() || matches!(c, '"' | '.')).next();
            section = name.unwrap_or_default().to_ascii_lowercase();
            line = line[end + 1..].trim();
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let key = key.trim().to_ascii_lowercase();
        if key.is_empty() || key.starts_with(['#', ';']) {
            continue;
        }
        found.push(Setting { section: section.clone(), key, value: unquoted(value.trim()) });
    }
    found
}

/// A value without quotes and comments.
fn unquoted(value: &str) -> String {
    let (mut plain, mut is_quoted, mut characters) = (String::new(), false, value.chars());
    while let Some(character) = characters.next() {
        match character {
            '"' => is_quoted = !is_quoted,
            '\\' => plain.extend(characters.next()),
            '#' | ';' if !is_quoted => break,
            other => plain.push(other),
        }
    }
    plain.trim_end().to_owned()
}

fn row(directory: &Path, names: &[&str]) -> Guarded {
    let patterns = names.iter().map(|&name| name.to_owned()).collect();
    Guarded { directory: directory.to_owned(), patterns, except: Vec::new() }
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir_all, write};
    use std::process::Command;

    use super::*;

    #[test]
    fn settings_are_read_like_git_reads_them() {
        let text = "[core]\n\thooksPath = .hooks ; note\n[filter \"a]b\"] clean = \"./x y\" # c\n[Diff \"q\"]\n textconv=a\\\n b\n[alias]\n\tx = !./s\n";
        let found: Vec<String> = settings(text)
            .into_iter()
            .map(|one| format!("{}.{}={}", one.section, one.key, one.value))
            .collect();
        assert_eq!(
            found,
            ["core.hookspath=.hooks", "filter.clean=./x y", "diff.textconv=a b", "alias.x=!./s"]
        );
    }

    #[test]
    fn what_settings_name_is_guarded() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        create_dir_all(root.join("work/.git")).unwrap();
        create_dir_all(root.join("work/tools")).unwrap();
        write(root.join("work/tools/clean.py"), "").unwrap();
        write(root.join("work/extra"), "[core]\nfsmonitor = ./watch.sh\n").unwrap();
        write(root.join("work/.git/config"), "[core]\nhooksPath = ci/hooks\n[include]\npath = ../extra\n[includeIf \"gitdir:x\"]\npath=../other\n[filter \"f\"]\nclean = python tools/clean.py %f\n[alias]\nco = checkout\ndo = !make tools\n").unwrap();
        let work = root.join("work");
        let rows = targets(&work, Some(&work.join(".git")), &Env::default(), &root.join("home"));
        let mut found: Vec<PathBuf> = rows.iter().map(|row| row.directory.join(&row.patterns[0])).collect();
        found.sort();
        let expected = ["ci/hooks", "extra", "other", "tools/clean.py", "watch.sh"];
        assert_eq!(found, expected.map(|name| work.join(name)));
        let shown = naming(&work, Some(&work.join(".git")), &Env::default(), &root.join("home")).unwrap();
        assert!(shown.starts_with(&format!("`core.hooksPath` in `{}", work.display())), "{shown}");
        assert!(shown.ends_with("work/ci/hooks`"), "{shown}");
    }

    #[test]
    fn modules_are_found_at_any_depth() {
        let folder = tempfile::tempdir().unwrap();
        let git = folder.path().join(".git");
        for name in ["modules/a/b", "modules/a/b/modules/c", "modules/d"] {
            create_dir_all(git.join(name)).unwrap();
            write(git.join(name).join("HEAD"), "").unwrap();
        }
        let rows = administration(&git);
        for name in ["modules/a/b", "modules/a/b/modules/c", "modules/d"] {
            assert!(rows.iter().any(|row| row.directory == git.join(name)), "{name}");
        }
    }

    #[test]
    fn the_repositories_of_an_index_are_found_in_every_version() {
        for version in ["2", "3", "4"] {
            for format in ["sha1", "sha256"] {
                let folder = tempfile::tempdir().unwrap();
                let root = folder.path().canonicalize().unwrap();
                let git = |directory: &Path, args: &[&str]| {
                    let mut command = Command::new("git");
                    command.args([
                        "-c",
                        "user.name=a",
                        "-c",
                        "user.email=a@b",
                        "-c",
                        "init.defaultBranch=main",
                    ]);
                    command.args(["-c", "advice.addEmbeddedRepo=false"]).args(args).current_dir(directory);
                    let output = command.env("HOME", &root).env("GIT_CONFIG_NOSYSTEM", "1").output().unwrap();
                    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                };
                let object = format!("--object-format={format}");
                git(&root, &["init", "-q", &object, "."]);
                for name in ["sub/inner", "zz"] {
                    create_dir_all(root.join(name)).unwrap();
                    git(&root.join(name), &["init", "-q", &object, "."]);
                    git(&root.join(name), &["commit", "-q", "--allow-empty", "-m", "x"]);
                }
                write(root.join("file"), "").unwrap();
                git(&root, &["add", "-A"]);
                git(&root, &["update-index", "--index-version", version]);
                let rows = embedded(&root);
                for name in ["sub/inner", "zz"] {
                    let own = root.join(name).join(".git");
                    assert!(rows.iter().any(|row| row.directory == own), "{name} {version} {format}");
                }
            }
        }
    }
}
