//! The profile for `sandbox-exec` of macOS.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;

use crate::access::{Access, rules};
use crate::{Error, Network, Sandbox};

/// The program that applies a profile.
pub(crate) const PROGRAM: &str = "/usr/bin/sandbox-exec";

/// The arguments before the command.
///
/// # Errors
///
/// Fails if a path of the sandbox cannot be resolved or is not valid Unicode.
pub(crate) fn arguments(sandbox: &Sandbox) -> Result<Vec<OsString>, Error> {
    Ok(vec!["-p".into(), profile(sandbox)?.into()])
}

/// The text of the profile. Later rules override earlier ones.
fn profile(sandbox: &Sandbox) -> Result<String, Error> {
    let mut text = String::from(
        "(version 1)\n(deny default)\n(allow process*)\n(allow signal (target same-sandbox))\n\
         (allow process-info* (target same-sandbox))\n(allow sysctl-read)\n(allow file-read*)\n\
         (allow file-write* (literal \"/dev/null\") (literal \"/dev/zero\") (literal \"/dev/tty\") \
         (regex #\"^/dev/fd/\") (regex #\"^/dev/ttys\"))\n(allow file-ioctl (regex #\"^/dev/tty\"))\n\
         (allow pseudo-tty)\n(allow ipc-posix-sem)\n(allow mach-lookup \
         (global-name \"com.apple.system.opendirectoryd.libinfo\") (global-name \"com.apple.SecurityServer\"))\n",
    );
    line(&mut text, "allow file-write*", &sandbox.temporary)?;
    for rule in rules(sandbox)? {
        match rule.access {
            Access::Write | Access::Pin => {
                line(&mut text, "allow file-read*", &rule.path)?;
                line(&mut text, "allow file-write*", &rule.path)?;
            }
            Access::Show => line(&mut text, "allow file-read*", &rule.path)?,
            Access::Protect => line(&mut text, "deny file-write*", &rule.path)?,
            Access::Mask | Access::Hide => {
                line(&mut text, "deny file-read*", &rule.path)?;
                line(&mut text, "deny file-write*", &rule.path)?;
            }
        }
    }
    for guarded in &sandbox.guarded {
        for pattern in &guarded.patterns {
            if !pattern.contains('*') && !guarded.except.contains(pattern) {
                line(&mut text, "deny file-write*", &guarded.directory.join(pattern))?;
            }
        }
    }
    match &sandbox.network {
        Network::Off => {}
        Network::Proxy(socket) => {
            let socket = quoted(socket)?;
            writeln!(text, "(allow network-outbound (literal {socket}))").map_err(format_error)?;
        }
        Network::Open => text.push_str("(allow network*)\n"),
    }
    Ok(text)
}

fn line(text: &mut String, rule: &str, path: &Path) -> Result<(), Error> {
    writeln!(text, "({rule} (subpath {}))", quoted(path)?).map_err(format_error)
}

/// The path as a string of the profile language.
fn quoted(path: &Path) -> Result<String, Error> {
    let invalid = || Error::Path {
        path: path.to_owned(),
        source: std::io::Error::other("it is not valid Unicode or contains a control character"),
    };
    let text = path.to_str().ok_or_else(invalid)?;
    if text.chars().any(char::is_control) {
        return Err(invalid());
    }
    Ok(format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
}

fn format_error(error: std::fmt::Error) -> Error {
    Error::Kernel(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::create_dir;

    #[test]
    fn a_profile_lists_each_rule_and_quotes_paths() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("a \"b\\");
        create_dir(&root).unwrap();
        for name in ["secret", ".git"] {
            create_dir(root.join(name)).unwrap();
        }
        let sandbox = Sandbox {
            write: vec![root.clone()],
            protect: vec![root.join(".git")],
            guarded: vec![crate::Guarded {
                directory: root.clone(),
                patterns: vec![".claude".to_owned()],
                except: Vec::new(),
            }],
            below: crate::Below::default(),
            hide: vec![root.join("secret")],
            show: Vec::new(),
            temporary: root.clone(),
            mask: Vec::new(),
            blank: None,
            opened: Vec::new(),
            network: Network::Off,
        };
        let text = profile(&sandbox).unwrap();
        let name = root.to_str().unwrap().replace('\\', "\\\\").replace('"', "\\\"");
        for expected in [
            format!("(allow file-write* (subpath \"{name}\"))"),
            format!("(deny file-write* (subpath \"{name}/.git\"))"),
            format!("(deny file-write* (subpath \"{name}/.claude\"))"),
            format!("(deny file-read* (subpath \"{name}/secret\"))"),
        ] {
            assert!(text.contains(&expected), "{expected} is missing in {text}");
        }
        assert!(!text.contains("network"));
        let path = Path::new("/a\n(allow default)");
        assert!(quoted(path).is_err());
    }
}
