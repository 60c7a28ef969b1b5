//! Git objects as files, compatible with git.
//!
//! An object is one compressed file. It gets its name when it is complete, so a killed process leaves at most
//! a `tmp_obj_` file. Reading verifies the name and is bounded, even if the file is damaged.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use codewright_workspace::make_private_directory;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use nix::fcntl::OFlag;
use ring::digest;

use crate::id::{Kind, ObjectId};

/// The prefix of temporary files of objects. Git uses the same one.
pub(crate) const TEMPORARY: &str = "tmp_obj_";
/// The limit for the size of an object.
pub(crate) const MAX_OBJECT_BYTES: u64 = 64 * 1024 * 1024;
/// The limit for the header of an object: kind, space, length and zero.
const MAX_HEADER_BYTES: u64 = 32;
/// The least disk space of a file.
const BLOCK_BYTES: u64 = 4096;
/// The number of directories that contain objects.
const DIRECTORIES: u64 = 256;
/// Fast, because objects are written once and rarely read.
const LEVEL: Compression = Compression::fast();
/// The mode of an object's file: as git sets it, for its owner only.
const OBJECT_MODE: u32 = 0o400;

/// An object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Object {
    /// `blob`, `tree` or `commit`.
    pub(crate) kind: String,
    /// Its content.
    pub(crate) bytes: Vec<u8>,
}

/// The id of an object.
pub(crate) fn hash(kind: &str, bytes: &[u8]) -> ObjectId {
    let mut context = digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY);
    context.update(header(kind, bytes.len()).as_bytes());
    context.update(bytes);
    let mut id = [0; 20];
    id.copy_from_slice(context.finish().as_ref());
    ObjectId(id)
}

/// The limit for the disk space of an object of this size.
pub(crate) fn cost(bytes: u64) -> u64 {
    // Stored blocks of the compression add 5 bytes for each 16 KiB, and there is a header.
    (bytes + bytes / 1024 + 128).next_multiple_of(BLOCK_BYTES)
}

/// The limit for the disk space of the directories of this many objects.
pub(crate) fn fan_out(objects: u64) -> u64 {
    objects.min(DIRECTORIES) * BLOCK_BYTES
}

/// The path of an object in a directory of objects.
pub(crate) fn place(objects: &Path, id: ObjectId) -> PathBuf {
    let name = id.to_string();
    let (directory, file) = name.split_at(2);
    objects.join(directory).join(file)
}

/// Writes an object, unless it exists.
pub(crate) fn write(objects: &Path, kind: &str, bytes: &[u8]) -> io::Result<ObjectId> {
    let id = hash(kind, bytes);
    let path = place(objects, id);
    // A power failure can leave an empty file. It is written again.
    if fs::metadata(&path).is_ok_and(|metadata| metadata.len() > 0) {
        return Ok(id);
    }
    let mut file = tempfile::Builder::new()
        .prefix(TEMPORARY)
        .permissions(fs::Permissions::from_mode(OBJECT_MODE))
        .tempfile_in(objects)?;
    let mut encoder = ZlibEncoder::new(Vec::with_capacity(bytes.len() / 2), LEVEL);
    encoder.write_all(header(kind, bytes.len()).as_bytes())?;
    encoder.write_all(bytes)?;
    file.write_all(&encoder.finish()?)?;
    if let Some(directory) = path.parent()
        && let Err(error) = make_private_directory(directory)
        && error.kind() != io::ErrorKind::AlreadyExists
    {
        return Err(error);
    }
    file.persist(&path).map_err(|error| error.error)?;
    Ok(id)
}

/// Reads an object. Returns `None` if it is missing or damaged.
pub(crate) fn read(objects: &Path, id: ObjectId) -> io::Result<Option<Object>> {
    // A pipe in place of the file must not block, because the directory may be the user's.
    let flags = (OFlag::O_NONBLOCK | OFlag::O_NOFOLLOW).bits();
    let opened = fs::OpenOptions::new().read(true).custom_flags(flags).open(place(objects, id));
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut whole = Vec::new();
    let limit = MAX_OBJECT_BYTES + MAX_HEADER_BYTES;
    if ZlibDecoder::new(file).take(limit + 1).read_to_end(&mut whole).is_err() {
        return Ok(None);
    }
    Ok(parse(&whole).filter(|object| hash(&object.kind, &object.bytes) == id))
}

