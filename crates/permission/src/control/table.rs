//! The table of control files.
//!
//! A row lists the program that reads the file, because that is why the row exists. A file is in the table if a program
//! runs code from it, or loads settings that name code, without a further question when the program starts, a directory is
//! entered, or a commit is made. Files that only run when somebody asks for it are not: build files, scripts, tests,
//! `package.json`, `conftest.py`, `justfile`, `.env`.

use Depth::{Any, Here};

/// Consecutive components of a path, and why a write needs permission.
pub(super) struct Row {
    /// The components, in lower case. Each may start or end with `*`.
    pub(super) names: &'static [&'static str],
    /// Why a write needs permission.
    pub(super) reason: &'static str,
    /// The program that reads the file.
    #[cfg_attr(not(test), expect(dead_code, reason = "the source of the row, for readers and tests"))]
    pub(super) program: &'static str,
    /// Where commands cannot create it.
    pub(super) depth: Depth,
}

/// Where commands cannot create a file. Tools that edit ask at any depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// At any depth of the project except inside packages, which contain such files, and in other writable directories
    /// themselves: caches contain packages.
    Here,
    /// At any depth of every writable directory.
    Any,
}

pub(super) const AGENT: &str = "it configures this program: permissions, agents, commands, plugins";
const OTHER_AGENT: &str = "it configures a coding agent or the tool servers that one starts";
const VERSION_CONTROL: &str = "it holds hooks and settings of version control, which run programs";
const HOOK: &str = "it names programs that run at a commit";
const ENTERED: &str = "it runs when a directory is entered or opened";
const SHELL: &str = "a shell or a session runs it when it starts";
const KEYS: &str = "it decides who may log in, or which keys and hosts are trusted";
const SCHEDULE: &str = "the system runs what it names at a time or at log-in";
const EDITOR: &str = "an editor runs tasks or programs that it names";
const PACKAGES: &str =
    "it decides where a package manager or build tool loads code from, or which programs it runs";
const TOOL: &str = "a program runs commands from it when it starts";
pub(super) const HIDDEN: &str =
    "commands do not see it: it holds keys or settings, or `sandbox.hide` names it";
pub(super) const DECISIVE: &str =
    "settings of git or a link name it, or it is part of a repository, so a program runs what it says";
pub(super) const SYSTEM: &str = "it is part of the system: programs, libraries, services and their settings";
pub(super) const OWN: &str = "it belongs to this program: settings, credentials, sessions";

/// The directories of the system. They count in a session in the root directory; elsewhere they are outside.
pub(super) const SYSTEM_DIRECTORIES: &[&str] = &[
    "/Library",
    "/System",
    "/bin",
    "/boot",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/sbin",
    "/usr",
    "/var/lib",
    "/var/spool",
];

const fn row(
    depth: Depth,
    reason: &'static str,
    program: &'static str,
    names: &'static [&'static str],
) -> Row {
    Row { names, reason, program, depth }
}

