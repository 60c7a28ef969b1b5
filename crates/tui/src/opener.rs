//! Opens files in the user's editor.
//!
//! Inside the terminal of an editor the file opens in that editor, which is found on `PATH` outside the
//! repository. Elsewhere `VISUAL` or `EDITOR` opens it in this terminal.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use crate::link::{FileReference, Roots};
use crate::msg::Reply;
use crate::state::Options;

/// How long an editor has to report a failure. After that it is left alone.
const START_LIMIT: Duration = Duration::from_secs(10);

/// An editor in whose terminal the client runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ide {
    /// Visual Studio Code.
    Code,
    /// The preview version of Visual Studio Code.
    CodeInsiders,
    /// Cursor.
    Cursor,
    /// Windsurf.
    Windsurf,
    /// `VSCodium`.
    Codium,
    /// Zed.
    Zed,
    /// An editor of JetBrains.
    JetBrains,
    /// Neovim, whose terminal names its socket.
    Neovim,
    /// Emacs, with a running server.
    Emacs,
}

/// The variables by which the editor of a terminal is recognized, empty if they are not set.
#[derive(Debug, Clone, Copy, Default)]
pub struct Signs<'a> {
    /// `TERM_PROGRAM`.
    pub term_program: &'a str,
    /// `GIT_ASKPASS`.
    pub git_askpass: &'a str,
    /// `VSCODE_GIT_ASKPASS_MAIN`, a path in the installation of Visual Studio Code or of an editor that descends from it.
    pub vscode_askpass: &'a str,
    /// `VSCODE_IPC_HOOK_CLI` or `VSCODE_INJECTION`.
    pub vscode: &'a str,
    /// `ZED_TERM`.
    pub zed: &'a str,
    /// `TERMINAL_EMULATOR`.
    pub emulator: &'a str,
    /// `NVIM`.
    pub nvim: &'a str,
    /// `INSIDE_EMACS`.
    pub emacs: &'a str,
}

impl Ide {
    /// Returns the editor that the variables name.
    ///
    /// Neovim and Emacs run in terminals of other editors too, so they come first.
    /// Editors that descend from Visual Studio Code have its `TERM_PROGRAM`. The path of their git
    /// extension, in `GIT_ASKPASS`, tells them apart.
    #[must_use]
    pub fn detect(signs: &Signs<'_>) -> Option<Self> {
        if !signs.nvim.is_empty() {
            return Some(Self::Neovim);
        }
        if !signs.emacs.is_empty() {
            return Some(Self::Emacs);
        }
        let askpass = format!("{} {}", signs.vscode_askpass, signs.git_askpass).to_ascii_lowercase();
        let is_code = signs.term_program == "vscode"
            || !signs.vscode.is_empty()
            || askpass.ends_with("/extensions/git/dist/askpass.sh")
            || askpass.contains("/extensions/git/dist/askpass-main.js");
        if is_code {
            let forks = [
                ("cursor", Self::Cursor),
                ("windsurf", Self::Windsurf),
                ("codium", Self::Codium),
                ("insiders", Self::CodeInsiders),
            ];
            let fork = forks.into_iter().find(|(name, _)| askpass.contains(name));
            return Some(fork.map_or(Self::Code, |(_, ide)| ide));
        }
        if signs.term_program == "zed" || !signs.zed.is_empty() {
            return Some(Self::Zed);
        }
        let is_jetbrains = signs.emulator == "JetBrains-JediTerm" || askpass.contains("jetbrains");
        is_jetbrains.then_some(Self::JetBrains)
    }

    /// Returns the names of the editor's programs, best first.
    fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Code => &["code"],
            Self::CodeInsiders => &["code-insiders"],
            Self::Cursor => &["cursor"],
            Self::Windsurf => &["windsurf"],
            Self::Codium => &["codium", "vscodium"],
            Self::Zed => &["zed", "zeditor", "zedit"],
            Self::JetBrains => &[
                "idea",
                "pycharm",
                "webstorm",
                "goland",
                "clion",
                "rustrover",
                "phpstorm",
                "rubymine",
                "rider",
            ],
            Self::Neovim => &["nvim"],
            Self::Emacs => &["emacsclient"],
        }
    }
}

