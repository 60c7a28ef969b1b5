//! The command line that starts a program in a sandbox.

#[cfg(target_os = "linux")]
use std::ffi::OsStr;
use std::ffi::OsString;
#[cfg(target_os = "linux")]
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::mechanism::Mechanism;
use crate::{Error, Network, Sandbox, TEMPORARY, bubblewrap, forward, seatbelt};

#[cfg(target_os = "linux")]
use crate::{
    bubblewrap::Mounter,
    creation,
    landlock::{Paths, Removal, prevent_creation},
    mechanism::Creation,
    mounts::Frame,
    names::Names,
    opened::{Exact, Opened},
    ports::Ports,
    privilege::Users,
    seccomp::{self, Sockets, Watched},
    steps::{Kind, PROXY, Step, can_write, steps},
};

/// The first argument that makes the program restrict itself. The text of an [`Inner`] follows, and its mounts, or
/// [`WAIT`].
pub const CONFINE: &str = "__confine";
/// The argument of a helper that reads the same words from its standard input.
#[cfg(target_os = "linux")]
const WAIT: &str = "-";
/// The largest number of bytes that a waiting helper reads. An empty pipe holds them, so that the writer never waits.
#[cfg(target_os = "linux")]
const MAX_PLAN_BYTES: usize = 32 * 1024;

/// The interface of Landlock that can prevent renames.
#[cfg(target_os = "linux")]
const LANDLOCK_WITH_RENAMES: u32 = 2;

/// Variables with which programs fail at once if a host cannot be reached. They would try again for more than a minute.
const IMPATIENT: [(&str, &str); 2] =
    [("RES_OPTIONS", "attempts:1 timeout:1"), ("npm_config_fetch_retries", "0")];
/// Variables that tell package managers that there is no network.
const OFFLINE: [(&str, &str); 2] = [("npm_config_offline", "true"), ("CARGO_NET_OFFLINE", "true")];

/// Variables with which package managers do not look for their own updates. A user would be asked about a host that the
/// command does not need.
const CURRENT: [(&str, &str); 3] = [
    ("NO_UPDATE_NOTIFIER", "1"),
    ("npm_config_update_notifier", "false"),
    ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
];

/// How to start the helper for a sandbox. The helper is this program with [`CONFINE`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// The program to start.
    pub program: PathBuf,
    /// Its arguments, before those of the helper or the command.
    pub args: Vec<OsString>,
    /// Variables that the command needs.
    pub env: Vec<(String, String)>,
    /// Whether the arguments of the helper follow, or, on macOS, the command.
    pub needs_helper: bool,
    /// Paths whose disappearance makes the start fail. Another start does not need them.
    pub covered: Vec<PathBuf>,
}

/// The restrictions that the helper applies to itself and to the command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inner {
    /// The socket of the proxy, if connections must be forwarded.
    forward: Option<PathBuf>,
    /// The mounts that the helper makes.
    #[cfg(target_os = "linux")]
    frame: Option<Frame>,
    #[cfg(target_os = "linux")]
    paths: Option<Paths>,
    /// The objects that have to be at the paths of mounts that bubblewrap has made.
    #[cfg(target_os = "linux")]
    exact: Vec<Exact>,
    #[cfg(target_os = "linux")]
    sockets: Sockets,
    /// The names that the command cannot create.
    #[cfg(target_os = "linux")]
    names: Option<Names>,
}

/// The directory with devices, which each sandbox has for itself.
#[cfg(target_os = "linux")]
const DEVICES: &str = "/dev";

