//! Paths that others exchange after they were judged.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use codewright_workspace::{Error, Held, Node, Opening, Workspace, hold, hold_at};
use tempfile::TempDir;

/// A worktree `top/parent/proj` with `d/f`, and a directory `top/outside` with the same names.
struct Scene {
    _keep: TempDir,
    top: PathBuf,
    workspace: Workspace,
}

impl Scene {
    fn new(opening: Opening) -> Self {
        let keep = TempDir::new().expect("a directory");
        let top = keep.path().canonicalize().expect("exists");
        for place in ["parent/proj/d", "outside", "evil/proj/d"] {
            fs::create_dir_all(top.join(place)).expect("made");
            fs::write(
                top.join(place).join("f"),
                if place.starts_with("parent") { "inside" } else { "secret" },
            )
            .expect("written");
        }
        let root = top.join("parent/proj");
        let workspace = Workspace::fixed(&root, &root).opening(opening);
        Self { _keep: keep, top, workspace }
    }

    fn hold(&self, path: &str) -> Held {
        self.workspace.hold(Path::new(path)).expect("held")
    }

    /// Moves a path away and puts a link in its place.
    fn exchange(&self, path: &str, target: &str) {
        let path = self.top.join(path);
        fs::rename(&path, path.with_extension("old")).expect("renamed");
        symlink(self.top.join(target), path).expect("linked");
    }

    fn outside(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for place in ["outside", "evil/proj/d"] {
            for entry in fs::read_dir(self.top.join(place)).expect("read") {
                let path = entry.expect("an entry").path();
                found.push((path.display().to_string(), fs::read_to_string(&path).expect("read")));
            }
        }
        found.sort();
        found
    }
}

#[test]
fn a_link_that_is_exchanged_after_the_check_leads_nowhere() {
    for opening in Opening::ALL {
        for (path, target) in [("parent/proj/d", "outside"), ("parent/proj/d/f", "outside/f")] {
            let scene = Scene::new(opening);
            let (held, new) = (scene.hold("d/f"), scene.hold("d/new/made"));
            let before = scene.outside();
            scene.exchange(path, target);
            let replaced = |error: &Error| matches!(error, Error::Replaced { .. });
            assert!(replaced(&held.read(100).expect_err("a link")), "{path} {opening:?}");
            assert!(replaced(&held.status().expect_err("a link")), "{path} {opening:?}");
            assert!(replaced(&held.write(b"x", None).expect_err("a link")), "{path} {opening:?}");
            assert!(replaced(&held.remove().expect_err("a link")), "{path} {opening:?}");
            if path.ends_with('d') {
                assert!(replaced(&new.write(b"x", None).expect_err("a link")), "{opening:?}");
                assert!(replaced(&scene_entries(&held).expect_err("a link")), "{opening:?}");
            }
            assert_eq!(scene.outside(), before, "{path} {opening:?}");
        }
    }
}

fn scene_entries(held: &Held) -> Result<Vec<(std::ffi::OsString, bool)>, Error> {
    held.above().expect("a parent").entries(10)
}

#[test]
fn an_exchanged_parent_of_the_worktree_does_not_matter_after_the_check_and_is_outside_before() {
    for opening in Opening::ALL {
        let scene = Scene::new(opening);
        let held = scene.hold("d/f");
        let before = scene.outside();
        scene.exchange("parent", "evil");
        assert_eq!(held.read(100).expect("read"), b"inside");
        assert_eq!(held.write(b"changed", None).expect("written"), 0);
        assert_eq!(fs::read(scene.top.join("parent.old/proj/d/f")).expect("read"), b"changed");
        assert!(!scene.hold("d/f").place.inside);
        assert_eq!(scene.outside(), before);
    }
}

#[test]
fn links_inside_are_followed_when_a_path_is_judged() {
    for opening in Opening::ALL {
        let scene = Scene::new(opening);
        symlink("d", scene.top.join("parent/proj/link")).expect("linked");
        let held = scene.hold("link/f");
        assert!(held.place.inside);
        assert_eq!(held.read(100).expect("read"), b"inside");
        assert_eq!(scene.hold("link/a/b/new").write(b"x", None).expect("written"), 2);
        assert_eq!(fs::read(scene.top.join("parent/proj/d/a/b/new")).expect("read"), b"x");
        let outside = scene.hold("../../outside/f");
        assert!(!outside.place.inside);
        assert_eq!(outside.read(100).expect("read"), b"secret");
    }
}

#[test]
fn a_path_that_was_checked_elsewhere_must_still_lead_there() {
    let scene = Scene::new(Opening::Kernel);
    let path = scene.top.join("parent/proj/d/f");
    assert_eq!(hold_at(&path, &path).and_then(|held| held.read(100)).expect("read"), b"inside");
    scene.exchange("parent/proj/d", "outside");
    assert!(matches!(hold_at(&path, &path), Err(Error::Replaced { .. })));
}

#[test]
fn pipes_sockets_and_huge_files_neither_block_nor_flood() {
    for opening in Opening::ALL {
        let scene = Scene::new(opening);
        let at = |name: &str| scene.top.join("parent/proj").join(name);
        let made = std::process::Command::new("mkfifo").arg(at("pipe")).status().expect("run");
        assert!(made.success());
        let _socket = UnixListener::bind(at("socket")).expect("bound");
        fs::File::create(at("huge")).and_then(|file| file.set_len(1 << 40)).expect("grown");
        for name in ["pipe", "socket"] {
            let held = scene.hold(name);
            assert_eq!(held.status().expect("there").expect("there").node, Node::Special);
            assert!(held.read(100).expect_err("special").to_string().contains("not a regular file"));
            assert!(held.write(b"x", None).is_err() && held.remove().is_err());
        }
        assert!(matches!(scene.hold("huge").read(100), Err(Error::TooLarge { .. })));
        // In place of a file that was there when the path was judged.
        let held = scene.hold("d/f");
        fs::rename(at("pipe"), at("d/f")).expect("renamed");
        assert!(held.read(100).is_err() && held.write(b"x", None).is_err());
    }
}

#[test]
fn files_about_processes_are_refused() {
    if !Path::new("/proc/self/environ").exists() {
        return;
    }
    let own = std::process::id();
    let paths = ["/proc/self/environ", "/proc/thread-self/environ", "/dev/fd/../environ"];
    for path in paths.map(str::to_owned).into_iter().chain([format!("/proc/{own}/environ")]) {
        let read = hold(Path::new(&path)).and_then(|held| held.read(1 << 20));
        assert!(read.is_err(), "{path}");
    }
    assert!(hold(Path::new("/proc/self/fd")).and_then(|held| held.entries(10)).is_err());
    let below = hold(Path::new("/proc")).expect("held").child(OsStr::new(&own.to_string()));
    assert!(below.child(OsStr::new("environ")).read(1 << 20).is_err());
    assert!(hold(Path::new("/proc/version")).and_then(|held| held.read(1 << 20)).is_ok());
}

#[test]
fn a_new_version_of_a_private_file_is_never_readable_by_others() {
    for opening in Opening::ALL {
        let scene = Scene::new(opening);
        let held = scene.hold("d/f");
        fs::set_permissions(&held.place.real, fs::Permissions::from_mode(0o600)).expect("set");
        held.write(b"private", None).expect("written");
        let mode = |held: &Held| held.status().expect("there").expect("there").mode;
        assert_eq!(mode(&held), 0o600);
        held.write(b"program", Some(0o755)).expect("written");
        assert_eq!(mode(&held), 0o755);
        assert_eq!(fs::read_dir(scene.top.join("parent/proj/d")).expect("read").count(), 1);
    }
}
