//! The systems that a release has programs for.

use anyhow::{Context as _, Result};

/// A system.
pub(crate) struct Target {
    /// The name of the compiler's target.
    pub(crate) triple: &'static str,
    /// The name, the operating system and the processor of the npm package, and its C library if it needs one.
    pub(crate) npm: (&'static str, &'static str, &'static str, Option<&'static str>),
    /// The platform of the wheel. The version of glibc is filled in for `GLIBC`.
    pub(crate) wheel: &'static str,
    /// The processor in the words of Debian and the formats of nfpm, for packages of Linux systems.
    pub(crate) linux: Option<(&'static str, &'static [&'static str])>,
    /// The end of the names of programs.
    pub(crate) program_end: &'static str,
    /// The end of the name of the archive.
    pub(crate) archive_end: &'static str,
}

impl Target {
    /// The name of the archive of a version.
    pub(crate) fn archive(&self, version: &str) -> String {
        format!("codewright-{version}-{}.{}", self.triple, self.archive_end)
    }

    /// The name of the program.
    pub(crate) fn program(&self) -> String {
        format!("codewright{}", self.program_end)
    }
}

/// All systems.
pub(crate) const TARGETS: &[Target] = &[
    Target {
        triple: "x86_64-unknown-linux-gnu",
        npm: ("linux-x64", "linux", "x64", Some("glibc")),
        wheel: "manylinux_GLIBC_x86_64",
        linux: Some(("amd64", &["deb", "rpm", "archlinux"])),
        program_end: "",
        archive_end: "tar.gz",
    },
    Target {
        triple: "aarch64-unknown-linux-gnu",
        npm: ("linux-arm64", "linux", "arm64", Some("glibc")),
        wheel: "manylinux_GLIBC_aarch64",
        linux: Some(("arm64", &["deb", "rpm", "archlinux"])),
        program_end: "",
        archive_end: "tar.gz",
    },
    Target {
        triple: "x86_64-unknown-linux-musl",
        npm: ("linux-x64-musl", "linux", "x64", Some("musl")),
        wheel: "musllinux_1_1_x86_64",
        linux: Some(("amd64", &["apk"])),
        program_end: "",
        archive_end: "tar.gz",
    },
    Target {
        triple: "aarch64-unknown-linux-musl",
        npm: ("linux-arm64-musl", "linux", "arm64", Some("musl")),
        wheel: "musllinux_1_1_aarch64",
        linux: Some(("arm64", &["apk"])),
        program_end: "",
        archive_end: "tar.gz",
    },
    Target {
        triple: "x86_64-apple-darwin",
        npm: ("darwin-x64", "darwin", "x64", None),
        wheel: "macosx_11_0_x86_64",
        linux: None,
        program_end: "",
        archive_end: "tar.gz",
    },
    Target {
        triple: "aarch64-apple-darwin",
        npm: ("darwin-arm64", "darwin", "arm64", None),
        wheel: "macosx_11_0_arm64",
        linux: None,
        program_end: "",
        archive_end: "tar.gz",
    },
    Target {
        triple: "x86_64-pc-windows-msvc",
        npm: ("win32-x64", "win32", "x64", None),
        wheel: "win_amd64",
        linux: None,
        program_end: ".exe",
        archive_end: "zip",
    },
];

/// The system with this name.
pub(crate) fn named(triple: &str) -> Result<&'static Target> {
    let known = || TARGETS.iter().map(|target| target.triple).collect::<Vec<_>>().join(", ");
    TARGETS
        .iter()
        .find(|target| target.triple == triple)
        .with_context(|| format!("there are no releases for `{triple}`, only for {}", known()))
}

/// The system of this machine.
pub(crate) fn of_this_machine() -> Result<&'static Target> {
    let system = match std::env::consts::OS {
        "macos" => "apple-darwin",
        _ if cfg!(target_env = "musl") => "unknown-linux-musl",
        _ => "unknown-linux-gnu",
    };
    named(&format!("{}-{system}", std::env::consts::ARCH))
}