impl Launch {
    /// Describes the start of a command with the sandbox in a directory. `helper` is the path of this program.
    ///
    /// # Errors
    ///
    /// Fails without a mechanism, and if a path of the sandbox cannot be resolved.
    pub fn new(
        sandbox: &Sandbox,
        mechanism: &Mechanism,
        helper: &Path,
        directory: &Path,
    ) -> Result<Self, Error> {
        match mechanism {
            #[cfg(target_os = "linux")]
            Mechanism::Bubblewrap(program, mounter, creation) => {
                let steps = steps(sandbox)?;
                let names = names(sandbox, &steps, *creation);
                // The helper that makes mounts is not restricted yet, so no command may be able to exchange it.
                let (args, covered) = if *mounter == Mounter::Helper && !can_write(&steps, helper) {
                    let mut args = bubblewrap::namespaces(&sandbox.network);
                    args.push(helper.into());
                    args.extend(Inner::with_mounts(sandbox, &steps, directory, names)?);
                    (args, Vec::new())
                } else {
                    let inner = Inner { exact: exact(sandbox, &steps), ..Inner::in_namespaces(sandbox) };
                    let bubblewrap::Arguments { words: mut args, covered } =
                        bubblewrap::arguments(sandbox, steps, helper, directory);
                    args.push(bubblewrap::HELPER.into());
                    args.extend(Inner { names, ..inner }.arguments()?);
                    (args, covered)
                };
                let env = variables(Path::new(TEMPORARY), sandbox);
                Ok(Self { program: program.clone(), args, env, needs_helper: true, covered })
            }
            #[cfg(target_os = "linux")]
            Mechanism::Landlock(version) => {
                let args = Inner::with_landlock(sandbox, *version)?.arguments()?.into();
                let env = variables(&sandbox.temporary, sandbox);
                Ok(Self { program: helper.to_owned(), args, env, needs_helper: true, covered: Vec::new() })
            }
            Mechanism::Seatbelt => {
                let args = seatbelt::arguments(sandbox)?;
                let env = variables(&sandbox.temporary, sandbox);
                Ok(Self {
                    program: seatbelt::PROGRAM.into(),
                    args,
                    env,
                    needs_helper: false,
                    covered: Vec::new(),
                })
            }
            _ => Err(Error::Unsupported(Mechanism::Nothing.gaps().join(" "))),
        }
    }
}

#[cfg(target_os = "linux")]
impl Launch {
    /// Describes the start of a helper that waits for its restrictions, the [`plan`]. bubblewrap can be started before they
    /// are known, which saves time. `None` if the mechanism needs them at the start.
    #[must_use]
    pub fn waiting(sandbox: &Sandbox, mechanism: &Mechanism, helper: &Path) -> Option<Self> {
        let Mechanism::Bubblewrap(program, Mounter::Helper, _) = mechanism else { return None };
        let mut args = bubblewrap::namespaces(&sandbox.network);
        args.extend([helper.into(), CONFINE.into(), WAIT.into()]);
        let env = variables(Path::new(TEMPORARY), sandbox);
        Some(Self { program: program.clone(), args, env, needs_helper: true, covered: Vec::new() })
    }
}

/// The restrictions of a command in a directory, as a waiting helper reads them from its standard input. `None` if the
/// helper has to be started with them: they are long, or the command could exchange the helper.
///
/// # Errors
///
/// Fails if a path of the sandbox cannot be resolved.
#[cfg(target_os = "linux")]
pub fn plan(
    sandbox: &Sandbox,
    mechanism: &Mechanism,
    helper: &Path,
    directory: &Path,
) -> Result<Option<Vec<u8>>, Error> {
    let Mechanism::Bubblewrap(_, _, creation) = mechanism else { return Ok(None) };
    let steps = steps(sandbox)?;
    if can_write(&steps, helper) {
        return Ok(None);
    }
    // The first word is the argument that starts the helper.
    let names = names(sandbox, &steps, *creation);
    let words = Inner::with_mounts(sandbox, &steps, directory, names)?.split_off(1);
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    let text = words.join(&0);
    let length = u32::try_from(text.len()).ok().filter(|_| text.len() <= MAX_PLAN_BYTES);
    Ok(length.map(|length| [&length.to_le_bytes()[..], &text].concat()))
}

/// The names that a command with these mounts cannot create. `None` if they cannot be checked here, or need no check.
#[cfg(target_os = "linux")]
fn names(sandbox: &Sandbox, steps: &[Step], creation: Creation) -> Option<Names> {
    let writable = steps.iter().filter(|step| step.kind == Kind::Write).map(|step| step.path.clone());
    let writable: Vec<PathBuf> = writable.chain([TEMPORARY.into(), DEVICES.into()]).collect();
    match creation {
        Creation::Checked => Names::new(sandbox, &writable),
        Creation::Unchecked => None,
    }
}

