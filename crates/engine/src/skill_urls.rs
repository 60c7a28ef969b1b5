//! Skills that are downloaded from the addresses in `skills.urls`.
//!
//! An address has an `index.json` with a list of skills and their files: `{"skills": [{"name", "files"}]}`. The files
//! are copied into the cache, and only there. A copy is valid for an hour, in this and later processes. After that the
//! address is requested again; if that fails, the copy is used with a warning.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use codewright_config::Dirs;
use codewright_llm::Client;
use codewright_proto::Clock;
use codewright_workspace::make_private_directory;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};
use url::{Host, Url};

/// How long a copy is valid.
const FRESH: Duration = Duration::from_secs(60 * 60);
/// The longest delay of opening a directory by all addresses together.
const WAIT: Duration = Duration::from_secs(8);
/// The number of addresses.
const MAX_ADDRESSES: usize = 8;
/// The number of skills of an address.
const MAX_SKILLS: usize = 50;
/// The number of files of a skill.
const MAX_FILES: usize = 64;
/// The size of an index, and of a file.
const MAX_FILE_BYTES: usize = 256 * 1024;
/// The size of all files of an address.
const MAX_BYTES: usize = 8 * 1024 * 1024;
/// The length of the name of a skill, and of a copy.
const MAX_NAME_CHARS: usize = 64;
const MAX_COPY_CHARS: usize = 120;
/// The directory of the copies, in the cache.
const COPIES: &str = "skills";
/// The file that exists in a complete copy. Its age is that of the copy.
const STAMP: &str = ".complete";

#[derive(Deserialize)]
struct Index {
    skills: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    name: String,
    files: Vec<String>,
}

/// The services that downloads use.
#[derive(Clone, Copy)]
pub(crate) struct Downloads<'a> {
    pub(crate) llm: &'a Client,
    pub(crate) dirs: &'a Dirs,
    pub(crate) clock: &'a Clock,
}

impl Downloads<'_> {
    /// Returns the directories with the skills of a configuration's addresses, and warnings.
    pub(crate) async fn of(self, config: &Value) -> (Vec<PathBuf>, Vec<String>) {
        let urls = config.pointer("/skills/urls").and_then(Value::as_array).into_iter().flatten();
        let urls: Vec<&str> = urls.filter_map(Value::as_str).collect();
        let until = Instant::now() + WAIT;
        let (mut folders, mut warnings) = (Vec::new(), Vec::new());
        if urls.len() > MAX_ADDRESSES {
            warnings.push(format!(
                "`skills.urls` has more than {MAX_ADDRESSES} addresses; the others are ignored"
            ));
        }
        for url in urls.into_iter().take(MAX_ADDRESSES) {
            let folder = self.folder(url);
            if !self.is_fresh(&folder) {
                let downloading = timeout_at(until, self.download(url, &folder)).await;
                let done = downloading
                    .unwrap_or_else(|_| Err(format!("it did not answer within {} seconds", WAIT.as_secs())));
                if let Err(reason) = done {
                    let instead = if folder.is_dir() { "an older copy is used" } else { "they are left out" };
                    warnings.push(format!("the skills of `{url}` cannot be downloaded, {instead}: {reason}"));
                }
            }
            if folder.is_dir() {
                folders.push(folder);
            }
        }
        (folders, warnings)
    }

    /// The copy of an address.
    fn folder(self, url: &str) -> PathBuf {
        let safe = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        let name: String = url.chars().map(safe).take(MAX_COPY_CHARS).collect();
        self.dirs.cache.join(COPIES).join(name)
    }

    fn is_fresh(self, folder: &Path) -> bool {
        let written = fs::metadata(folder.join(STAMP)).and_then(|stamp| stamp.modified()).ok();
        let written = written.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let now = Duration::from_millis(self.clock.now_ms());
        written.is_some_and(|written| now.saturating_sub(written) < FRESH)
    }

    /// Replaces the copy of an address.
    async fn download(self, url: &str, folder: &Path) -> Result<(), String> {
        let url = address(url).ok_or("it must begin with https:// and contain no password or query")?;
        let index = self.get(&format!("{url}/index.json")).await?;
        let index: Index = serde_json::from_str(&index).map_err(|error| format!("`index.json`: {error}"))?;
        let mut files = Vec::new();
        let mut bytes = 0;
        for listed in index.skills.iter().take(MAX_SKILLS) {
            if !is_name(&listed.name) {
                return Err(format!("`index.json`: `{}` cannot name a skill", listed.name.escape_debug()));
            }
            for file in listed.files.iter().take(MAX_FILES) {
                if !is_below(Path::new(file)) {
                    let file = file.escape_debug();
                    return Err(format!("`index.json`: the file `{file}` is outside of the skill"));
                }
                let text = self.get(&format!("{url}/{}/{file}", listed.name)).await?;
                bytes += text.len();
                if bytes > MAX_BYTES {
                    return Err(format!("the skills are larger than {} MiB", MAX_BYTES / (1024 * 1024)));
                }
                files.push((Path::new(&listed.name).join(file), text));
            }
        }
        replace(folder, &files).map_err(|error| format!("cannot write `{}`: {error}", folder.display()))
    }

    async fn get(self, url: &str) -> Result<String, String> {
        let got = codewright_llm::fetch(self.llm, url, MAX_FILE_BYTES, WAIT).await;
        got.map_err(|error| format!("`{url}`: {error}"))
    }
}

