//! Reads objects: ours from files, those of the user's repository with git.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use codewright_workspace::git::Group;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::git::{Call, Input};
use crate::id::{Content, File, ObjectId, TreeId};
use crate::object::{self, Entry, MAX_OBJECT_BYTES, Node, Object};
use crate::repository::Repository;

/// The time limit for one object from git.
const OBJECT_DEADLINE: Duration = Duration::from_secs(30);
/// The limit for the line before an object: id, kind and length.
const MAX_LINE_BYTES: u64 = 128;
/// The limit of nested trees.
const MAX_DEPTH: usize = 512;
/// The empty tree, which need not be stored.
pub(crate) const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// Reads objects. Starts git for the first one that is not ours, and ends it when dropped.
pub(crate) struct Objects {
    repository: Arc<Repository>,
    conversation: Option<Conversation>,
}

struct Conversation {
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    _child: Child,
    _group: Group,
}

/// A path that differs between two trees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// The file, relative to the worktree.
    pub path: PathBuf,
    /// The file in the first tree.
    pub before: Option<Content>,
    /// The file in the second tree.
    pub after: Option<Content>,
}

impl FileChange {
    /// `added`, `deleted` or `modified`.
    pub fn status(&self) -> &'static str {
        match (&self.before, &self.after) {
            (None, _) => "added",
            (_, None) => "deleted",
            (Some(_), Some(_)) => "modified",
        }
    }
}

impl Objects {
    pub(crate) fn new(repository: Arc<Repository>) -> Self {
        Self { repository, conversation: None }
    }

    /// The differences of two trees, sorted by path.
    pub(crate) async fn differences(&mut self, from: TreeId, to: TreeId) -> Result<Vec<FileChange>, Error> {
        let mut changes = Vec::new();
        let mut left = vec![(PathBuf::new(), Some(from.0), Some(to.0))];
        while let Some((directory, before, after)) = left.pop() {
            if directory.components().count() > MAX_DEPTH {
                return Err(Error::Gone { tree: to });
            }
            let before = self.entries(before, from).await?;
            let after = self.entries(after, to).await?;
            for (name, before, after) in paired(before, after) {
                if before == after {
                    continue;
                }
                use std::os::unix::ffi::OsStrExt as _;
                let path = directory.join(OsStr::from_bytes(&name));
                let leaf = |node: Option<Node>| match node {
                    Some(Node::Leaf(kind, id)) => Some(Content { kind, id }),
                    Some(Node::Tree(_) | Node::Foreign(_)) | None => None,
                };
                let tree = |node: Option<Node>| match node {
                    Some(Node::Tree(id)) => Some(id),
                    Some(Node::Leaf(..) | Node::Foreign(_)) | None => None,
                };
                let (old, new) = (leaf(before), leaf(after));
                if old != new {
                    changes.push(FileChange { path: path.clone(), before: old, after: new });
                }
                let (old, new) = (tree(before), tree(after));
                if old != new {
                    left.push((path, old, new));
                }
            }
        }
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(changes)
    }

    /// The entry of a tree at a path.
    pub(crate) async fn node(&mut self, tree: TreeId, path: &Path) -> Result<Option<Node>, Error> {
        let mut at = tree.0;
        let mut names = path.components().peekable();
        while let Some(name) = names.next() {
            use std::os::unix::ffi::OsStrExt as _;
            let entries = self.entries(Some(at), tree).await?;
            let found = entries.into_iter().find(|entry| entry.name == name.as_os_str().as_bytes());
            match (found.map(|entry| entry.node), names.peek()) {
                (Some(Node::Tree(id)), Some(_)) => at = id,
                (node, None) => return Ok(node),
                (Some(Node::Leaf(..) | Node::Foreign(_)) | None, Some(_)) => return Ok(None),
            }
        }
        Ok(Some(Node::Tree(at)))
    }

