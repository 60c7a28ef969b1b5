//! What the user's own programs may not change in the home directory.
//!
//! MCP servers, language servers, plugins and hooks of the user's own configuration write the home directory as a whole,
//! because each keeps files there: a dot directory, a cache, its state. [`KEPT`] lists the exceptions. They stay as they
//! are, and one that is missing stays missing.

use std::path::{Path, PathBuf};

use codewright_config::Dirs;
use codewright_workspace::{Below, Guarded, folded_name};

use super::paths::SECRETS;
use crate::permission::control;

/// A path below the home directory, whose last component may contain one `*`, and the program that uses it.
type Row = (&'static str, &'static str);

const SHELL: &str = "a shell runs it when it starts";
const SESSION: &str = "the desktop or the service manager runs it at login";
const PROGRAM: &str = "it contains programs that the user starts by name";
const MODULES: &str = "an interpreter loads modules from it without being asked";
const EDITOR: &str = "an editor runs code or commands from it";
const TOOL: &str = "a program runs commands that it names";
const INSTALLER: &str = "it decides where a package manager or build tool loads code from";
const GIT: &str = "version control runs programs that it names";
const AGENT: &str = "it holds permissions, hooks, tool servers or instructions of another coding agent";

/// The files and directories that stay as they are, besides [the control files](control::guarded) of a project, which other
/// programs also find in the home directory.
const KEPT: &[Row] = &[
    (".bashrc*", SHELL),
    (".zshrc*", SHELL),
    (".zsh", SHELL),
    (".zfunc", SHELL),
    (".oh-my-zsh", SHELL),
    (".oh-my-bash", SHELL),
    (".zinit", SHELL),
    (".zplug", SHELL),
    (".antigen", SHELL),
    (".p10k.zsh", SHELL),
    (".cache/p10k-*", SHELL),
    (".zcompdump*", SHELL),
    (".zprezto", SHELL),
    (".zpreztorc", SHELL),
    (".zsh_plugins.*", SHELL),
    (".antidote", SHELL),
    (".config/sheldon", SHELL),
    (".local/share/sheldon", SHELL),
    (".config/xonsh", SHELL),
    (".fzf.*sh", SHELL),
    (".logout", SHELL),
    (".config/bash", SHELL),
    (".config/zsh", SHELL),
    (".config/powershell", SHELL),
    (".local/share/fish", SHELL),
    (".local/share/bash-completion", SHELL),
    (".local/share/zinit", SHELL),
    (".xserverrc", SESSION),
    (".xbindkeysrc", SESSION),
    (".dmrc", SESSION),
    (".config/autostart-scripts", SESSION),
    (".config/plasma-workspace", SESSION),
    (".config/upstart", SESSION),
    (".config/sway", SESSION),
    (".config/i3", SESSION),
    (".i3", SESSION),
    (".config/hypr", SESSION),
    (".config/awesome", SESSION),
    (".config/bspwm", SESSION),
    (".config/sxhkd", SESSION),
    (".config/openbox", SESSION),
    (".config/mimeapps.list", SESSION),
    (".local/share/applications", SESSION),
    (".local/share/systemd", SESSION),
    (".local/share/dbus-1", SESSION),
    (".local/share/nautilus", SESSION),
    (".local/share/kservices5", SESSION),
    (".config/xfce4", SESSION),
    (".config/xmonad", SESSION),
    (".xmonad", SESSION),
    (".config/qtile", SESSION),
    (".fluxbox", SESSION),
    (".config/labwc", SESSION),
    (".config/niri", SESSION),
    (".config/river", SESSION),
    (".local/share/gnome-shell", SESSION),
    (".local/share/cinnamon", SESSION),
    (".local/share/plasma", SESSION),
    (".local/share/thumbnailers", SESSION),
    ("Library/LaunchAgents", SESSION),
    ("Library/Application Scripts", SESSION),
    (".hammerspoon", SESSION),
    ("bin", PROGRAM),
    (".bin", PROGRAM),
    (".cargo/bin", PROGRAM),
    (".cargo/env*", SHELL),
    ("go/bin", PROGRAM),
    (".bun/bin", PROGRAM),
    (".bun/install/global", PROGRAM),
    (".deno/bin", PROGRAM),
    (".npm-global", PROGRAM),
    (".npm-packages", PROGRAM),
    (".yarn/bin", PROGRAM),
    (".config/yarn/global", PROGRAM),
    (".nvm", PROGRAM),
    (".fnm", PROGRAM),
    (".local/share/fnm", PROGRAM),
    (".volta", PROGRAM),
    (".n", PROGRAM),
    (".pyenv", PROGRAM),
    (".rbenv", PROGRAM),
    (".rvm", PROGRAM),
    (".asdf", PROGRAM),
    (".local/share/mise", PROGRAM),
    (".sdkman", PROGRAM),
    (".rustup", PROGRAM),
    (".ghcup", PROGRAM),
    (".cabal/bin", PROGRAM),
    (".opam", PROGRAM),
    (".dotnet/tools", PROGRAM),
    (".composer/vendor", PROGRAM),
    (".config/composer", PROGRAM),
    (".pub-cache/bin", PROGRAM),
    (".krew", PROGRAM),
    (".docker/cli-plugins", PROGRAM),
    (".local/share/gh/extensions", PROGRAM),
    (".local/share/helm", PROGRAM),
    (".config/k9s", PROGRAM),
    (".rye", PROGRAM),
    (".proto", PROGRAM),
    (".pixi", PROGRAM),
    (".elan", PROGRAM),
    (".foundry/bin", PROGRAM),
    (".juliaup", PROGRAM),
    (".moon/bin", PROGRAM),
    (".jbang/bin", PROGRAM),
    (".local/share/coursier/bin", PROGRAM),
    (".local/share/swiftly", PROGRAM),
    (".local/share/JetBrains", PROGRAM),
    (".local/share/flatpak/exports", PROGRAM),
    (".local/opt", PROGRAM),
    (".local/share/pnpm", PROGRAM),
    (".local/share/uv/tools", PROGRAM),
    (".local/share/pipx", PROGRAM),
    (".local/pipx", PROGRAM),
    (".nix-profile", PROGRAM),
    (".config/nixpkgs", PROGRAM),
    (".config/nix", PROGRAM),
    (".config/home-manager", PROGRAM),
    (".linuxbrew", PROGRAM),
    ("miniconda*", PROGRAM),
    ("anaconda*", PROGRAM),
    ("miniforge*", PROGRAM),
    ("mambaforge*", PROGRAM),
    (".conda", PROGRAM),
    (".local/lib", MODULES),
    (".local/share/virtualenv", MODULES),
    (".virtualenvs", MODULES),
    ("Library/Python", MODULES),
    ("node_modules", MODULES),
    (".node_modules", MODULES),
    (".node_libraries", MODULES),
    (".pythonrc*", MODULES),
    (".pythonstartup*", MODULES),
    (".pdbrc*", MODULES),
    (".ipython", MODULES),
    (".jupyter", MODULES),
    (".local/share/jupyter", MODULES),
    (".Rprofile", MODULES),
    (".Renviron", MODULES),
    (".config/irb", MODULES),
    (".config/pry", MODULES),
    (".gem", MODULES),
    (".local/share/gem", MODULES),
    ("perl5", MODULES),
    (".ghc", MODULES),
    (".julia/config", MODULES),
    (".luarocks", MODULES),
    (".guile", MODULES),
    (".nexrc", EDITOR),
    (".ideavimrc", EDITOR),
    (".local/share/nvim", EDITOR),
    (".config/lvim", EDITOR),
    (".local/share/lvim", EDITOR),
    (".config/vim", EDITOR),
    (".spacemacs*", EDITOR),
    (".doom.d", EDITOR),
    (".config/doom", EDITOR),
    (".nanorc", EDITOR),
    (".config/nano", EDITOR),
    (".config/micro", EDITOR),
    (".config/kak", EDITOR),
    (".config/helix", EDITOR),
    (".config/zed", EDITOR),
    (".config/Code", EDITOR),
    (".config/Code - Insiders", EDITOR),
    (".config/Code - OSS", EDITOR),
    (".config/VSCodium", EDITOR),
    (".config/Cursor", EDITOR),
    (".config/Windsurf", EDITOR),
    (".config/Antigravity", EDITOR),
    (".config/Trae", EDITOR),
    (".config/Kiro", EDITOR),
    (".config/sublime-text", EDITOR),
    (".config/JetBrains", EDITOR),
    (".vscode", EDITOR),
    (".vscode-oss", EDITOR),
    (".vscode-server", EDITOR),
    (".cursor-server", EDITOR),
    ("Library/Application Support/Code", EDITOR),
    ("Library/Application Support/Cursor", EDITOR),
    ("Library/Application Support/JetBrains", EDITOR),
    (".tmux", TOOL),
    (".config/zellij", TOOL),
    (".config/alacritty", TOOL),
    (".alacritty.*", TOOL),
    (".config/kitty", TOOL),
    (".config/wezterm", TOOL),
    (".wezterm.lua", TOOL),
    (".config/ghostty", TOOL),
    (".config/foot", TOOL),
    (".config/ranger", TOOL),
    (".config/lf", TOOL),
    (".config/yazi", TOOL),
    (".config/lazygit", TOOL),
    (".config/mc", TOOL),
    (".vifm", TOOL),
    (".config/vifm", TOOL),
    (".hyper.js", TOOL),
    (".sbclrc", TOOL),
    (".racketrc", TOOL),
    (".config/chezmoi", TOOL),
    (".local/share/chezmoi", TOOL),
    (".config/latexmk", TOOL),
    (".tigrc", TOOL),
    (".config/tig", TOOL),
    (".mailcap", TOOL),
    (".muttrc", TOOL),
    (".mutt", TOOL),
    (".config/mutt", TOOL),
    (".lesskey", TOOL),
    (".lesspipe", TOOL),
    (".config/gdb", TOOL),
    (".config/sqlite3", TOOL),
    (".config/curlrc", TOOL),
    (".mpv", TOOL),
    (".config/mpv", TOOL),
    (".config/htop", TOOL),
    (".ansible*", TOOL),
    (".config/containers", TOOL),
    (".terraformrc", TOOL),
    (".terraform.d", TOOL),
    (".config/yarn", INSTALLER),
    (".config/pnpm", INSTALLER),
    (".config/.bunfig.toml", INSTALLER),
    (".config/pip", INSTALLER),
    (".pip", INSTALLER),
    (".pydistutils.cfg", INSTALLER),
    (".config/uv", INSTALLER),
    (".config/pypoetry", INSTALLER),
    (".mambarc", INSTALLER),
    (".rspec", INSTALLER),
    (".m2/extensions.xml", INSTALLER),
    (".sbt", INSTALLER),
    (".mill", INSTALLER),
    (".ivy2/.credentials", INSTALLER),
    (".lein", INSTALLER),
    (".clojure", INSTALLER),
    (".boot", INSTALLER),
    (".config/go/env", INSTALLER),
    (".nuget/NuGet", INSTALLER),
    (".config/NuGet", INSTALLER),
    (".cabal/config", INSTALLER),
    (".stack/config.yaml", INSTALLER),
    (".mix", INSTALLER),
    (".hex", INSTALLER),
    (".gitconfig*", GIT),
    (".gitattributes", GIT),
    (".git-templates", GIT),
    (".git_template*", GIT),
    (".config/hg", GIT),
    (".subversion", GIT),
    (".jjconfig.toml", GIT),
    (".config/jj", GIT),
    (".claude/settings*", AGENT),
    (".claude/hooks", AGENT),
    (".claude/commands", AGENT),
    (".claude/agents", AGENT),
    (".claude/plugins", AGENT),
    (".claude/output-styles", AGENT),
    (".claude/CLAUDE.md", AGENT),
    (".claude/statusline*", AGENT),
    (".codex/config*", AGENT),
    (".codex/hooks*", AGENT),
    (".codex/prompts", AGENT),
    (".codex/rules", AGENT),
    (".codex/AGENTS*.md", AGENT),
    (".codeium/windsurf", AGENT),
    (".aider*", AGENT),
    (".config/goose", AGENT),
    (".config/amp", AGENT),
    (".config/crush", AGENT),
    (".opencode/bin", PROGRAM),
];