/// The files that always need permission.
pub(super) const TABLE: &[Row] = &[
    row(Here, AGENT, "codewright and opencode", &["opencode.json*"]),
    row(Here, AGENT, "codewright and opencode", &["codewright.json*"]),
    row(Here, AGENT, "codewright and opencode", &["tui.json*"]),
    row(Here, AGENT, "codewright and opencode", &[".opencode"]),
    row(Here, AGENT, "codewright and opencode", &[".codewright"]),
    row(Here, AGENT, "codewright and opencode", &[".config", "opencode"]),
    row(Here, AGENT, "codewright and opencode", &[".config", "codewright"]),
    row(Here, OTHER_AGENT, "Claude Code", &[".claude"]),
    row(Here, OTHER_AGENT, "Claude Code", &[".claude.json"]),
    row(Here, OTHER_AGENT, "Claude Code", &[".mcp.json"]),
    row(Here, OTHER_AGENT, "Claude Code", &[".claude-plugin"]),
    row(Here, OTHER_AGENT, "agents with skills", &[".agents"]),
    row(Here, OTHER_AGENT, "agents with skills", &[".agent"]),
    row(Here, OTHER_AGENT, "Cursor", &[".cursor"]),
    row(Here, OTHER_AGENT, "Codex", &[".codex"]),
    row(Here, OTHER_AGENT, "Gemini CLI", &[".gemini"]),
    row(Here, OTHER_AGENT, "Windsurf", &[".windsurf"]),
    row(Here, OTHER_AGENT, "Qwen Code", &[".qwen"]),
    row(Here, OTHER_AGENT, "Crush", &["crush.json"]),
    row(Here, OTHER_AGENT, "Crush", &[".crush.json"]),
    row(Here, OTHER_AGENT, "Crush", &[".crush"]),
    row(Here, OTHER_AGENT, "Kiro", &[".kiro"]),
    row(Here, OTHER_AGENT, "Junie", &[".junie"]),
    row(Here, OTHER_AGENT, "Continue", &[".continue"]),
    row(Here, OTHER_AGENT, "Roo Code", &[".roo"]),
    row(Here, OTHER_AGENT, "Kilo Code", &[".kilocode"]),
    row(Here, OTHER_AGENT, "Cline", &[".clinerules"]),
    row(Here, OTHER_AGENT, "Amazon Q", &[".amazonq"]),
    row(Here, OTHER_AGENT, "Goose", &[".goose"]),
    row(Here, OTHER_AGENT, "Amp", &[".amp"]),
    row(Here, OTHER_AGENT, "Trae", &[".trae"]),
    row(Here, OTHER_AGENT, "Factory", &[".factory"]),
    row(Here, OTHER_AGENT, "Augment", &[".augment"]),
    row(Here, OTHER_AGENT, "Copilot", &[".copilot"]),
    row(Here, OTHER_AGENT, "Aider", &[".aider.conf.yml"]),
    row(Here, OTHER_AGENT, "Aider", &[".aider.model.*"]),
    row(Here, OTHER_AGENT, "Copilot", &[".github", "hooks"]),
    row(Any, VERSION_CONTROL, "Git", &[".git"]),
    // The short name of `.git` on some file systems.
    row(Any, VERSION_CONTROL, "Git", &["git~1"]),
    row(Here, VERSION_CONTROL, "Git", &[".gitmodules"]),
    row(Here, VERSION_CONTROL, "Git", &[".gitconfig"]),
    row(Here, VERSION_CONTROL, "Git", &[".config", "git"]),
    row(Any, VERSION_CONTROL, "Mercurial", &[".hg"]),
    row(Here, VERSION_CONTROL, "Mercurial", &[".hgrc"]),
    row(Here, VERSION_CONTROL, "Mercurial", &[".hgsub"]),
    row(Any, VERSION_CONTROL, "Jujutsu", &[".jj"]),
    row(Any, VERSION_CONTROL, "Sapling", &[".sl"]),
    row(Here, VERSION_CONTROL, "Subversion", &[".svn"]),
    row(Here, VERSION_CONTROL, "Fossil", &[".fossil-settings"]),
    row(Here, VERSION_CONTROL, "Breezy", &[".bzr"]),
    row(Here, HOOK, "Husky", &[".husky"]),
    row(Here, HOOK, "Husky", &[".huskyrc*"]),
    row(Here, HOOK, "Husky", &[".config", "husky"]),
    row(Here, HOOK, "Git with core.hooksPath", &[".githooks"]),
    row(Here, HOOK, "Git with core.hooksPath", &[".git-hooks"]),
    row(Here, HOOK, "pre-commit", &[".pre-commit-config.y*"]),
    row(Here, HOOK, "prek", &["prek.toml"]),
    row(Here, HOOK, "Lefthook", &["lefthook.*"]),
    row(Here, HOOK, "Lefthook", &[".lefthook.*"]),
    row(Here, HOOK, "Lefthook", &["lefthook-local.*"]),
    row(Here, HOOK, "Lefthook", &[".lefthook-local.*"]),
    row(Here, HOOK, "Lefthook", &[".config", "lefthook*"]),
    row(Here, HOOK, "Overcommit", &[".overcommit.yml"]),
    row(Here, HOOK, "simple-git-hooks", &[".simple-git-hooks.*"]),
    row(Here, HOOK, "simple-git-hooks", &["simple-git-hooks.*"]),
    row(Here, ENTERED, "direnv", &[".envrc"]),
    row(Here, ENTERED, "direnv", &[".envrc.*"]),
    row(Here, ENTERED, "direnv", &[".direnv"]),
    row(Here, ENTERED, "direnv", &[".direnvrc"]),
    row(Here, ENTERED, "direnv", &[".config", "direnv"]),
    row(Here, ENTERED, "autoenv", &[".autoenv*"]),
    row(Here, ENTERED, "Shadowenv", &[".shadowenv.d"]),
    row(Here, ENTERED, "Dev Containers", &[".devcontainer"]),
    row(Here, ENTERED, "Dev Containers", &[".devcontainer.json"]),
    row(Here, ENTERED, "Gitpod", &[".gitpod.yml"]),
    row(Here, ENTERED, "Project IDX", &[".idx"]),
    row(Here, ENTERED, "mise", &[".mise.toml"]),
    row(Here, ENTERED, "mise", &["mise.toml"]),
    row(Here, ENTERED, "mise", &["mise.*.toml"]),
    row(Here, ENTERED, "mise", &[".mise.*.toml"]),
    row(Here, ENTERED, "mise", &[".mise"]),
    row(Here, ENTERED, "mise", &[".config", "mise*"]),
    row(Here, ENTERED, "mise", &[".rtx.toml"]),
    row(Here, ENTERED, "asdf and mise", &[".tool-versions"]),
    row(Here, ENTERED, "asdf and mise", &[".asdfrc"]),
    row(Here, ENTERED, "Devbox", &["devbox.json"]),
    row(Here, SHELL, "sh and bash", &[".bashrc"]),
    row(Here, SHELL, "sh and bash", &[".bash_*"]),
    row(Here, SHELL, "sh and bash", &[".profile"]),
    row(Here, SHELL, "sh and bash", &[".bashrc.d"]),
    row(Here, SHELL, "sh and bash", &[".profile.d"]),
    row(Here, SHELL, "sh and bash", &["etc", "profile*"]),
    row(Here, SHELL, "zsh", &[".zshrc"]),
    row(Here, SHELL, "zsh", &[".zshenv"]),
    row(Here, SHELL, "zsh", &[".zprofile"]),
    row(Here, SHELL, "zsh", &[".zlogin"]),
    row(Here, SHELL, "zsh", &[".zlogout"]),
    row(Here, SHELL, "ksh", &[".kshrc"]),
    row(Here, SHELL, "ksh", &[".mkshrc"]),
    row(Here, SHELL, "csh", &[".cshrc"]),
    row(Here, SHELL, "csh", &[".tcshrc"]),
    row(Here, SHELL, "csh", &[".login"]),
    row(Here, SHELL, "readline", &[".inputrc"]),
    row(Here, SHELL, "fish", &[".config", "fish"]),
    row(Here, SHELL, "Nushell", &[".config", "nushell"]),
    row(Here, SHELL, "Elvish", &[".config", "elvish"]),
    row(Here, SHELL, "xonsh", &[".xonshrc"]),
    row(Here, SHELL, "PowerShell", &["*_profile.ps1"]),
    row(Here, SHELL, "Starship", &[".config", "starship.toml"]),
    row(Here, SHELL, "systemd", &[".config", "environment.d"]),
    row(Here, SHELL, "X11", &[".xprofile"]),
    row(Here, SHELL, "X11", &[".xinitrc"]),
    row(Here, SHELL, "X11", &[".xsession*"]),
    row(Here, SHELL, "PAM", &[".pam_environment"]),
    row(Here, SHELL, "shells", &[".local", "bin"]),
    row(Here, KEYS, "OpenSSH", &[".ssh"]),
    row(Here, KEYS, "GnuPG", &[".gnupg"]),
    row(Here, KEYS, "curl and ftp", &[".netrc"]),
    row(Here, SCHEDULE, "cron", &["etc", "cron*"]),
    row(Here, SCHEDULE, "cron", &["spool", "cron*"]),
    row(Here, SCHEDULE, "anacron", &["etc", "anacrontab"]),
    row(Here, SCHEDULE, "at", &["spool", "at"]),
    row(Here, SCHEDULE, "at", &["spool", "atjobs"]),
    row(Here, SCHEDULE, "desktops", &[".config", "autostart"]),
    row(Here, SCHEDULE, "systemd", &[".config", "systemd"]),
    row(Here, SCHEDULE, "systemd", &["systemd", "user"]),
    row(Here, SCHEDULE, "systemd", &["etc", "systemd"]),
    row(Here, SCHEDULE, "launchd", &["library", "launchagents"]),
    row(Here, SCHEDULE, "launchd", &["library", "launchdaemons"]),
    row(Here, EDITOR, "VS Code", &[".vscode", "tasks.json"]),
    row(Here, EDITOR, "VS Code", &[".vscode", "launch.json"]),
    row(Here, EDITOR, "VS Code", &[".vscode", "settings.json"]),
    row(Here, EDITOR, "VS Code", &[".vscode", "mcp.json"]),
    row(Here, EDITOR, "VS Code", &["*.code-workspace"]),
    row(Here, EDITOR, "Visual Studio", &[".vs"]),
    row(Here, EDITOR, "JetBrains", &[".idea"]),
    row(Here, EDITOR, "JetBrains", &[".run"]),
    row(Here, EDITOR, "Fleet", &[".fleet"]),
    row(Here, EDITOR, "Zed", &[".zed"]),
    row(Here, EDITOR, "Helix", &[".helix"]),
    row(Here, EDITOR, "Nova", &[".nova"]),
    row(Here, EDITOR, "Lapce", &[".lapce"]),
    row(Here, EDITOR, "Theia", &[".theia"]),
    row(Here, EDITOR, "Sublime Text", &["*.sublime-project"]),
    row(Here, EDITOR, "Kate", &[".kateproject*"]),
    row(Here, EDITOR, "Kakoune", &[".kakrc"]),
    row(Here, EDITOR, "Vim and Neovim", &[".exrc"]),
    row(Here, EDITOR, "Vim and Neovim", &[".nvimrc"]),
    row(Here, EDITOR, "Vim and Neovim", &[".nvim.lua"]),
    row(Here, EDITOR, "Vim and Neovim", &[".nvim"]),
    row(Here, EDITOR, "Vim and Neovim", &[".vimrc"]),
    row(Here, EDITOR, "Vim and Neovim", &[".gvimrc"]),
    row(Here, EDITOR, "Vim and Neovim", &["_vimrc"]),
    row(Here, EDITOR, "Vim and Neovim", &[".vim"]),
    row(Here, EDITOR, "Vim and Neovim", &[".lvimrc"]),
    row(Here, EDITOR, "Vim and Neovim", &[".local.vimrc"]),
    row(Here, EDITOR, "Vim and Neovim", &[".vimrc.local"]),
    row(Here, EDITOR, "Vim and Neovim", &[".config", "nvim"]),
    row(Here, EDITOR, "Vim and Neovim", &[".lazy.lua"]),
    row(Here, EDITOR, "Vim and Neovim", &[".neoconf.json"]),
    row(Here, EDITOR, "YouCompleteMe", &[".ycm_extra_conf.py"]),
    row(Here, EDITOR, "Emacs", &[".emacs"]),
    row(Here, EDITOR, "Emacs", &[".emacs.d"]),
    row(Here, EDITOR, "Emacs", &[".config", "emacs"]),
    row(Here, EDITOR, "Emacs", &[".dir-locals*.el"]),
    row(Here, EDITOR, "Emacs", &[".projectile"]),
    row(Here, EDITOR, "rust-analyzer", &["rust-analyzer.toml"]),
    row(Here, EDITOR, "rust-analyzer", &[".rust-analyzer.toml"]),
    row(Here, PACKAGES, "npm", &[".npmrc"]),
    row(Here, PACKAGES, "Yarn", &[".yarnrc*"]),
    row(Here, PACKAGES, "Yarn", &[".yarn", "releases"]),
    row(Here, PACKAGES, "Yarn", &[".yarn", "plugins"]),
    row(Here, PACKAGES, "pnpm", &[".pnpmfile.*"]),
    row(Here, PACKAGES, "Bun", &["bunfig.toml"]),
    row(Here, PACKAGES, "Bun", &[".bunfig.toml"]),
    row(Here, PACKAGES, "Cargo", &[".cargo", "config*"]),
    row(Here, PACKAGES, "rustup", &["rust-toolchain"]),
    row(Here, PACKAGES, "rustup", &["rust-toolchain.toml"]),
    row(Here, TOOL, "perl -d", &[".perldb"]),
    row(Here, PACKAGES, "pip", &["pip.conf"]),
    row(Here, PACKAGES, "twine", &[".pypirc"]),
    row(Here, PACKAGES, "conda", &[".condarc"]),
    row(Here, PACKAGES, "RubyGems", &[".gemrc"]),
    row(Here, PACKAGES, "Bundler", &[".bundle"]),
    row(Here, PACKAGES, "Maven", &[".m2", "settings*"]),
    row(Here, PACKAGES, "Maven", &[".mvn", "extensions.xml"]),
    row(Here, PACKAGES, "Maven", &[".mvn", "jvm.config"]),
    row(Here, PACKAGES, "Maven", &[".mvn", "maven.config"]),
    row(Here, PACKAGES, "Gradle", &[".gradle", "init.*"]),
    row(Here, PACKAGES, "Gradle", &[".gradle", "gradle.properties"]),
    row(Here, PACKAGES, "sbt", &[".sbtopts"]),
    row(Here, PACKAGES, "sbt", &[".jvmopts"]),
    row(Here, PACKAGES, "Bazel", &[".bazelrc"]),
    row(Here, PACKAGES, "Bazel", &["tools", "bazel"]),
    row(Here, PACKAGES, "Bazel", &[".bazeliskrc"]),
    row(Here, PACKAGES, "Bazel", &[".bazelversion"]),
    row(Here, PACKAGES, "Buck", &[".buckconfig*"]),
    row(Here, PACKAGES, "Python", &["sitecustomize.py"]),
    row(Here, PACKAGES, "Python", &["usercustomize.py"]),
    row(Here, PACKAGES, "Python", &["pyvenv.cfg"]),
    row(Here, PACKAGES, "PHP", &[".user.ini"]),
    row(Here, PACKAGES, "Docker", &[".docker", "config.json"]),
    row(Here, TOOL, "R", &[".rprofile"]),
    row(Here, TOOL, "R", &[".renviron"]),
    row(Here, TOOL, "R", &["rprofile.site"]),
    row(Here, TOOL, "Ruby", &[".irbrc"]),
    row(Here, TOOL, "Ruby", &[".pryrc"]),
    row(Here, TOOL, "Ruby", &[".byebugrc"]),
    row(Here, TOOL, "Python debugger", &[".pdbrc"]),
    row(Here, TOOL, "Python debugger", &[".pdbrc.py"]),
    row(Here, TOOL, "Jupyter", &["jupyter_config.*"]),
    row(Here, TOOL, "Jupyter", &["jupyter_lab_config.*"]),
    row(Here, TOOL, "Jupyter", &["jupyter_notebook_config.*"]),
    row(Here, TOOL, "Jupyter", &["jupyter_server_config.*"]),
    row(Here, TOOL, "Elixir", &[".iex.exs"]),
    row(Here, TOOL, "Erlang", &[".erlang"]),
    row(Here, TOOL, "GHCi", &[".ghci"]),
    row(Here, TOOL, "OCaml", &[".ocamlinit"]),
    row(Here, TOOL, "Octave", &[".octaverc"]),
    row(Here, TOOL, "MATLAB", &["startup.m"]),
    row(Here, TOOL, "latexmk", &[".latexmkrc"]),
    row(Here, TOOL, "latexmk", &["latexmkrc"]),
    row(Here, TOOL, "ack", &[".ackrc"]),
    row(Here, TOOL, "gnuplot", &[".gnuplot"]),
    row(Here, TOOL, "curl", &[".curlrc"]),
    row(Here, TOOL, "wget", &[".wgetrc"]),
    row(Here, TOOL, "tmux", &[".tmux.conf"]),
    row(Here, TOOL, "tmux", &[".config", "tmux"]),
    row(Here, TOOL, "GNU Screen", &[".screenrc"]),
    row(Here, TOOL, "GDB", &[".gdbinit"]),
    row(Here, TOOL, "LLDB", &[".lldbinit*"]),
    row(Here, TOOL, "psql", &[".psqlrc"]),
    row(Here, TOOL, "SQLite", &[".sqliterc"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_source_and_lower_case_names() {
        for row in TABLE {
            assert!(
                !row.program.is_empty() && !row.reason.is_empty() && !row.names.is_empty(),
                "{:?}",
                row.names
            );
            assert!(row.names.iter().all(|name| *name == name.to_lowercase()), "{:?}", row.names);
            let stars = row.names.iter().map(|name| name.matches('*').count());
            assert!(stars.max() <= Some(1), "{:?} has more than one `*` in a name", row.names);
        }
    }

    #[test]
    fn no_row_is_there_twice() {
        for (index, row) in TABLE.iter().enumerate() {
            assert!(TABLE[..index].iter().all(|other| other.names != row.names), "{:?}", row.names);
        }
    }
}