/// A program with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandLine {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    /// Variables that the program does not receive.
    pub(crate) removed: Vec<String>,
}

/// The way to open a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Opening {
    /// In the window of an editor.
    Window(CommandLine),
    /// In this terminal.
    Terminal(CommandLine),
}

/// Returns the way to open a file.
///
/// # Errors
///
/// Fails with a message for the user if the file is not in the project or if there is no editor.
pub(crate) fn plan(options: &Options, roots: &Roots, file: &FileReference) -> Result<Opening, String> {
    let shown = crate::clean::clean_name(&file.path);
    let (path, _) = roots.file(file).ok_or_else(|| format!("`{shown}` is not a file of this project"))?;
    let command = |program: PathBuf, before: Vec<String>| {
        let args = match (options.ide, &options.nvim) {
            (Some(Ide::Neovim), Some(socket)) if before.is_empty() => remote(socket, &path, file),
            (Some(Ide::Emacs), _) if before.is_empty() => {
                let args = arguments(&program, &path, file);
                std::iter::once("--no-wait".to_owned()).chain(args).collect()
            }
            _ => arguments(&program, &path, file),
        };
        let args = before.into_iter().chain(args).collect();
        CommandLine { program, args, removed: options.private_variables.clone() }
    };
    let mut names = options.ide.into_iter().flat_map(Ide::programs);
    if let Some(program) = names.find_map(|name| find(name, &options.programs, roots)) {
        return Ok(Opening::Window(command(program, Vec::new())));
    }
    let mut words = options.editor.as_deref().unwrap_or_default().split_whitespace();
    let Some(name) = words.next() else {
        return Err("no editor is configured: set VISUAL or EDITOR".to_owned());
    };
    let program = find(name, &options.programs, roots)
        .ok_or_else(|| format!("the editor `{name}` was not found outside this project"))?;
    Ok(Opening::Terminal(command(program, words.map(str::to_owned).collect())))
}

/// Returns the arguments that open a file at its line. The path is absolute, so it is never an option.
fn arguments(program: &Path, path: &Path, file: &FileReference) -> Vec<String> {
    let path = path.to_string_lossy().into_owned();
    let Some(line) = file.line else { return vec![path] };
    let column = file.column.unwrap_or(1);
    let position = format!("{path}:{line}:{column}");
    match program.file_name().and_then(|name| name.to_str()).unwrap_or_default() {
        "code" | "code-insiders" | "cursor" | "windsurf" | "codium" | "vscodium" => {
            vec!["--goto".to_owned(), position]
        }
        "zed" | "zeditor" | "zedit" | "hx" | "helix" | "subl" => vec![position],
        "vi" | "vim" | "nvim" | "nano" | "pico" | "emacs" | "emacsclient" | "kak" | "micro" | "joe"
        | "mg" | "ne" => vec![format!("+{line}"), path],
        name if Ide::JetBrains.programs().contains(&name) => {
            ["--line", &line.to_string(), "--column", &column.to_string(), &path].map(str::to_owned).to_vec()
        }
        _ => vec![path],
    }
}

/// Returns the arguments with which a running Neovim opens a file in a tab of its own. The path is a value of the
/// expression, so nothing in it is a command.
fn remote(socket: &str, path: &Path, file: &FileReference) -> Vec<String> {
    let path = path.to_string_lossy().replace('\'', "''");
    let (line, column) = (file.line.unwrap_or(1), file.column.unwrap_or(1));
    let cursor = file.line.map(|_| format!(", 'call cursor({line}, {column})'")).unwrap_or_default();
    let expression = format!("execute(['tab drop ' . fnameescape('{path}'){cursor}])");
    ["--server", socket, "--remote-expr", &expression].map(str::to_owned).to_vec()
}

/// Returns the program with this name or absolute path, unless it belongs to the project.
fn find(name: &str, programs: &str, roots: &Roots) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|program| is_foreign_program(program, roots));
    }
    let directories = programs.split(':').map(Path::new);
    directories.map(|directory| directory.join(name)).find(|program| is_foreign_program(program, roots))
}

/// Whether a path is an executable file outside the project, also after symbolic links were resolved.
fn is_foreign_program(program: &Path, roots: &Roots) -> bool {
    let Ok(resolved) = program.canonicalize() else { return false };
    let is_program = resolved
        .metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0);
    is_program && program.is_absolute() && !roots.contain(program) && !roots.contain(&resolved)
}