fn parse(whole: &[u8]) -> Option<Object> {
    let end = whole.iter().take(MAX_HEADER_BYTES as usize).position(|byte| *byte == 0)?;
    let (kind, _) = std::str::from_utf8(&whole[..end]).ok()?.split_once(' ')?;
    Some(Object { kind: kind.to_owned(), bytes: whole[end + 1..].to_vec() })
}

fn header(kind: &str, bytes: usize) -> String {
    format!("{kind} {bytes}\0")
}

/// One entry of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The name, without slashes.
    pub(crate) name: Vec<u8>,
    /// The kind and id.
    pub(crate) node: Node,
}

/// The kind and id of an entry of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Node {
    /// A directory.
    Tree(ObjectId),
    /// A file or link.
    Leaf(Kind, ObjectId),
    /// Another repository (a submodule).
    Foreign(ObjectId),
}

/// Serializes a tree, in git's order.
pub(crate) fn tree(mut entries: Vec<Entry>) -> Vec<u8> {
    // Directories are sorted as if their names ended with a slash.
    let key = |entry: &Entry| {
        let mut key = entry.name.clone();
        key.extend(matches!(entry.node, Node::Tree(_)).then_some(b'/'));
        key
    };
    entries.sort_by_cached_key(key);
    let mut bytes = Vec::new();
    for entry in entries {
        let (mode, id) = match entry.node {
            Node::Tree(id) => ("40000", id),
            Node::Leaf(kind, id) => (kind.mode(), id),
            Node::Foreign(id) => ("160000", id),
        };
        bytes.extend_from_slice(mode.as_bytes());
        bytes.push(b' ');
        bytes.extend_from_slice(&entry.name);
        bytes.push(0);
        bytes.extend_from_slice(&id.0);
    }
    bytes
}

/// Parses a tree. Returns `None` if it is invalid.
pub(crate) fn entries(mut bytes: &[u8]) -> Option<Vec<Entry>> {
    let mut entries = Vec::new();
    while !bytes.is_empty() {
        let space = bytes.iter().position(|byte| *byte == b' ')?;
        let zero = bytes.iter().position(|byte| *byte == 0)?;
        let name = bytes.get(space + 1..zero)?.to_vec();
        let id = ObjectId(bytes.get(zero + 1..zero + 21)?.try_into().ok()?);
        let mode = &bytes[..space];
        let node = match Kind::of_mode(mode) {
            Some(kind) => Node::Leaf(kind, id),
            None if mode == b"40000" => Node::Tree(id),
            None => Node::Foreign(id),
        };
        entries.push(Entry { name, node });
        bytes = &bytes[zero + 21..];
    }
    Some(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_objects_are_read_and_damaged_ones_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let id = write(folder.path(), "blob", b"hello").unwrap();
        assert_eq!(write(folder.path(), "blob", b"hello").unwrap(), id);
        let object = read(folder.path(), id).unwrap().unwrap();
        assert_eq!((object.kind.as_str(), object.bytes.as_slice()), ("blob", b"hello".as_slice()));
        let path = place(folder.path(), id);
        fs::remove_file(&path).unwrap();
        assert_eq!(read(folder.path(), id).unwrap(), None);
        for damaged in [b"".as_slice(), b"xyz"] {
            fs::write(&path, damaged).unwrap();
            assert_eq!(read(folder.path(), id).unwrap(), None);
        }
        fs::write(&path, b"").unwrap();
        write(folder.path(), "blob", b"hello").unwrap();
        assert_eq!(read(folder.path(), id).unwrap().unwrap().bytes, b"hello");
    }

    #[test]
    fn a_tree_is_sorted_as_git_sorts_it() {
        let id = hash("blob", b"");
        let leaf = |name: &str| Entry { name: name.into(), node: Node::Leaf(Kind::File, id) };
        let directory = Entry { name: b"a".to_vec(), node: Node::Tree(id) };
        let bytes = tree(vec![leaf("a0"), directory, leaf("a.b")]);
        let names: Vec<_> = entries(&bytes).unwrap().into_iter().map(|entry| entry.name).collect();
        assert_eq!(names, [b"a.b".to_vec(), b"a".to_vec(), b"a0".to_vec()]);
        assert_eq!(hash("tree", b"").to_string(), "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
        assert_eq!(entries(&bytes[..bytes.len() - 1]), None);
    }
}