/// Reads the words of a [`plan`] from standard input, and nothing after them.
#[cfg(target_os = "linux")]
fn read_plan() -> Result<Vec<OsString>, Error> {
    let invalid = || Error::Kernel("the restrictions are not complete".to_owned());
    let read = |bytes: &mut [u8]| {
        let mut filled = 0;
        while filled < bytes.len() {
            match rustix::io::read(std::io::stdin(), &mut bytes[filled..]) {
                Ok(0) => return Err(invalid()),
                Ok(count) => filled += count,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(Error::Kernel(format!("the restrictions: {error}"))),
            }
        }
        Ok(())
    };
    let mut length = [0; 4];
    read(&mut length)?;
    let length = usize::try_from(u32::from_le_bytes(length)).ok().filter(|length| *length <= MAX_PLAN_BYTES);
    let mut text = vec![0; length.ok_or_else(invalid)?];
    read(&mut text)?;
    Ok(text.split(|byte| *byte == 0).map(|word| OsString::from_vec(word.to_vec())).collect())
}

/// Describes no start: other systems need the restrictions at the start.
#[cfg(not(target_os = "linux"))]
impl Launch {
    /// Always `None`.
    #[must_use]
    pub fn waiting(_: &Sandbox, _: &Mechanism, _: &Path) -> Option<Self> {
        None
    }
}

/// Always `None`, because no helper waits on other systems.
///
/// # Errors
///
/// Never fails.
#[cfg(not(target_os = "linux"))]
pub fn plan(_: &Sandbox, _: &Mechanism, _: &Path, _: &Path) -> Result<Option<Vec<u8>>, Error> {
    Ok(None)
}

/// The objects that have to be at the paths of mounts, as the command sees them.
#[cfg(target_os = "linux")]
fn exact(sandbox: &Sandbox, steps: &[Step]) -> Vec<Exact> {
    let private = sandbox.opened_at(&sandbox.temporary).map(Opened::identity);
    let steps = steps.iter().filter_map(|step| Exact::of(&step.path, step.identity));
    steps.chain(Exact::of(Path::new(TEMPORARY), private)).collect()
}

