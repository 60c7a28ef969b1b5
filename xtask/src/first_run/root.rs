//! An empty root file system, and processes in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use tempfile::TempDir;

use super::Step;

/// The time limit of a step, in seconds, and the time after it until the processes are killed.
const DEADLINE_S: &str = "120";
const GRACE_S: &str = "5";
/// The programs of busybox that the root has.
const APPLETS: [&str; 8] = ["sh", "ls", "cat", "env", "id", "mkdir", "rm", "sed"];
/// The search path of the programs that make the root.
pub(super) const OUTER_PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";
/// The search path in the root.
pub(super) const PATH: &str = "/usr/bin:/bin";
/// Changes the root: `sh -c ENTER _ ROOT NETWORK USER MOUNTS COMMAND…`. The network of the namespace has only a loopback
/// interface, which is off at first.
const ENTER: &str = r#"
set -e
root=$1 network=$2 user=$3 mounts=$4
shift 4
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
[ "$network" = host ] || busybox ip link set lo up
eval "$mounts"
cd "$root"
case "$user" in
'') exec chroot "$root" "$@" ;;
*) exec chroot --userspec "$user" "$root" "$@" ;;
esac
"#;

/// Who starts the program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum User {
    Root,
    /// A user that the root's list of users does not have, as in many containers.
    Unnamed,
}

/// The network of a step.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Network {
    /// The loopback interface.
    None,
    /// The network of this machine.
    Host,
}

/// How the root looks for a step.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// Lines of the shell that change the root before the start.
    pub(super) mounts: &'static str,
    pub(super) user: User,
    pub(super) network: Network,
}

impl Place {
    /// The root as it was made.
    pub(super) const PLAIN: Self = Self { mounts: "", user: User::Root, network: Network::None };
}

/// What a step wrote, and its exit code.
pub(super) struct Outcome {
    pub(super) code: Option<i32>,
    pub(super) text: String,
}

/// A root file system.
pub(super) struct Root {
    path: PathBuf,
    /// Dropped to delete the root, unless it was given.
    _folder: Option<TempDir>,
    is_superuser: bool,
}

impl Root {
    /// Makes a root with the program, or copies the program into the given root.
    pub(super) fn new(program: &Path, given: Option<&Path>) -> Result<Self> {
        for (tool, argument) in [("busybox", "--help"), ("unshare", "--version"), ("chroot", "--version")] {
            Command::new(tool).arg(argument).output().with_context(|| format!("{tool} is not installed"))?;
        }
        let folder = if given.is_none() { Some(tempfile::tempdir()?) } else { None };
        let path = match (&folder, given) {
            (Some(folder), _) => folder.path().to_owned(),
            (None, Some(given)) => {
                given.canonicalize().with_context(|| format!("no root in {}", given.display()))?
            }
            (None, None) => bail!("there is no root"),
        };
        let is_superuser = rustix::process::geteuid().is_root();
        let root = Self { path, _folder: folder, is_superuser };
        for name in ["proc", "dev", "tmp", "root", "home/user", "usr/bin", "bin", "etc"] {
            fs::create_dir_all(root.path.join(name))?;
        }
        if !root.is_foreign() {
            root.fill(program)?;
        }
        fs::copy(program, root.path.join("usr/bin/codewright"))?;
        let probe = root.start(Place::PLAIN, &[], &["--version"])?;
        ensure!(
            !probe.text.contains("unshare:") && !probe.text.contains("mount:"),
            "this machine permits no namespaces: {}",
            probe.text.trim()
        );
        Ok(root)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the root was given, so it may have more programs.
    pub(super) fn is_foreign(&self) -> bool {
        self._folder.is_none()
    }

    pub(super) fn can_change_user(&self) -> bool {
        self.is_superuser
    }

    /// Copies busybox and all libraries, and names the user.
    fn fill(&self, program: &Path) -> Result<()> {
        let found = Command::new("sh").args(["-c", "command -v busybox"]).output()?;
        let busybox = PathBuf::from(String::from_utf8(found.stdout)?.trim());
        fs::copy(&busybox, self.path.join("bin/busybox"))?;
        for name in APPLETS {
            std::os::unix::fs::symlink("busybox", self.path.join("bin").join(name))?;
        }
        fs::write(self.path.join("etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n")?;
        // Everybody can write there, as in other systems.
        let all = std::os::unix::fs::PermissionsExt::from_mode(0o1777);
        fs::set_permissions(self.path.join("tmp"), all)?;
        for file in libraries(program)?.into_iter().chain(libraries(&busybox)?) {
            let to = self.path.join(file.strip_prefix("/").unwrap_or(&file));
            fs::create_dir_all(to.parent().context("a library has a directory")?)?;
            fs::copy(&file, &to)?;
        }
        Ok(())
    }

    pub(super) fn run(&self, step: &Step) -> Result<Outcome> {
        self.start(step.place, step.variables, step.arguments)
    }

    /// Starts the program and waits for its end.
    pub(super) fn start(
        &self,
        place: Place,
        variables: &[(&str, &str)],
        arguments: &[&str],
    ) -> Result<Outcome> {
        let words = self.words(place, arguments);
        let output = Command::new("timeout")
            .args(["--kill-after", GRACE_S, DEADLINE_S])
            .args(words)
            .env_clear()
            .env("PATH", OUTER_PATH)
            .envs(variables.iter().copied())
            .output()
            .context("cannot start timeout")?;
        let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        Ok(Outcome { code: output.status.code(), text: text.concat() })
    }

    /// The command that starts the program in the root.
    pub(super) fn words(&self, place: Place, arguments: &[&str]) -> Vec<String> {
        let mut words = vec!["unshare", "--mount", "--pid", "--fork", "--kill-child"];
        if !self.is_superuser {
            words.extend(["--user", "--map-root-user"]);
        }
        let network = match place.network {
            Network::None => {
                words.push("--net");
                "none"
            }
            Network::Host => "host",
        };
        let user = match place.user {
            User::Root => "",
            User::Unnamed => "4242:4242",
        };
        let root = self.path.to_string_lossy();
        let path = format!("PATH={PATH}");
        words.extend(["sh", "-c", ENTER, "_", &root, network, user, place.mounts]);
        // Inside, only programs of the root are found.
        words.extend(["/bin/env", &path, "/usr/bin/codewright"]);
        words.extend(arguments);
        words.into_iter().map(str::to_owned).collect()
    }
}

/// The files that the loader needs for a program: nothing for a static one.
fn libraries(program: &Path) -> Result<Vec<PathBuf>> {
    let output = Command::new("ldd").arg(program).output().context("ldd is not installed")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let paths = text.split_ascii_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from);
    Ok(paths.collect())
}
