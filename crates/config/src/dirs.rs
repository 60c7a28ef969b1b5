//! The directories that the program uses.
//!
//! OpenCode's directories (`config`, `opencode_data`) are only read, except by `db view`; Codewright writes to its own. This
//! module creates no directories.

use std::path::{Path, PathBuf};

use crate::{Env, Error, env};

const OWN: &str = "codewright";
const ORIGINAL: &str = "opencode";

/// The directories of one user. All paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dirs {
    /// The user's home.
    pub home: PathBuf,
    /// OpenCode's global configuration; read only.
    pub config: PathBuf,
    /// Codewright's global configuration.
    pub own_config: PathBuf,
    /// Sessions, credentials and tool outputs: data that must not be lost.
    pub data: PathBuf,
    /// Locks and logs.
    pub state: PathBuf,
    /// Data that can be downloaded again.
    pub cache: PathBuf,
    /// OpenCode's data, for its `auth.json`; read only.
    pub opencode_data: PathBuf,
    /// Scratch space that every agent may use.
    pub tmp: PathBuf,
}

impl Dirs {
    /// Determines every directory from `HOME` and the XDG variables.
    ///
    /// Relative values are ignored, as the XDG specification requires.
    pub fn new(env: &Env) -> Result<Self, Error> {
        let home = absolute(env, env::HOME).ok_or(Error::Home)?;
        let base = |name: &str, fallback: &str| absolute(env, name).unwrap_or_else(|| home.join(fallback));
        let config = base(env::XDG_CONFIG_HOME, ".config");
        let data = base(env::XDG_DATA_HOME, ".local/share");
        Ok(Self {
            config: config.join(ORIGINAL),
            own_config: config.join(OWN),
            data: data.join(OWN),
            state: base(env::XDG_STATE_HOME, ".local/state").join(OWN),
            cache: base(env::XDG_CACHE_HOME, ".cache").join(OWN),
            opencode_data: data.join(ORIGINAL),
            tmp: absolute(env, env::TMPDIR).unwrap_or_else(|| PathBuf::from("/tmp")).join(ORIGINAL),
            home,
        })
    }

    /// The directory of the full texts of shortened tool outputs.
    #[must_use]
    pub fn tool_output(&self) -> PathBuf {
        self.data.join("tool-output")
    }

    /// The directory of the full texts of tool outputs in the sessions of a user.
    #[must_use]
    pub fn tool_output_of(&self, user: Option<&str>) -> PathBuf {
        user.map_or_else(|| self.tool_output(), |user| Self::of_user(self.tool_output(), user))
    }

    /// Returns the part of a directory that belongs to one user of a server with users.
    #[must_use]
    pub fn of_user(directory: PathBuf, user: &str) -> PathBuf {
        // Names of users are plain, but a stored one could come from elsewhere.
        let plain =
            |char: char| if char.is_ascii_alphanumeric() || "._@+-".contains(char) { char } else { '_' };
        directory.join(format!("user-{}", user.chars().map(plain).collect::<String>()))
    }

    /// The directory of plans outside a repository.
    #[must_use]
    pub fn plans(&self) -> PathBuf {
        self.data.join("plans")
    }
}

fn absolute(env: &Env, name: &str) -> Option<PathBuf> {
    let path = Path::new(env.filled(name)?);
    path.is_absolute().then(|| path.components().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_xdg_variables_the_directories_are_in_the_home() {
        let dirs = Dirs::new(&Env::from_pairs([("HOME", "/home/ann/")])).unwrap();
        assert_eq!(dirs.home, Path::new("/home/ann"));
        assert_eq!(dirs.config, Path::new("/home/ann/.config/opencode"));
        assert_eq!(dirs.own_config, Path::new("/home/ann/.config/codewright"));
        assert_eq!(dirs.data, Path::new("/home/ann/.local/share/codewright"));
        assert_eq!(dirs.state, Path::new("/home/ann/.local/state/codewright"));
        assert_eq!(dirs.cache, Path::new("/home/ann/.cache/codewright"));
        assert_eq!(dirs.opencode_data, Path::new("/home/ann/.local/share/opencode"));
        assert_eq!(dirs.tmp, Path::new("/tmp/opencode"));
    }

    #[test]
    fn absolute_xdg_variables_are_used() {
        let env = Env::from_pairs([("HOME", "/h"), ("XDG_DATA_HOME", "/d"), ("XDG_CACHE_HOME", "cache")]);
        let dirs = Dirs::new(&env).unwrap();
        assert_eq!(dirs.tool_output(), Path::new("/d/codewright/tool-output"));
        assert_eq!(dirs.cache, Path::new("/h/.cache/codewright"));
    }

    #[test]
    fn a_missing_home_is_an_error() {
        for pairs in [vec![], vec![("HOME", "")], vec![("HOME", "relative")]] {
            assert!(matches!(Dirs::new(&Env::from_pairs(pairs)), Err(Error::Home)));
        }
    }
}
