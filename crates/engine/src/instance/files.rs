//! Browsing and searching the files of a directory. Paths outside the directory and its worktree are refused, also if a
//! link leads there.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use codewright_proto::{ContentKind, FileContent, FileKind, FileNode, Submatch, Text, TextMatch};
use codewright_workspace as workspace;
use tokio_util::sync::CancellationToken;
use workspace::{Kind, Likeness, Workspace};

use crate::permission::reading::KeptFiles;
use crate::{Error, Instance};

/// The largest file whose content is returned.
const MAX_CONTENT_BYTES: u64 = 20 * 1024 * 1024;
/// The number of files that a list returns.
const MAX_FILES: usize = 100_000;
/// The deadline of one search.
const SEARCH_DEADLINE: Duration = Duration::from_secs(20);
/// The number of bytes that decide whether a file is binary.
const SAMPLE_BYTES: usize = 8192;

impl Instance {
    /// Returns the entries of a directory, directories first.
    pub async fn list_files(&self, path: &str) -> Result<Vec<FileNode>, Error> {
        let at = self.inside(path)?;
        let entries = workspace::entries(at.clone(), &CancellationToken::new()).await.map_err(file_error)?;
        let root = self.directory.as_path();
        Ok(entries
            .into_iter()
            .map(|entry| {
                let absolute = at.place.path.join(&entry.name);
                let mut path = workspace::relative(root, &absolute);
                if entry.is_directory {
                    path.push('/');
                }
                FileNode {
                    name: entry.name,
                    path,
                    absolute: absolute.to_string_lossy().into_owned(),
                    kind: if entry.is_directory { FileKind::Directory } else { FileKind::File },
                    ignored: entry.is_ignored,
                }
            })
            .collect())
    }

    /// Returns the path of a file that is named relative to the root of the repository.
    #[must_use]
    pub fn in_worktree(&self, path: &str) -> std::path::PathBuf {
        self.worktree.root.join(path)
    }

    /// Returns the content of a file. A missing file has empty content.
    pub async fn read_file(&self, path: &str, kept: &KeptFiles) -> Result<FileContent, Error> {
        let Some(bytes) = self.file_bytes(path, kept).await? else {
            return Ok(text(String::new()));
        };
        let kind = workspace::sniff(&bytes[..bytes.len().min(SAMPLE_BYTES)]);
        let mime = match kind {
            Kind::Text => match String::from_utf8(bytes) {
                Ok(written) => return Ok(text(written.trim().to_owned())),
                Err(other) => return Ok(binary(other.as_bytes(), "application/octet-stream")),
            },
            Kind::Image(mime) => mime,
            Kind::Pdf => "application/pdf",
            Kind::Binary => "application/octet-stream",
        };
        Ok(binary(&bytes, mime))
    }

    /// Returns the content of a file in base64; `None` if it is missing.
    pub async fn file_base64(&self, path: &str) -> Result<Option<FileContent>, Error> {
        let Some(bytes) = self.file_bytes(path, &KeptFiles::none()).await? else { return Ok(None) };
        let mime = match workspace::sniff(&bytes[..bytes.len().min(SAMPLE_BYTES)]) {
            Kind::Text => "text/plain",
            Kind::Image(mime) => mime,
            Kind::Pdf => "application/pdf",
            Kind::Binary => "application/octet-stream",
        };
        Ok(Some(binary(&bytes, mime)))
    }

    /// Returns the bytes of a file; `None` if it is missing.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or is kept from the reader.
    pub async fn file_bytes(&self, path: &str, kept: &KeptFiles) -> Result<Option<Vec<u8>>, Error> {
        let at = self.inside(path)?;
        if kept.has(&at.place.real) || kept.has(&at.place.path) {
            return Err(Error::invalid(format!("the rules of this server do not let users read `{path}`")));
        }
        let read = blocking(move || at.read(MAX_CONTENT_BYTES)).await;
        match read {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(file_error(error)),
        }
    }

    /// Returns the files and directories whose paths match a query, best match first.
    pub async fn find_files(
        &self,
        query: &str,
        kind: Option<FileKind>,
        limit: usize,
    ) -> Result<Vec<String>, Error> {
        let names = self.names().await?;
        let wanted = names.iter().map(String::as_str).filter(|name| match kind {
            None => true,
            Some(FileKind::Directory) => name.ends_with('/'),
            Some(FileKind::File) => !name.ends_with('/'),
        });
        Ok(workspace::closest(wanted, query, limit).into_iter().map(str::to_owned).collect())
    }