/// The variables for the private directory and the proxy.
fn variables(temporary: &Path, sandbox: &Sandbox) -> Vec<(String, String)> {
    let mut variables = vec![("TMPDIR".to_owned(), temporary.to_string_lossy().into_owned())];
    let fixed: &[&[(&str, &str)]] = match sandbox.network {
        Network::Off => &[&IMPATIENT, &CURRENT, &OFFLINE],
        Network::Proxy(_) => &[&IMPATIENT, &CURRENT],
        Network::Open => &[],
    };
    let fixed = fixed.iter().copied().flatten();
    variables.extend(fixed.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    if let Network::Proxy(_) = sandbox.network {
        variables.extend(forward::proxy_variables());
    }
    variables
}

#[cfg(target_os = "linux")]
impl Inner {
    /// In namespaces whose mounts bubblewrap has made.
    fn in_namespaces(sandbox: &Sandbox) -> Self {
        let forward = match &sandbox.network {
            Network::Proxy(_) => Some(PROXY.into()),
            Network::Off | Network::Open => None,
        };
        Self { forward, frame: None, paths: None, exact: Vec::new(), sockets: Sockets::Any, names: None }
    }

    fn with_landlock(sandbox: &Sandbox, version: u32) -> Result<Self, Error> {
        // The namespace of the machine has no free port that only this command can reach, so there is no proxy.
        let sockets = if sandbox.network == Network::Open { Sockets::Any } else { Sockets::Pairs };
        let paths = Paths::new(sandbox, version)?;
        let names = if version >= LANDLOCK_WITH_RENAMES && creation::is_supported(Users::Shared) {
            let writable: Vec<PathBuf> = paths.write.iter().cloned().chain([DEVICES.into()]).collect();
            Names::new(sandbox, &writable)
        } else {
            None
        };
        Ok(Self { forward: None, frame: None, paths: Some(paths), exact: Vec::new(), sockets, names })
    }

    /// The arguments of a helper that makes the mounts.
    fn with_mounts(
        sandbox: &Sandbox,
        steps: &[Step],
        directory: &Path,
        names: Option<Names>,
    ) -> Result<Vec<OsString>, Error> {
        let real = |path: &Path| {
            std::fs::canonicalize(path).map_err(|source| Error::Path { path: path.to_owned(), source })
        };
        let proxy = match &sandbox.network {
            Network::Proxy(socket) => Some(real(socket)?),
            Network::Off | Network::Open => None,
        };
        let frame = Frame::new(directory, steps.len());
        let opened = sandbox.opened_at(&sandbox.temporary);
        let temporary = match opened {
            Some(opened) => opened.path().to_owned(),
            None => real(&sandbox.temporary)?,
        };
        let private = opened.map(Opened::identity);
        let blank = sandbox.blank.as_deref().map(real).transpose()?;
        let frame = Frame { temporary: Some(temporary), private, blank, proxy, ..frame };
        let arguments = Self { frame: Some(frame), names, ..Self::in_namespaces(sandbox) }.arguments()?;
        Ok(arguments.into_iter().chain(steps.iter().map(Step::word)).collect())
    }

    /// The arguments of a helper that restricts itself like every sandbox. The helper also makes the mounts if it is the
    /// mounter.
    pub(crate) fn probe(mounter: Mounter, creation: Creation) -> Result<[OsString; 2], Error> {
        let frame = match mounter {
            Mounter::Helper => Some(Frame::new(Path::new("/"), 0)),
            Mounter::Bubblewrap => None,
        };
        let names = match creation {
            Creation::Checked => Some(Names::default()),
            Creation::Unchecked => None,
        };
        Self { forward: None, frame, paths: None, exact: Vec::new(), sockets: Sockets::Any, names }
            .arguments()
    }

    /// The arguments of the helper.
    fn arguments(&self) -> Result<[OsString; 2], Error> {
        let text = serde_json::to_string(self).map_err(|error| Error::Kernel(error.to_string()))?;
        Ok([CONFINE.into(), text.into()])
    }
}

/// Applies the restrictions to the calling thread and to all processes that it starts from now on. Takes their arguments
/// from the beginning of `args`, or waits for a [`plan`] on standard input. The process must have one thread.
///
/// # Errors
///
/// Fails if the text is not an [`Inner`] or a restriction cannot be applied. The command must then not be
/// started.
#[cfg(target_os = "linux")]
pub fn restrict(args: &mut impl Iterator<Item = OsString>) -> Result<(), Error> {
    let text = args.next().unwrap_or_default();
    if text != WAIT {
        return apply(&text, args);
    }
    let mut words = read_plan()?.into_iter();
    let text = words.next().unwrap_or_default();
    apply(&text, &mut words)
}

/// Applies the restrictions of a text and its mounts.
#[cfg(target_os = "linux")]
fn apply(text: &OsStr, args: &mut impl Iterator<Item = OsString>) -> Result<(), Error> {
    let inner: Inner =
        serde_json::from_str(&text.to_string_lossy()).map_err(|error| Error::Kernel(error.to_string()))?;
    if let Some(frame) = &inner.frame {
        let steps: Option<Vec<Step>> = args.take(frame.steps).map(|word| Step::parse(&word)).collect();
        let steps = steps.filter(|steps| steps.len() == frame.steps);
        frame.build(&steps.ok_or_else(|| Error::Kernel("a mount is not valid".to_owned()))?)?;
    }
    for exact in &inner.exact {
        exact.identity.open(&exact.path)?;
    }
    let ports = inner.forward.as_ref().map(|socket| Ports::new(socket));
    if let (Some(socket), Some(ports)) = (inner.forward, &ports) {
        let started = forward::start(socket, ports.slots());
        started.map_err(|error| Error::Kernel(format!("the proxy's port: {error}")))?;
    }
    let users = if inner.paths.is_some() { Users::Shared } else { Users::Own };
    if let Some(paths) = &inner.paths {
        crate::privilege::reduce(users)?;
        paths.restrict()?;
    }
    if inner.names.is_none() && ports.is_none() {
        crate::privilege::reduce(users)?;
        return seccomp::restrict(inner.sockets);
    }
    let connections = ports.is_some();
    let free = inner.names.as_ref().map(|names| names.free.clone());
    let creation = inner
        .names
        .as_ref()
        .map(|names| if names.links.is_empty() { Removal::Permitted } else { Removal::Prevented });
    // The thread keeps a right of its own user namespace, and is not restricted below.
    let thread = creation::start(inner.names.unwrap_or_default(), ports)?;
    crate::privilege::reduce(users)?;
    if let (Some(free), Some(removal)) = (free, creation) {
        prevent_creation(&free, removal)?;
    }
    let listener = seccomp::restrict_watched(inner.sockets, Watched { creation, connections })?;
    thread.send(listener).map_err(|_| Error::Kernel("the thread for new files has ended".to_owned()))
}

/// Applies nothing: other systems restrict the process from outside.
///
/// # Errors
///
/// Always fails.
#[cfg(not(target_os = "linux"))]
pub fn restrict(_: &mut impl Iterator<Item = OsString>) -> Result<(), Error> {
    Err(Error::Unsupported("this system restricts processes from outside".to_owned()))
}