/// Control files of which only parts stay as they are, because programs of the user keep their state there. The parts of the
/// first two are rows of [`KEPT`], those of the others are [`CONFIGURATION`].
const IN_PARTS: &[&str] = &[".claude", ".codex", ".opencode", ".config/opencode"];

/// The entries of the original's configuration directories that decide what this program may do. A plugin keeps its own
/// settings there, and skills that it installs.
const CONFIGURATION: &[&str] = &[
    "opencode.json*",
    "codewright.json*",
    "config.json*",
    "config",
    "tui.json*",
    "AGENTS.md",
    "CLAUDE.md",
    "agent",
    "agents",
    "command",
    "commands",
    "mode",
    "modes",
    "plugin",
    "plugins",
    "tool",
    "tools",
    "theme",
    "themes",
    "node_modules",
    "package.json",
    "package-lock.json",
    "bun.lock*",
    ".npmrc",
    "bunfig.toml",
];

/// OpenCode's directory in a project.
const PROJECT: &str = ".opencode";
/// The entries of it that also configure this program. Skills of the user are at home.
const PROJECT_CONFIGURATION: &[&str] = &["skill", "skills", "bin"];

/// The entries of the original's data directory with sign-ins, which no program reads or writes.
const SIGN_INS: &[&str] = &["auth.json", "mcp-auth.json", "auth.json.*"];
/// The sessions in the original's data directory, which no program writes.
const SESSIONS: &[&str] = &["opencode.db*", "opencode-*.db*", "bin", "worktree", "snapshot"];

