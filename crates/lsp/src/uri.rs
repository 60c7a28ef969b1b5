//! Addresses of files.

use std::path::{Path, PathBuf};

use url::Url;

/// The longest address that is read.
const MAX_BYTES: usize = 8 * 1024;

/// The address of an absolute path.
pub(crate) fn of(path: &Path) -> String {
    Url::from_file_path(path).map(String::from).unwrap_or_default()
}

/// The absolute path that an address of this machine names. Its parts `..` are resolved.
pub(crate) fn path(uri: &str) -> Option<PathBuf> {
    if uri.len() > MAX_BYTES {
        return None;
    }
    let url = Url::parse(uri).ok().filter(|url| url.scheme() == "file")?;
    let path = url.to_file_path().ok()?;
    let is_plain = path.to_str().is_some_and(|text| !text.contains(char::is_control));
    (is_plain && path.is_absolute()).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_absolute_paths() {
        let file = Path::new("/a b/ü%.rs");
        assert_eq!(path(&of(file)).as_deref(), Some(file));
        assert_eq!(path("file:///a/../../etc/x").as_deref(), Some(Path::new("/etc/x")));
        for bad in ["", "/a", "http://h/a", "file://host/a", "untitled:1", "file:///a%0Ab", "file:///%00"] {
            assert_eq!(path(bad), None, "{bad}");
        }
    }
}
