//! Paths, reading and writing.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use codewright_workspace::{Error, Window, Workspace, hold, physical, read_lines, write_atomic};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

fn temporary() -> (TempDir, PathBuf) {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().canonicalize().expect("exists");
    (directory, path)
}

#[test]
fn every_link_is_followed_even_if_the_path_does_not_exist() {
    let (_keep, root) = temporary();
    std::fs::create_dir_all(root.join("in/deep")).expect("made");
    std::fs::create_dir_all(root.join("out")).expect("made");
    symlink("../out", root.join("in/link")).expect("linked");
    symlink("nowhere/file", root.join("in/dangling")).expect("linked");
    symlink("link", root.join("in/twice")).expect("linked");
    let cases = [
        ("in/deep/new/file", "in/deep/new/file"),
        ("in/link", "out"),
        ("in/link/new", "out/new"),
        ("in/link/../x", "x"),
        ("in/twice/./a/../b", "out/b"),
        ("in/dangling", "in/nowhere/file"),
    ];
    for (path, expected) in cases {
        assert_eq!(physical(&root.join(path)).expect("resolved"), root.join(expected), "{path}");
    }
}

#[test]
fn a_circle_of_links_is_an_error() {
    let (_keep, root) = temporary();
    symlink("b", root.join("a")).expect("linked");
    symlink("a", root.join("b")).expect("linked");
    let error = physical(&root.join("a")).expect_err("a circle");
    assert!(error.to_string().contains("too many symbolic links"), "{error}");
}

#[test]
fn inside_depends_on_the_real_location() {
    let (_keep, root) = temporary();
    std::fs::create_dir_all(root.join("tree/sub")).expect("made");
    symlink("..", root.join("tree/up")).expect("linked");
    let workspace = Workspace::new(&root.join("tree/sub"), &root.join("tree")).expect("a workspace");
    let cases = [
        ("x", true),
        ("../x", true),
        ("../../x", false),
        ("../up/x", false),
        ("../up/tree/x", true),
        ("/etc", false),
    ];
    for (path, inside) in cases {
        assert_eq!(workspace.resolve(Path::new(path)).expect("resolved").inside, inside, "{path}");
    }
    let alone = Workspace::new(&root.join("tree/sub"), Path::new("/")).expect("a workspace");
    assert!(!alone.resolve(Path::new("../x")).expect("resolved").inside);
    assert!(alone.resolve(Path::new("x")).expect("resolved").inside);
}

#[test]
fn a_write_keeps_mode_and_links_and_leaves_no_temporary_file() {
    let (_keep, root) = temporary();
    let path = root.join("a/b.txt");
    write_atomic(&path, b"one").expect("made");
    assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o111, 0);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).expect("set");
    write_atomic(&path, b"two").expect("written");
    let metadata = std::fs::metadata(&path).expect("there");
    assert_eq!(metadata.permissions().mode() & 0o777, 0o640);
    std::fs::hard_link(&path, root.join("other")).expect("linked");
    write_atomic(&path, b"three").expect("written");
    assert_eq!(std::fs::read(root.join("other")).expect("read"), b"three");
    assert_eq!(std::fs::metadata(&path).expect("there").nlink(), 2);
    assert_eq!(std::fs::read_dir(root.join("a")).expect("read").count(), 1);
    assert!(write_atomic(&root.join("a"), b"x").is_err(), "a directory is not replaced");
}

#[test]
fn a_file_over_the_limit_is_rejected() {
    let (_keep, root) = temporary();
    let path = root.join("f");
    std::fs::write(&path, [0; 100]).expect("written");
    let held = hold(&path).expect("held");
    assert!(matches!(held.read(99), Err(Error::TooLarge { limit_bytes: 99, .. })));
    assert_eq!(held.read(100).expect("read").len(), 100);
}

#[test]
fn a_huge_file_is_read_as_a_stream() {
    let (_keep, root) = temporary();
    let path = root.join("f");
    let file = std::fs::File::create(&path).expect("made");
    file.set_len(300 * 1024 * 1024).expect("grown");
    let window = Window { offset: 1, limit: 10, limit_bytes: 50 * 1024 };
    let open = || hold(&path).and_then(|held| held.file()).expect("opened");
    let page = read_lines(&mut open(), &path, window, &CancellationToken::new()).expect("read");
    assert_eq!((page.total, page.lines.len(), page.more), (1, 1, false));
    assert!(page.lines[0].len() < 2100);
    let cancel = CancellationToken::new();
    cancel.cancel();
    assert!(matches!(read_lines(&mut open(), &path, window, &cancel), Err(Error::Cancelled)));
}
