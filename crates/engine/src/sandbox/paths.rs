//! The files and directories that the sandbox treats specially.

pub(super) use codewright_permission::SECRETS;

/// Configuration directories of this program and of OpenCode in the home directory.
pub(super) const OWN: &[&str] = &[".opencode", ".codewright"];

/// The directory of installed programs in one of them.
pub(super) const PROGRAMS: &str = "bin";

/// Files in the configuration directories that may contain keys.
pub(super) const SETTINGS: &[&str] =
    &["opencode.json", "opencode.jsonc", "config.json", "codewright.json", "codewright.jsonc"];

/// Sockets and files of services that act for the user or for the system.
pub(super) const SERVICES: &[&str] = &[
    "/run",
    "/var/run",
    "/var/lib/docker",
    "/var/lib/containerd",
    "/var/lib/lxd",
    "/var/snap/lxd",
    "/var/spool/cron",
    "/nix/var/nix/daemon-socket",
    "/var/lib/systemd",
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssl/private",
    "/boot",
    "/lost+found",
];

/// Directories in the ones above that contain programs and settings.
pub(super) const VISIBLE: &[&str] = &[
    "/run/current-system",
    "/run/booted-system",
    "/run/wrappers",
    "/run/opengl-driver",
    "/run/systemd/resolve",
];
