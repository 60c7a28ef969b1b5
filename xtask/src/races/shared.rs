//! Names that are shared with a confined program: caches, private directories, attachments and the directories of sandboxes.
//!
//! The calls work as this program does: they open the place once and use the handle.

use std::ffi::OsStr;
use std::path::Path;

use anyhow::Result;
use codewright_tools::Opening;
use codewright_workspace::{Directory, Opened, hold, hold_at, physical};

use super::scene::{Exchanger, MARK, Scene};
use super::trial::Tally;

/// The name of the exchanged directory in the project.
const NAME: &str = "d";

/// One call: the bytes that it read, or an error.
type Call = fn(&Scene) -> Result<Vec<u8>>;

/// Repeats a call while names are exchanged.
fn repeat(scene: &Scene, left: &Exchanger, call: Call) -> Result<Tally> {
    let mut tally = Tally::default();
    loop {
        tally.calls += 1;
        match call(scene) {
            Ok(bytes) => {
                tally.done += 1;
                tally.read_bytes += outside(&bytes);
            }
            Err(_) => tally.failed += 1,
        }
        if !left.goes_on() {
            return Ok(tally);
        }
    }
}

/// The bytes of outside files in what a call read.
fn outside(bytes: &[u8]) -> u64 {
    (String::from_utf8_lossy(bytes).matches(MARK).count() * MARK.len()) as u64
}

/// Opens the exchanged directory from one that nobody exchanges.
fn place(scene: &Scene) -> Result<Directory> {
    let mut directory = Directory::open(&scene.top)?;
    for name in ["parent", "proj", NAME] {
        directory = directory.private_child(OsStr::new(name))?;
    }
    Ok(directory)
}

/// Prepares caches: creates directories, files and links in the exchanged directory, and removes them.
pub(super) fn caches(scene: &Scene, _: Opening, left: &Exchanger) -> Result<Tally> {
    repeat(scene, left, |scene| {
        let caches = place(scene)?;
        caches.touch_file(OsStr::new(".used"))?;
        let below = caches.make_all(Path::new("registry/cache"))?;
        if below.status(OsStr::new("link"))?.is_none() {
            below.link(OsStr::new("link"), Path::new("/missing"))?;
        }
        let names = caches.names(100)?;
        caches.remove(OsStr::new("registry"))?;
        Ok(names.join(OsStr::new(" ")).into_encoded_bytes())
    })
}

/// Uses the directory of a session, and removes an old one in it.
pub(super) fn private(scene: &Scene, _: Opening, left: &Exchanger) -> Result<Tally> {
    repeat(scene, left, |scene| {
        let directory = place(scene)?;
        directory.touch()?;
        directory.make(OsStr::new("old"))?.touch_file(OsStr::new("file"))?;
        directory.remove(OsStr::new("old"))?;
        Ok(Vec::new())
    })
}

/// Checks the place of an attachment and reads it afterwards, as for a member of a team.
pub(super) fn attachments(scene: &Scene, _: Opening, left: &Exchanger) -> Result<Tally> {
    repeat(scene, left, |scene| {
        let mut all = Vec::new();
        for name in ["d/f.txt", "file.txt", "d/deep/g.txt"] {
            let path = scene.root.join(name);
            let checked = physical(&path)?;
            if checked.starts_with(&scene.root) {
                all.extend(hold_at(&path, &checked)?.read(1 << 20)?);
            }
        }
        Ok(all)
    })
}

/// Opens the directory of a request and lists what was opened.
pub(super) fn directories(scene: &Scene, _: Opening, left: &Exchanger) -> Result<Tally> {
    repeat(scene, left, |scene| {
        let path = scene.root.join(NAME);
        let checked = physical(&path)?;
        anyhow::ensure!(checked.starts_with(&scene.root), "the directory is outside");
        let names = hold_at(&path, &checked)?.entries(100)?;
        let names: Vec<_> = names.into_iter().map(|(name, _)| name).collect();
        Ok(names.join(OsStr::new(" ")).into_encoded_bytes())
    })
}

/// Opens the path of a server's argument as its sandbox does, and reads what the handle leads to.
pub(super) fn arguments(scene: &Scene, _: Opening, left: &Exchanger) -> Result<Tally> {
    repeat(scene, left, |scene| {
        let opened = Opened::open(&scene.root.join(NAME))?;
        let file = rustix::fs::openat(
            &opened,
            "f.txt",
            rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::CLOEXEC,
            rustix::fs::Mode::empty(),
        )?;
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut std::fs::File::from(file), &mut bytes)?;
        Ok(bytes)
    })
}

/// Checks names and uses them again: what no part of the program does. The other calls prove something only if this one is
/// caught.
pub(super) fn by_name(scene: &Scene, _: Opening, left: &Exchanger) -> Result<Tally> {
    repeat(scene, left, |scene| {
        let mut all = Vec::new();
        for name in ["d/f.txt", "file.txt"] {
            let path = scene.root.join(name);
            if hold(&path)?.place.real.starts_with(&scene.root) {
                all.extend(std::fs::read(&path)?);
            }
        }
        Ok(all)
    })
}