/// Returns an address without a slash at its end, if it is secure or on this machine.
fn address(written: &str) -> Option<String> {
    let url = Url::parse(written.trim()).ok()?;
    let is_local = match url.host()? {
        Host::Domain(name) => name == "localhost",
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    };
    let is_secure = url.scheme() == "https" || (url.scheme() == "http" && is_local);
    let is_plain = url.username().is_empty() && url.password().is_none();
    let is_place = url.query().is_none() && url.fragment().is_none();
    (is_secure && is_plain && is_place).then(|| url.as_str().trim_end_matches('/').to_owned())
}

/// Replaces a directory by one with these files. A reader sees the old files or all new ones.
fn replace(folder: &Path, files: &[(PathBuf, String)]) -> std::io::Result<()> {
    let new = folder.with_extension(std::process::id().to_string());
    if new.exists() {
        fs::remove_dir_all(&new)?;
    }
    make_private_directory(&new)?;
    let written = files.iter().try_for_each(|(path, text)| {
        let path = new.join(path);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, text)
    });
    let replaced = written.and_then(|()| fs::write(new.join(STAMP), "")).and_then(|()| {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::rename(&new, folder)
    });
    if replaced.is_err() {
        // The next download tries again.
        drop(fs::remove_dir_all(&new));
    }
    replaced
}

fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !name.is_empty() && name.len() <= MAX_NAME_CHARS && !name.starts_with('.') && name.chars().all(is_plain)
}

/// Whether a path of a file stays below its directory.
fn is_below(path: &Path) -> bool {
    let mut parts = path.components();
    let text = path.to_string_lossy();
    parts.next().is_some()
        && path.components().all(|part| matches!(part, Component::Normal(_)))
        && !text.contains(['\\', '?', '#', '%', '\0'])
        && !text.ends_with('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_stay_in_their_skill() {
        for (path, expected) in [
            ("SKILL.md", true),
            ("scripts/a.sh", true),
            ("../SKILL.md", false),
            ("a/../../b", false),
            ("/etc/passwd", false),
            ("a\\..\\b", false),
            ("a%2f..", false),
            ("a?b", false),
            ("a/", false),
            ("./a", false),
            ("", false),
        ] {
            assert_eq!(is_below(Path::new(path)), expected, "{path}");
        }
        for (name, expected) in [("a-b", true), ("..", false), (".a", false), ("a/b", false), ("", false)] {
            assert_eq!(is_name(name), expected, "{name}");
        }
    }

    #[test]
    fn addresses_are_secure_or_local() {
        for (written, expected) in [
            ("https://a.example/skills/", Some("https://a.example/skills")),
            ("http://127.0.0.2:80/x", Some("http://127.0.0.2/x")),
            ("http://[::1]:8080/", Some("http://[::1]:8080")),
            ("http://a.example/", None),
            ("https://user:key@a.example/", None),
            ("https://a.example/?key=x", None),
            ("file:///etc", None),
            ("skills", None),
        ] {
            assert_eq!(address(written).as_deref(), expected, "{written}");
        }
    }

    #[test]
    fn a_copy_is_replaced_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("https___a_b");
        let files = |name: &str| [(PathBuf::from(format!("{name}/SKILL.md")), name.to_owned())];
        replace(&copy, &files("one")).unwrap();
        replace(&copy, &files("two")).unwrap();
        assert!(!copy.join("one").exists());
        assert_eq!(fs::read_to_string(copy.join("two/SKILL.md")).unwrap(), "two");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