/// Creates the process of a command line.
fn process(command: &CommandLine) -> Command {
    let mut process = Command::new(&command.program);
    process.args(&command.args);
    for variable in &command.removed {
        process.env_remove(variable);
    }
    process
}

/// Starts an editor with its own window. Returns its failure, if it fails soon.
pub(crate) async fn start(command: &CommandLine) -> Option<Reply> {
    let mut process = process(command);
    // In a separate process group, so that an interrupt does not end the editor.
    process.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let failed = |why: String| {
        Some(Reply::Failed(format!("the editor `{}` failed: {why}", command.program.display())))
    };
    match process.spawn() {
        Ok(mut child) => match timeout(START_LIMIT, child.wait()).await {
            Ok(Ok(status)) if !status.success() => failed(format!("it exited with {status}")),
            Ok(Err(error)) => failed(error.to_string()),
            Ok(Ok(_)) | Err(_) => None,
        },
        Err(error) => failed(error.to_string()),
    }
}

/// Runs an editor in this terminal until the user quits it.
///
/// # Errors
///
/// Fails if it cannot be started or reports a failure.
pub(crate) async fn run(command: &CommandLine) -> std::io::Result<()> {
    let status = process(command).status().await?;
    if status.success() { Ok(()) } else { Err(std::io::Error::other(format!("it exited with {status}"))) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn variables_name_the_editor() {
        let askpass = |name: &str| {
            format!("/Applications/{name}.app/Contents/Resources/app/extensions/git/dist/askpass.sh")
        };
        let none = Signs::default();
        let code = |askpass: &'static str| Signs { term_program: "vscode", git_askpass: askpass, ..none };
        let cursor = askpass("Cursor");
        let windsurf = askpass("Windsurf");
        let insiders = askpass("Visual Studio Code - Insiders");
        let plain = askpass("Visual Studio Code");
        for (signs, expected) in [
            (code(""), Some(Ide::Code)),
            (Signs { git_askpass: &plain, ..code("") }, Some(Ide::Code)),
            (Signs { git_askpass: &insiders, ..code("") }, Some(Ide::CodeInsiders)),
            (Signs { git_askpass: &cursor, ..code("") }, Some(Ide::Cursor)),
            (Signs { git_askpass: &windsurf, ..code("") }, Some(Ide::Windsurf)),
            (code("/usr/share/codium/resources/app/extensions/git/dist/askpass.sh"), Some(Ide::Codium)),
            // Inside tmux only the other variables are left.
            (Signs { term_program: "tmux", git_askpass: &cursor, ..none }, Some(Ide::Cursor)),
            (
                Signs {
                    term_program: "tmux",
                    vscode_askpass: "/usr/share/windsurf/resources/app/extensions/git/dist/askpass-main.js",
                    ..none
                },
                Some(Ide::Windsurf),
            ),
            (Signs { vscode: "/run/user/1000/vscode-ipc.sock", ..none }, Some(Ide::Code)),
            (Signs { term_program: "zed", ..none }, Some(Ide::Zed)),
            (Signs { zed: "true", ..none }, Some(Ide::Zed)),
            (Signs { emulator: "JetBrains-JediTerm", ..none }, Some(Ide::JetBrains)),
            (Signs { nvim: "/run/user/1000/nvim.1.0", ..code("") }, Some(Ide::Neovim)),
            (Signs { emacs: "29.1,vterm", ..none }, Some(Ide::Emacs)),
            (Signs { term_program: "iTerm.app", git_askpass: "/usr/lib/ssh/askpass", ..none }, None),
            (none, None),
        ] {
            assert_eq!(Ide::detect(&signs), expected, "{signs:?}");
        }
    }

    #[test]
    fn a_running_neovim_opens_a_path_as_a_value() {
        let file = FileReference { path: "a.rs".to_owned(), line: Some(3), column: None };
        let args = remote("/run/nvim.0", Path::new("/w/it's | q!.rs"), &file);
        let expression = "execute(['tab drop ' . fnameescape('/w/it''s | q!.rs'), 'call cursor(3, 1)'])";
        assert_eq!(args, ["--server", "/run/nvim.0", "--remote-expr", expression]);
    }

    /// A home directory with a project and programs.
    struct Home {
        directory: tempfile::TempDir,
        options: Options,
        roots: Roots,
    }

    impl Home {
        fn new(programs: &[&str]) -> Self {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().canonicalize().unwrap();
            for name in programs.iter().chain(&["project/-rf", "project/src/a.rs"]) {
                let file = path.join(name);
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                std::fs::write(&file, "").unwrap();
                std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
            }
            let project = path.join("project").to_str().unwrap().to_owned();
            let programs = ["project/bin", "bin"].map(|name| path.join(name).to_str().unwrap().to_owned());
            let options =
                Options { programs: format!("bin:.:{}", programs.join(":")), ..crate::tests::options() };
            let roots = Roots { directory: project.clone(), worktree: project };
            Self { directory, options, roots }
        }

        fn path(&self, name: &str) -> String {
            self.directory.path().canonicalize().unwrap().join(name).to_str().unwrap().to_owned()
        }

        fn plan(&self, path: &str, line: Option<u32>) -> Result<(bool, Vec<String>), String> {
            let file = FileReference { path: path.to_owned(), line, column: None };
            let (is_window, command) = match plan(&self.options, &self.roots, &file)? {
                Opening::Window(command) => (true, command),
                Opening::Terminal(command) => (false, command),
            };
            let program = command.program.to_str().unwrap().to_owned();
            Ok((is_window, [program].into_iter().chain(command.args).collect()))
        }
    }

    #[test]
    fn a_file_opens_at_its_line() {
        let mut home = Home::new(&["bin/cursor", "bin/zed", "bin/webstorm", "bin/vim", "bin/other"]);
        let file = home.path("project/src/a.rs");
        for (ide, editor, expected) in [
            (Some(Ide::Cursor), "vim", vec!["bin/cursor", "--goto", "FILE:7:1"]),
            (Some(Ide::Zed), "vim", vec!["bin/zed", "FILE:7:1"]),
            (Some(Ide::JetBrains), "vim", vec!["bin/webstorm", "--line", "7", "--column", "1", "FILE"]),
            // The editor whose terminal this is has no program on `PATH`.
            (Some(Ide::Windsurf), "vim -n", vec!["bin/vim", "-n", "+7", "FILE"]),
            (None, "other --wait", vec!["bin/other", "--wait", "FILE"]),
        ] {
            home.options.ide = ide;
            home.options.editor = Some(editor.to_owned());
            let (is_window, line) = home.plan("src/a.rs", Some(7)).unwrap();
            let mut expected: Vec<String> = expected.iter().map(|word| word.replace("FILE", &file)).collect();
            expected[0] = home.path(&expected[0]);
            assert_eq!((is_window, line), (ide.is_some_and(|ide| ide != Ide::Windsurf), expected));
        }
        home.options.editor = None;
        home.options.ide = None;
        assert!(home.plan("src/a.rs", None).unwrap_err().contains("no editor is configured"));
    }

    #[test]
    fn a_program_of_the_project_is_never_started() {
        let mut home = Home::new(&["project/bin/code", "project/bin/vim", "project/evil"]);
        std::fs::create_dir_all(home.path("bin")).unwrap();
        symlink(home.path("project/evil"), home.path("bin/code")).unwrap();
        home.options.ide = Some(Ide::Code);
        for editor in ["vim", "./bin/vim", &home.path("project/bin/vim")] {
            home.options.editor = Some(editor.to_owned());
            let error = home.plan("src/a.rs", None).unwrap_err();
            assert!(error.contains("was not found outside this project"), "{editor}: {error}");
        }
    }

    #[test]
    fn only_files_of_the_project_are_opened_and_no_name_is_an_option() {
        let mut home = Home::new(&["bin/vim", "secret.rs"]);
        home.options.editor = Some("vim".to_owned());
        let file = home.path("project/-rf");
        assert_eq!(home.plan("-rf", None).unwrap().1, [home.path("bin/vim"), file]);
        for path in ["../secret.rs", &home.path("secret.rs"), "src", "missing.rs"] {
            assert!(home.plan(path, None).unwrap_err().contains("is not a file of this project"), "{path}");
        }
    }
}