    /// The number of parent directories of a path that the tree lacks, counted from the path.
    pub(crate) async fn missing_parents(&mut self, tree: TreeId, path: &Path) -> Result<usize, Error> {
        let mut missing = 0;
        for above in path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()) {
            if let Some(Node::Tree(_)) = self.node(tree, above).await? {
                break;
            }
            missing += 1;
        }
        Ok(missing)
    }

    /// The file with this content, which a tree contains.
    pub(crate) async fn file(&mut self, content: Content, tree: TreeId) -> Result<File, Error> {
        let object = self.get(content.id, tree).await?;
        Ok(File { kind: content.kind, bytes: object.bytes })
    }

    pub(crate) async fn entries(&mut self, id: Option<ObjectId>, tree: TreeId) -> Result<Vec<Entry>, Error> {
        let Some(id) = id.filter(|id| id.to_string() != EMPTY_TREE) else { return Ok(Vec::new()) };
        let object = self.get(id, tree).await?;
        object::entries(&object.bytes).filter(|_| object.kind == "tree").ok_or(Error::Gone { tree })
    }

    /// An object that a tree needs.
    async fn get(&mut self, id: ObjectId, tree: TreeId) -> Result<Object, Error> {
        let repository = Arc::clone(&self.repository);
        let own = tokio::task::spawn_blocking(move || match repository.object(id)? {
            Some(object) => Ok::<_, Error>(Some(object)),
            None => Ok(repository.borrowed_object(id)),
        });
        if let Some(object) = own.await.map_err(|_| Error::Cancelled)?? {
            return Ok(object);
        }
        let object = match timeout(OBJECT_DEADLINE, self.ask(id)).await {
            Ok(Ok(object)) => object,
            // Git does not answer any more. The next request starts it again.
            Ok(Err(_)) | Err(_) => {
                self.conversation = None;
                None
            }
        };
        // A repository that is not ours may contain anything under any name.
        object.filter(|object| object::hash(&object.kind, &object.bytes) == id).ok_or(Error::Gone { tree })
    }

    async fn ask(&mut self, id: ObjectId) -> std::io::Result<Option<Object>> {
        let conversation = match &mut self.conversation {
            Some(conversation) => conversation,
            None => self.conversation.insert(Conversation::start(&self.repository)?),
        };
        conversation.stdin.write_all(format!("{id}\n").as_bytes()).await?;
        let mut line = Vec::new();
        (&mut conversation.stdout).take(MAX_LINE_BYTES).read_until(b'\n', &mut line).await?;
        let line = String::from_utf8_lossy(&line);
        let mut words = line.split_whitespace().skip(1);
        let (Some(kind), Some(length)) = (words.next(), words.next()) else { return Ok(None) };
        let length = length.parse::<u64>().ok().filter(|length| *length <= MAX_OBJECT_BYTES);
        let length = length.ok_or(std::io::ErrorKind::FileTooLarge)?;
        let mut bytes = Vec::new();
        (&mut conversation.stdout).take(length + 1).read_to_end(&mut bytes).await?;
        bytes.pop();
        Ok(Some(Object { kind: kind.to_owned(), bytes }))
    }
}

impl Conversation {
    fn start(repository: &Repository) -> std::io::Result<Self> {
        let mut directories = repository.all_objects();
        directories.extend(repository.borrowed());
        let objects = repository.options.directory.join("objects");
        let args = vec![OsStr::new("cat-file"), OsStr::new("--batch")];
        let input = Input::Bytes(Vec::new(), None);
        let call =
            Call { args, objects: &objects, alternates: &directories, input, deadline: OBJECT_DEADLINE };
        let (mut child, group) = repository.git.converse(call).map_err(std::io::Error::other)?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (stdin, stdout) = pipes.ok_or(std::io::ErrorKind::BrokenPipe)?;
        Ok(Self { stdin, stdout: BufReader::new(stdout), _child: child, _group: group })
    }
}

/// The differences of two trees as `git diff` prints them.
pub(crate) async fn diff_text(
    repository: &Repository,
    from: TreeId,
    to: TreeId,
    cancel: &CancellationToken,
) -> Result<String, Error> {
    let mut alternates = repository.all_objects();
    alternates.extend(repository.borrowed());
    let objects = repository.options.directory.join("objects");
    let (from, to) = (from.to_string(), to.to_string());
    let args = ["diff", "--no-ext-diff", "--no-textconv", "--no-renames", "--no-color", &from, &to, "--"];
    let call = Call {
        args: args.iter().map(OsStr::new).collect(),
        objects: &objects,
        alternates: &alternates,
        input: Input::Lock(None),
        deadline: OBJECT_DEADLINE,
    };
    let printed = repository.git.run(call, cancel).await?;
    Ok(String::from_utf8_lossy(&printed).trim_end().to_owned())
}

/// Pairs the entries of two trees by name.
fn paired(before: Vec<Entry>, after: Vec<Entry>) -> Vec<(Vec<u8>, Option<Node>, Option<Node>)> {
    let mut all = std::collections::BTreeMap::new();
    for entry in before {
        all.insert(entry.name, (Some(entry.node), None));
    }
    for entry in after {
        all.entry(entry.name).or_insert((None, None)).1 = Some(entry.node);
    }
    all.into_iter().map(|(name, (before, after))| (name, before, after)).collect()
}