/// The base directories of the XDG specification, and the directory in the home that each replaces.
fn bases(dirs: &Dirs) -> [(&'static str, Option<&Path>); 4] {
    [
        (".config", dirs.config.parent()),
        (".local/share", dirs.data.parent()),
        (".local/state", dirs.state.parent()),
        (".cache", dirs.cache.parent()),
    ]
}

/// The directories that the user's own programs can write.
pub(super) fn writable(dirs: &Dirs) -> Vec<PathBuf> {
    let bases = bases(dirs).into_iter().filter_map(|(_, base)| base);
    // The base directories can be anywhere. One that contains the home, or a whole file system, is a mistake.
    let is_own = |base: &&Path| base.components().count() > 2 && !dirs.home.starts_with(base);
    let outside = bases.filter(is_own).filter(|base| !base.starts_with(&dirs.home)).map(Path::to_owned);
    std::iter::once(dirs.home.clone()).chain(outside).collect()
}

/// The names that stay as they are, by directory. `write` are exceptions that the user configured.
pub(super) fn kept(dirs: &Dirs, programs: &[PathBuf], write: &[PathBuf]) -> Vec<Guarded> {
    let rows = KEPT.iter().map(|(row, _)| *row).chain(SECRETS.iter().copied()).map(str::to_owned);
    let mut paths: Vec<PathBuf> = rows.chain(control_files()).flat_map(|row| places(dirs, &row)).collect();
    for directory in [&dirs.config, &dirs.home.join(".opencode")] {
        paths.extend(CONFIGURATION.iter().map(|name| directory.join(name)));
    }
    paths.extend(SIGN_INS.iter().chain(SESSIONS).map(|name| dirs.opencode_data.join(name)));
    paths.extend(
        [&dirs.own_config, &dirs.data, &dirs.state, &dirs.cache.join(super::PACKAGES)].map(Clone::clone),
    );
    paths.push(dirs.cache.join(codewright_plugins::SCRIPTS));
    paths.extend(programs.iter().filter(|path| is_program_directory(dirs, path)).cloned());
    paths.retain(|path| !write.iter().any(|write| path.starts_with(write)));
    by_directory(paths.iter(), write)
}

/// The control files of a project as rows. A program that reads one in a project reads it in the home directory, too.
fn control_files() -> impl Iterator<Item = String> {
    let all = control::guarded(Path::new("")).into_iter();
    let row = |one: Guarded| one.patterns.into_iter().map(move |name| one.directory.join(name));
    let rows = all.flat_map(row).map(|row| row.to_string_lossy().into_owned());
    rows.filter(|row| !IN_PARTS.contains(&row.as_str()))
}

/// The paths of names without a star.
pub(super) fn paths(kept: &[Guarded]) -> Vec<PathBuf> {
    let row = |row: &Guarded| -> Vec<PathBuf> {
        let names = row.patterns.iter().map(|name| name.trim_end_matches('*'));
        names.filter(|name| !name.contains('*')).map(|name| row.directory.join(name)).collect()
    };
    kept.iter().flat_map(row).collect()
}

/// The hidden files of the original's data directory. The others are visible to the user's own programs.
pub(super) fn sign_ins(dirs: &Dirs) -> impl Iterator<Item = PathBuf> {
    SIGN_INS.iter().filter(|name| !name.contains('*')).map(|name| dirs.opencode_data.join(name))
}

/// Whether a directory of the search path is below a directory that can be written, and is not one of these itself.
fn is_program_directory(dirs: &Dirs, path: &Path) -> bool {
    path.is_absolute() && writable(dirs).iter().any(|above| path != above && path.starts_with(above))
}

/// The path of a row: in the home directory, and in the base directory that replaces a part of it.
fn places(dirs: &Dirs, row: &str) -> Vec<PathBuf> {
    let mut places = vec![dirs.home.join(row)];
    for (prefix, base) in bases(dirs) {
        let rest = row.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('/'));
        if let (Some(rest), Some(base)) = (rest, base)
            && base != dirs.home.join(prefix)
        {
            places.push(base.join(rest));
        }
    }
    places
}

