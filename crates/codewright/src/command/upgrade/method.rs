//! How a program without a receipt was installed, by its path, and the command that upgrades it.

use std::path::Path;

/// A way of installation.
struct Method {
    name: &'static str,
    /// Whether a path with this text was installed in this way. Separators are `/`.
    paths: &'static [&'static str],
    /// The command of the newest version.
    newest: &'static str,
    /// What a version is appended to. Empty if the tool installs no older versions.
    version: &'static str,
}

/// The first row that fits decides.
const METHODS: &[Method] = &[
    Method {
        name: "npm",
        paths: &["/lib/node_modules/", "/npm/node_modules/"],
        newest: "npm install -g codewright@latest",
        version: "npm install -g codewright@",
    },
    Method {
        name: "pnpm",
        paths: &["/pnpm/", "/.pnpm/"],
        newest: "pnpm add -g codewright@latest",
        version: "pnpm add -g codewright@",
    },
    Method {
        name: "bun",
        paths: &["/.bun/"],
        newest: "bun add -g codewright@latest",
        version: "bun add -g codewright@",
    },
    Method {
        name: "npm in a project",
        paths: &["/node_modules/"],
        newest: "npm install codewright@latest",
        version: "npm install codewright@",
    },
    Method {
        name: "uv",
        paths: &["/uv/tools/"],
        newest: "uv tool upgrade codewright",
        version: "uv tool install codewright==",
    },
    Method {
        name: "pipx",
        paths: &["/pipx/venvs/"],
        newest: "pipx upgrade codewright",
        version: "pipx install --force codewright==",
    },
    Method {
        name: "pip",
        paths: &["/site-packages/", "/venv/", "/.venv/"],
        newest: "pip install --upgrade codewright",
        version: "pip install codewright==",
    },
    Method {
        name: "brew",
        paths: &["/Cellar/", "/homebrew/"],
        newest: "brew upgrade codewright",
        version: "",
    },
    Method {
        name: "scoop",
        paths: &["/scoop/"],
        newest: "scoop update codewright",
        version: "scoop install codewright@",
    },
    Method {
        name: "choco",
        paths: &["/chocolatey/"],
        newest: "choco upgrade codewright",
        version: "choco upgrade codewright --version ",
    },
    Method { name: "nix", paths: &["/nix/store/"], newest: "nix profile upgrade codewright", version: "" },
    Method {
        name: "cargo",
        paths: &["/.cargo/bin/"],
        newest: "cargo install --locked --path crates/codewright",
        version: "",
    },
    Method {
        name: "system",
        paths: &["/usr/bin/"],
        newest: "use the package manager of the system, such as `apt install --only-upgrade codewright`, `dnf upgrade codewright`, `apk upgrade codewright` or `pacman -S codewright`",
        version: "",
    },
    Method {
        name: "curl",
        paths: &[],
        newest: "run the install script again",
        version: "run the install script with --version ",
    },
    Method {
        name: "source",
        paths: &[""],
        newest: "build the new version from source: `cargo build --release --locked`",
        version: "",
    },
];

/// The way in which the program at a path was installed.
pub(super) fn of(program: &Path) -> &'static str {
    let path = program.to_string_lossy().replace('\\', "/");
    let found = METHODS.iter().find(|method| method.paths.iter().any(|part| path.contains(part)));
    found.map_or("source", |method| method.name)
}

/// What a user does to get a version, or the newest one.
pub(super) fn advice(name: &str, version: Option<&str>) -> String {
    let Some(method) = METHODS.iter().find(|method| method.name == name) else { return name.to_owned() };
    match version.map(crate::clean::clean_line) {
        Some(version) if !method.version.is_empty() => format!("{}{version}", method.version),
        Some(version) => format!("{} (version {version})", method.newest),
        None => method.newest.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_tells_the_way() {
        for (path, version, expected) in [
            (
                "/usr/local/lib/node_modules/codewright/node_modules/@codewright/linux-x64/bin/codewright",
                None,
                "npm install -g codewright@latest",
            ),
            (
                "/home/a/.local/share/pnpm/global/5/node_modules/x/codewright",
                None,
                "pnpm add -g codewright@latest",
            ),
            (
                "/home/a/p/node_modules/@codewright/linux-x64/bin/codewright",
                Some("1.0.0"),
                "npm install codewright@1.0.0",
            ),
            ("/home/a/.local/share/uv/tools/codewright/bin/codewright", None, "uv tool upgrade codewright"),
            (
                "/home/a/.local/share/pipx/venvs/codewright/bin/codewright",
                Some("1.2.3"),
                "pipx install --force codewright==1.2.3",
            ),
            ("/opt/homebrew/Cellar/codewright/1.0.0/bin/codewright", None, "brew upgrade codewright"),
            ("C:\\Users\\a\\scoop\\apps\\codewright\\codewright.exe", None, "scoop update codewright"),
        ] {
            assert_eq!(advice(of(Path::new(path)), version), expected, "{path}");
        }
        assert_eq!(of(Path::new("/usr/bin/codewright")), "system");
        assert_eq!(of(Path::new("/src/target/release/codewright")), "source");
    }
}
