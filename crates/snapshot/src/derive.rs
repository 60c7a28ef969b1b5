//! Derives the tree after a step from the tree before it, without git.
//!
//! This is possible if the step only changed the content of tracked files: the tree after it differs in these files
//! and nothing else has to be compared.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::{self, Read, Root};
use crate::id::{Content, Kind, ObjectId, TreeId};
use crate::object::{self, Entry, Node};
use crate::objects::Objects;
use crate::step::Step;
use crate::track::MAX_TRACKED_BYTES;
use crate::{Error, Snapshots, blocking, is_list};

/// The limit of changed files. A step with more is tracked.
const MAX_FILES: usize = 32;

/// New trees that are not stored yet.
#[derive(Default)]
struct Pending(HashMap<ObjectId, Vec<u8>>);

impl Snapshots {
    /// Returns `before` with the files of a step, or `None` if only tracking can find the tree: if a file is new, gone,
    /// a link, large or a list of ignored files, or if it has been changed again.
    ///
    /// The caller ensures that the step contains every change of the agent since `before`. Changes of other programs
    /// appear in the next snapshot.
    pub async fn derive(&self, before: TreeId, step: &Step) -> Result<Option<TreeId>, Error> {
        let files = step.files();
        if !step.left_out.is_empty() || files.len() > MAX_FILES || files.iter().any(|file| is_list(file)) {
            return Ok(None);
        }
        let mut changes = Vec::new();
        for file in files {
            match step.changes.get(&file) {
                Some((Some(_), Some(after))) if after.kind != Kind::Link => changes.push((file, *after)),
                _ => return Ok(None),
            }
        }
        let (root, expected) = (self.root().to_owned(), changes.clone());
        if !blocking(move || are_on_disk(&root, &expected)).await? {
            return Ok(None);
        }
        let (mut objects, mut pending, mut tree) = (self.objects(), Pending::default(), before);
        for (file, after) in &changes {
            let Some(next) = pending.replace(&mut objects, tree, file, *after).await? else {
                return Ok(None);
            };
            tree = next;
        }
        let repository = Arc::clone(&self.repository);
        blocking(move || {
            let bytes = pending.0.values().map(|tree| object::cost(tree.len() as u64)).sum::<u64>();
            let _lock = repository.lock_effects()?;
            let shelf = repository.room_for_effects(bytes + object::fan_out(pending.0.len() as u64))?;
            for tree in pending.0.values() {
                object::write(&shelf, "tree", tree).map_err(|source| Error::at(&shelf, source))?;
            }
            Ok(())
        })
        .await?;
        Ok(Some(tree))
    }
}

impl Pending {
    /// Replaces the content of a file. Returns `None` if the tree does not have the file.
    async fn replace(
        &mut self,
        objects: &mut Objects,
        tree: TreeId,
        file: &Path,
        after: Content,
    ) -> Result<Option<TreeId>, Error> {
        let names: Vec<_> = file.components().map(|name| name.as_os_str().as_bytes().to_vec()).collect();
        let (mut above, mut at) = (Vec::new(), tree.0);
        for name in names {
            let entries = match self.0.get(&at) {
                Some(bytes) => object::entries(bytes).ok_or(Error::Gone { tree })?,
                None => objects.entries(Some(at), tree).await?,
            };
            let Some(place) = entries.iter().position(|entry| entry.name == name) else { return Ok(None) };
            if let Node::Tree(id) = entries[place].node {
                at = id;
            }
            above.push((entries, place));
        }
        let mut node = Node::Leaf(after.kind, after.id);
        for (depth, (mut entries, place)) in above.into_iter().rev().enumerate() {
            let is_expected = match entries[place].node {
                Node::Leaf(kind, _) => depth == 0 && kind != Kind::Link,
                Node::Tree(_) => depth > 0,
                Node::Foreign(_) => false,
            };
            if !is_expected {
                return Ok(None);
            }
            entries[place] = Entry { name: std::mem::take(&mut entries[place].name), node };
            let bytes = object::tree(entries);
            let id = object::hash("tree", &bytes);
            self.0.insert(id, bytes);
            node = Node::Tree(id);
        }
        Ok(match node {
            Node::Tree(id) => Some(TreeId(id)),
            Node::Leaf(..) | Node::Foreign(_) => None,
        })
    }
}

/// Whether the files on the disk have these contents and are small enough to be tracked.
fn are_on_disk(root: &Path, expected: &[(PathBuf, Content)]) -> Result<bool, Error> {
    let root = Root::open(root);
    for (path, content) in expected {
        let read = disk::read(&root, path).map_err(|source| Error::at(path, source))?;
        let Read::File(file, _) = read else { return Ok(false) };
        if file.bytes.len() as u64 > MAX_TRACKED_BYTES || file.content() != *content {
            return Ok(false);
        }
    }
    Ok(true)
}