/// Lets programs create OpenCode's directory of a project and keep their state there, but none of the names that configure
/// this program. `write` are exceptions that the user configured.
pub(super) fn free_project_directory(guarded: &mut Vec<Guarded>, below: &mut Below, write: &[PathBuf]) {
    let names = || CONFIGURATION.iter().chain(PROJECT_CONFIGURATION);
    let mut directories = Vec::new();
    for row in guarded.iter_mut() {
        let count = row.patterns.len();
        row.patterns.retain(|pattern| pattern != PROJECT);
        if row.patterns.len() < count {
            directories.push(row.directory.join(PROJECT));
        }
    }
    let inside = |directory: &PathBuf| -> Vec<PathBuf> { names().map(|name| directory.join(name)).collect() };
    let mut paths: Vec<PathBuf> = directories.iter().flat_map(inside).collect();
    paths.retain(|path| !write.iter().any(|write| path.starts_with(write)));
    guarded.extend(by_directory(paths.iter(), write));
    let rows = &mut below.outside_packages.rows;
    let count = rows.len();
    rows.retain(|row| row.as_slice() != [PROJECT]);
    if rows.len() < count {
        rows.extend(names().map(|name| vec![PROJECT.to_owned(), folded_name(name)]));
        below.except.extend(write.iter().cloned());
    }
}

