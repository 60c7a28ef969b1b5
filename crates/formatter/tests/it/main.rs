//! The recorded list of formatters, and the rules that decide which of them a project uses.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use codewright_formatter::{Formatters, Place, ProgramSearch, Programs};
use serde_json::{Value, json};

/// A project with an own directory of programs.
struct Folder {
    _folder: tempfile::TempDir,
    project: PathBuf,
    bin: PathBuf,
}

impl Folder {
    fn new(programs: &[&str], files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (project, bin) = (root.join("project"), root.join("bin"));
        std::fs::create_dir_all(project.join("sub")).unwrap();
        for program in programs {
            program_at(&bin.join(program));
        }
        for (name, content) in files {
            let path = project.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        Self { _folder: folder, project, bin }
    }

    fn place(&self, programs: Programs) -> Place {
        let search = ProgramSearch {
            directory: self.project.join("sub"),
            worktree: self.project.clone(),
            path: self.bin.to_string_lossy().into_owned(),
            programs,
        };
        Place { search, has_oxfmt: true }
    }

    fn enabled(&self, programs: Programs) -> Vec<String> {
        let listed = Formatters::new(&json!(true), self.place(programs)).list();
        listed.into_iter().filter(|formatter| formatter.enabled).map(|formatter| formatter.name).collect()
    }
}

fn program_at(path: &Path) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn the_list_is_the_recorded_one() {
    let recorded: Value = serde_json::from_str(include_str!("recorded.json")).unwrap();
    let folder = Folder::new(&["terraform", "rustfmt", "fake"], &[]);
    let config = json!({"fake": {"command": ["fake", "$FILE"], "extensions": [".md"]}});
    let listed = Formatters::new(&config, folder.place(Programs::Installed)).list();
    let listed: Vec<_> = listed
        .into_iter()
        .map(|formatter| json!({"name": formatter.name, "extensions": formatter.extensions, "enabled": formatter.enabled}))
        .collect();
    assert_eq!(json!(listed), recorded["GET /formatter"]["body"]);
}

#[test]
fn entries_change_add_and_disable_formatters() {
    let folder = Folder::new(&["zig"], &[]);
    let config = json!({
        "gofmt": {"disabled": true},
        "zig": {"extensions": [".zzz"]},
        "dart": {"command": ["zig", "$FILE"]},
        "mine": {"command": ["missing", "$FILE"]},
    });
    let formatters = Formatters::new(&config, folder.place(Programs::All));
    let listed = formatters.list();
    let of = |name: &str| {
        listed.iter().find(|formatter| formatter.name == name).map(|one| (&one.extensions[..], one.enabled))
    };
    assert_eq!(of("gofmt"), None);
    assert_eq!(of("zig"), Some((&[".zzz".to_owned()][..], true)));
    assert_eq!(of("dart"), Some((&[".dart".to_owned()][..], true)));
    assert_eq!(of("mine"), Some((&[][..], false)));
    assert_eq!(listed.last().unwrap().name, "mine");
    assert!(formatters.suits(Path::new("/x/a.zzz")) && !formatters.suits(Path::new("/x/.zzz")));
}

#[test]
fn a_project_uses_the_formatters_that_it_names() {
    let all = ["ruff", "uv", "prettier", "oxfmt", "clang-format", "ocamlformat", "biome", "pint"];
    type Row<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);
    let rows: [Row<'_>; 10] = [
        (&[], &["uv"]),
        (&[("ruff.toml", "")], &["ruff"]),
        (&[("pyproject.toml", "[tool.ruff]\n")], &["ruff"]),
        (&[("requirements.txt", "ruff==1\n")], &["ruff"]),
        (&[("package.json", r#"{"devDependencies": {"prettier": "3"}}"#)], &["uv", "prettier"]),
        (&[("package.json", r#"{"dependencies": {"oxfmt": "3"}}"#)], &["uv", "oxfmt"]),
        (&[("package.json", "not JSON")], &["uv"]),
        (&[("sub/.clang-format", "")], &["uv", "clang-format"]),
        (&[(".ocamlformat", ""), ("biome.jsonc", "{}")], &["uv", "ocamlformat", "biome"]),
        // The package must be installed in the project.
        (&[("composer.json", r#"{"require-dev": {"laravel/pint": "1"}}"#)], &["uv"]),
    ];
    for (files, expected) in rows {
        assert_eq!(Folder::new(&all, files).enabled(Programs::Installed), expected, "{files:?}");
    }
}

#[test]
fn programs_of_the_project_need_trust() {
    let files = [
        ("package.json", r#"{"devDependencies": {"prettier": "3"}}"#),
        ("composer.json", r#"{"require": {"laravel/pint": "1"}}"#),
    ];
    let folder = Folder::new(&["zig"], &files);
    program_at(&folder.project.join("node_modules/.bin/prettier"));
    program_at(&folder.project.join("vendor/bin/pint"));
    // A program on the path that is a link into the project is the project's as well.
    std::os::unix::fs::symlink(folder.project.join("vendor/bin/pint"), folder.bin.join("gofmt")).unwrap();
    assert_eq!(folder.enabled(Programs::All), ["zig", "prettier", "pint", "gofmt"]);
    assert_eq!(folder.enabled(Programs::Installed), ["zig"]);
    assert_eq!(folder.enabled(Programs::None), Vec::<String>::new());
}