    /// Returns the paths of files that match one of the globs (any file without globs) and contain the letters of a
    /// query. They are sorted by path without a query, and by quality of the match with one.
    pub async fn files_matching(
        &self,
        globs: Vec<String>,
        query: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, Error> {
        let search = workspace::Glob {
            root: self.root()?,
            patterns: globs.into(),
            limit: if query.is_some() { MAX_FILES } else { limit.min(MAX_FILES) },
            within: SEARCH_DEADLINE,
            // The caller is the user, whose own files need no permission.
            judge: workspace::Judge::none(),
        };
        let found = workspace::glob(search, &CancellationToken::new()).await.map_err(file_error)?;
        let names = found.paths.iter().map(|path| workspace::relative(&self.directory, path));
        let names: Vec<_> = names.collect();
        let Some(query) = query else { return Ok(names) };
        let closest = workspace::closest(names.iter().map(String::as_str), query, limit);
        Ok(closest.into_iter().map(str::to_owned).collect())
    }

    /// Returns the lines that match a regular expression, in files that match one of the globs, or in all files without
    /// globs.
    pub async fn find_text(
        &self,
        pattern: &str,
        globs: Vec<String>,
        limit: usize,
        kept: &KeptFiles,
    ) -> Result<Vec<TextMatch>, Error> {
        let query = workspace::Grep {
            root: self.root()?,
            pattern: pattern.to_owned(),
            include: globs.into(),
            limit,
            within: SEARCH_DEADLINE,
            // The caller is the user, whose own files need no permission.
            judge: workspace::Judge::none(),
        };
        let found = workspace::grep(query, &CancellationToken::new()).await.map_err(file_error)?;
        let mut matches = Vec::new();
        for (path, lines) in found.files {
            if kept.has(&path) {
                continue;
            }
            let path = workspace::relative(&self.directory, &path);
            matches.extend(lines.into_iter().map(|line| {
                let spans = workspace::spans(pattern, &line.text);
                let submatch = |span: std::ops::Range<usize>| Submatch {
                    matched: Text { text: line.text.get(span.clone()).unwrap_or_default().to_owned() },
                    start: span.start,
                    end: span.end,
                };
                TextMatch {
                    path: Text { text: path.clone() },
                    line_number: line.number,
                    absolute_offset: line.offset,
                    submatches: spans.into_iter().map(submatch).collect(),
                    lines: Text { text: line.text },
                }
            }));
        }
        Ok(matches)
    }

    async fn names(&self) -> Result<Arc<Vec<String>>, Error> {
        if let Some(names) = self.names.current() {
            return Ok(names);
        }
        let never = CancellationToken::new();
        let walked = workspace::names(self.root()?, SEARCH_DEADLINE, &never).await;
        let names = Arc::new(walked.map_err(file_error)?);
        self.names.replace(&names);
        Ok(names)
    }

    /// Resolves a path; fails if it is outside.
    fn inside(&self, path: &str) -> Result<workspace::Held, Error> {
        if path.contains('\0') {
            return Err(Error::invalid("a path holds no zero byte"));
        }
        let root = Workspace::fixed(&self.directory, &self.worktree.root);
        let at = root.hold_spelled(Path::new(path), Likeness::Compatible).map_err(file_error)?;
        if at.place.inside {
            return Ok(at);
        }
        Err(Error::invalid(format!("`{path}` lies outside `{}`", self.directory.display())))
    }

    /// The directory.
    fn root(&self) -> Result<workspace::Held, Error> {
        self.inside(".")
    }
}

fn text(content: String) -> FileContent {
    FileContent { kind: ContentKind::Text, content, encoding: None, mime_type: None }
}

fn binary(bytes: &[u8], mime: &str) -> FileContent {
    FileContent {
        kind: ContentKind::Binary,
        content: BASE64_STANDARD.encode(bytes),
        encoding: Some("base64".to_owned()),
        mime_type: Some(mime.to_owned()),
    }
}

/// Converts an error of the file system. The caller named the path, so the error names it too.
fn file_error(error: workspace::Error) -> Error {
    Error::invalid(error.to_string())
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, workspace::Error> + Send + 'static,
) -> Result<T, workspace::Error> {
    // The thread pool drops a task only when the runtime ends.
    tokio::task::spawn_blocking(work).await.unwrap_or(Err(workspace::Error::Cancelled))
}