/// The names of paths by the directory that contains them. `except` are paths that stay free.
fn by_directory<'a>(paths: impl Iterator<Item = &'a PathBuf>, except: &[PathBuf]) -> Vec<Guarded> {
    let mut rows: std::collections::BTreeMap<PathBuf, Vec<String>> = std::collections::BTreeMap::new();
    for path in paths {
        if let (Some(directory), Some(name)) = (path.parent(), path.file_name()) {
            rows.entry(directory.to_owned()).or_default().push(folded_name(&name.to_string_lossy()));
        }
    }
    let row = |(directory, mut patterns): (PathBuf, Vec<String>)| {
        patterns.sort();
        patterns.dedup();
        let inside = except.iter().filter(|path| path.parent() == Some(&directory));
        let names = inside.filter_map(|path| Some(folded_name(&path.file_name()?.to_string_lossy())));
        let except = names.collect();
        Guarded { directory, patterns, except }
    };
    rows.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use codewright_config::Env;

    use super::*;

    fn dirs(more: &[(&str, &str)]) -> Dirs {
        Dirs::new(&Env::from_pairs([("HOME", "/home/ann")].iter().chain(more).copied())).unwrap()
    }

    fn is_kept(dirs: &Dirs, write: &[PathBuf], path: &str) -> bool {
        let kept = kept(dirs, &["/home/ann/tools/bin".into(), "/usr/bin".into(), "/home/ann".into()], write);
        Path::new(path).ancestors().any(|path| kept.iter().any(|row| is_in(row, path)))
    }

    fn is_in(row: &Guarded, path: &Path) -> bool {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return false };
        let name = folded_name(&name.to_string_lossy());
        let matches = |pattern: &String| control::matches_name(pattern, &name);
        row.directory == parent && !row.except.contains(&name) && row.patterns.iter().any(matches)
    }

    #[test]
    fn programs_write_their_own_files_and_nothing_that_runs_later() {
        let dirs = dirs(&[]);
        for path in [
            ".claude/todos/a.json",
            ".claude/transcripts/a",
            ".opencode-supermemory.log",
            ".wakatime.cfg",
            ".wakatime/state",
            ".cache/anything/a",
            ".local/share/anything",
            ".local/state/anything",
            ".config/anything/settings.json",
            ".config/opencode/dcp.jsonc",
            ".config/opencode/oh-my-opencode.json",
            ".config/opencode/skill/a/SKILL.md",
            ".local/share/opencode/storage/plugin/dcp/a.json",
            ".npm/_cacache/a",
            "Documents/notes.md",
        ] {
            assert!(!is_kept(&dirs, &[], &format!("/home/ann/{path}")), "{path}");
        }
        for path in [
            ".bashrc",
            ".BASHRC",
            ".bashrc.d",
            ".zshrc.local",
            ".config/autostart/a.desktop",
            ".config/systemd/user/a.service",
            ".local/bin/git",
            "tools/bin/git",
            ".local/lib/python3.12/site-packages/usercustomize.py",
            ".pyenv/versions/3.12/lib/python3.12/site-packages/a.pth",
            ".claude/settings.json",
            ".claude/settings.local.json",
            ".gitconfig",
            ".config/git/config",
            ".npmrc",
            ".ssh/authorized_keys",
            ".gnupg/gpg.conf",
            ".aws/credentials",
            ".config/opencode/opencode.jsonc",
            ".config/opencode/agents/a.md",
            ".config/opencode/plugin/a.js",
            ".config/codewright/codewright.json",
            ".local/share/codewright/codewright.db",
            ".local/share/opencode/auth.json",
            ".local/share/opencode/opencode.db-wal",
            ".config/Code/User/settings.json",
        ] {
            assert!(is_kept(&dirs, &[], &format!("/home/ann/{path}")), "{path}");
        }
    }

    #[test]
    fn a_path_that_the_user_names_is_free() {
        let dirs = dirs(&[]);
        let write = [PathBuf::from("/home/ann/.claude/settings.json")];
        assert!(!is_kept(&dirs, &write, "/home/ann/.claude/settings.json"));
        assert!(is_kept(&dirs, &write, "/home/ann/.claude/settings.local.json"));
        assert!(!is_kept(&dirs, &["/home/ann/.config/nvim".into()], "/home/ann/.config/nvim/init.lua"));
    }

    #[test]
    fn state_is_kept_in_a_project_and_configuration_is_not() {
        let row = |name: &str| vec![name.to_owned()];
        let mut guarded = control::guarded(Path::new("/work"));
        let mut below = Below::default();
        below.outside_packages.rows = vec![row(".opencode"), row(".codewright")];
        free_project_directory(&mut guarded, &mut below, &["/work/.opencode/tool".into()]);
        let is_guarded = |path: &str| guarded.iter().any(|row| is_in(row, Path::new(path)));
        for path in ["/work/.opencode", "/work/.opencode/todo.md", "/work/.opencode/tool"] {
            assert!(!is_guarded(path), "{path}");
        }
        for path in [
            "/work/opencode.json",
            "/work/.codewright",
            "/work/.opencode/opencode.jsonc",
            "/work/.opencode/plugin",
            "/work/.opencode/skills",
            "/work/.opencode/agent",
            "/work/.opencode/AGENTS.md",
        ] {
            assert!(is_guarded(path), "{path}");
        }
        let deeper = &below.outside_packages.rows;
        assert!(!deeper.contains(&row(".opencode")) && deeper.contains(&row(".codewright")));
        assert!(deeper.contains(&[".opencode", "plugin"].map(str::to_owned).to_vec()));
    }

    #[test]
    fn base_directories_outside_of_the_home_count_as_those_inside() {
        let dirs = dirs(&[("XDG_CONFIG_HOME", "/data/ann/config"), ("XDG_CACHE_HOME", "/data/ann/cache")]);
        let expected = ["/home/ann", "/data/ann/config", "/data/ann/cache"];
        assert_eq!(writable(&dirs), expected.map(PathBuf::from));
        for path in ["/data/ann/config/fish/config.fish", "/home/ann/.config/fish/config.fish"] {
            assert!(is_kept(&dirs, &[], path), "{path}");
        }
        assert!(is_kept(&dirs, &[], "/data/ann/config/opencode/opencode.json"));
        assert!(!is_kept(&dirs, &[], "/data/ann/cache/ms-playwright/a"));
    }

    #[test]
    fn every_row_has_one_star_at_most() {
        let all = control_files().map(|row| (row, SHELL)).collect::<Vec<_>>();
        let all = all.iter().map(|(row, reason)| (row.as_str(), *reason)).chain(KEPT.iter().copied());
        for (row, reason) in all {
            let (above, name) = row.rsplit_once('/').unwrap_or(("", row));
            assert!(!above.contains('*') && name.matches('*').count() < 2 && !reason.is_empty(), "{row}");
        }
    }

    #[test]
    fn every_control_file_of_a_project_is_kept() {
        let dirs = dirs(&[]);
        let rows: Vec<String> = control_files().collect();
        for row in &rows {
            assert!(is_kept(&dirs, &[], &format!("/home/ann/{}", row.replace('*', "x"))), "{row}");
        }
        let twice: Vec<_> = KEPT
            .iter()
            .filter(|(row, _)| rows.iter().any(|other| control::matches_name(other, row)))
            .collect();
        assert!(twice.is_empty(), "control files are kept without a row: {twice:?}");
    }
}
