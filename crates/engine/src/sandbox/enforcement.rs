//! How far this machine enforces the mode of a command.
//!
//! A command whose mode cannot be enforced needs a reply of the user, whatever the rules allow, except rules that
//! name the command. Another sandbox around this program, such as a container, replaces the reply.

use codewright_config::{NetworkAccess, SandboxMode, env};
use codewright_proto::Rule;
use codewright_tools::{Ask, Permission, Policy};
use codewright_workspace::{Mechanism, Probe, Strongest, probe_sandbox};

use crate::inner::Inner;
use crate::instance::Instance;
use crate::permission::rules::{PermissionRules, required_sandbox};

/// What a user can do if commands cannot be restricted.
const REMEDY: &str = "Install bubblewrap and allow user namespaces, or set `sandbox.outer` to `true` if a container \
                      already is a sandbox, or `sandbox.mode` to `off`";

/// How far the kernel enforces the mode of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Enforcement {
    /// The mode is `off`.
    Off,
    /// The kernel enforces the mode.
    Whole,
    /// The kernel does not enforce the mode, and another sandbox contains this program.
    Outer,
    /// The kernel does not enforce the mode. Holds the reason and the remedy for users.
    Lacking(String),
}

/// Whether a user or a rule decided about a command although the mode is not enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consent {
    Given,
    Missing,
}

impl Consent {
    /// The consent that granted permissions contain. A line without a permission request only changes directories.
    pub(crate) fn of(granted: &[Ask]) -> Self {
        let mut commands = granted.iter().filter(|ask| ask.permission == Permission::Bash);
        let is_given = |ask: &Ask| matches!(ask.policy, Policy::Unenforced { .. });
        if commands.all(is_given) { Self::Given } else { Self::Missing }
    }
}

impl Inner {
    /// Returns what this machine can enforce. The first call starts a process, on a thread that may wait.
    pub(crate) async fn sandbox_support(&self) -> Probe {
        let probe = || async {
            let confinement = self.confinement.clone();
            let strongest = Strongest::parse(self.env.get(env::SANDBOX_MECHANISM).unwrap_or_default());
            let probe = tokio::task::spawn_blocking(move || probe_sandbox(&confinement, strongest)).await;
            probe.unwrap_or_else(|error| Probe {
                mechanism: Mechanism::Nothing,
                reasons: vec![error.to_string()],
                in_container: false,
            })
        };
        self.sandbox_probe.get_or_init(probe).await.clone()
    }
}

/// The mode that holds for the commands of an instance if an agent requires another one.
pub(crate) fn mode(inner: &Inner, instance: &Instance, required: SandboxMode) -> SandboxMode {
    let configured = inner.sandbox_mode.get().copied().or(instance.sandbox.mode);
    strictest(configured.unwrap_or(SandboxMode::Workspace), required)
}

/// An agent can only make the mode stricter, and does not switch the sandbox on.
pub(crate) fn strictest(configured: SandboxMode, required: SandboxMode) -> SandboxMode {
    match configured {
        SandboxMode::Off => SandboxMode::Off,
        mode => mode.max(required),
    }
}

/// Says for the model what commands can do. It names the mode that is configured or that the session requires, which is the same in a whole session, so that
/// providers can cache it, and no process is started to find out what the machine enforces.
pub(crate) fn announced(inner: &Inner, instance: &Instance, session: &[Rule]) -> String {
    announcement(mode(inner, instance, required_sandbox(session)), instance.sandbox.network)
}

fn announcement(mode: SandboxMode, network: NetworkAccess) -> String {
    let writes = match mode {
        SandboxMode::Off => return "Commands run without a sandbox (mode `off`).".to_owned(),
        SandboxMode::Workspace => "the project and a private temporary directory",
        SandboxMode::ReadOnly => "only a private temporary directory",
    };
    let network = match network {
        NetworkAccess::Off => "have no network",
        NetworkAccess::Proxy => "reach only hosts that a rule or the user allows",
        NetworkAccess::Open => "have the whole network",
    };
    format!("Commands run in a sandbox (mode `{}`): they can write {writes}, and {network}.", mode.name())
}

/// Returns how far the mode of a session's commands is enforced.
pub(crate) async fn enforcement(inner: &Inner, instance: &Instance, rules: &PermissionRules) -> Enforcement {
    let mode = mode(inner, instance, rules.sandbox());
    // Where the mode is off, no process is started to find out.
    if mode == SandboxMode::Off {
        return Enforcement::Off;
    }
    Enforcement::of(mode, &inner.sandbox_support().await, has_outer(inner, instance))
}

/// Whether the configuration or the environment states that another sandbox contains this program.
pub(crate) fn has_outer(inner: &Inner, instance: &Instance) -> Outer {
    let is_stated = instance.sandbox.has_outer || inner.env.is_on(env::SANDBOX_OUTER);
    if is_stated { Outer::Stated } else { Outer::Unknown }
}

/// Whether another sandbox contains this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outer {
    Stated,
    Unknown,
}

impl Enforcement {
    /// Returns how far a machine enforces a mode.
    pub(crate) fn of(mode: SandboxMode, support: &Probe, outer: Outer) -> Self {
        let is_whole = match mode {
            SandboxMode::Off => return Self::Off,
            SandboxMode::Workspace => support.mechanism.is_complete(),
            SandboxMode::ReadOnly => support.mechanism.prevents_writing(),
        };
        match (is_whole, outer) {
            (true, _) => Self::Whole,
            (false, Outer::Stated) => Self::Outer,
            (false, Outer::Unknown) => Self::Lacking(reason(support)),
        }
    }

    /// Marks the permission requests of a command whose mode is not enforced, so that they need a reply.
    pub(crate) fn mark(&self, asks: &mut [Ask]) {
        let Self::Lacking(reason) = self else { return };
        for ask in asks.iter_mut().filter(|ask| ask.permission == Permission::Bash) {
            // The reply "always" covers exactly these commands, and no similar ones.
            ask.always.clone_from(&ask.patterns);
            ask.set_policy(Policy::Unenforced { reason: reason.clone() });
        }
    }
}

fn reason(support: &Probe) -> String {
    let gaps = support.mechanism.gaps().join(" ");
    format!("This machine cannot enforce the sandbox: {}. {gaps} {REMEDY}.", support.reasons.join("; "))
}

#[cfg(test)]
mod tests {
    use codewright_workspace::{Creation, Mounter};

    use super::*;

    fn probe(mechanism: Mechanism) -> Probe {
        Probe { mechanism, reasons: vec!["bubblewrap is not installed".to_owned()], in_container: false }
    }

    #[test]
    fn a_mode_is_whole_only_if_the_mechanism_keeps_all_of_its_promises() {
        use SandboxMode::{Off, ReadOnly, Workspace};
        let bubblewrap =
            || Mechanism::Bubblewrap("/usr/bin/bwrap".into(), Mounter::Helper, Creation::Checked);
        for (mode, mechanism, is_whole) in [
            (Workspace, bubblewrap(), true),
            (ReadOnly, bubblewrap(), true),
            (Workspace, Mechanism::Landlock(6), false),
            (ReadOnly, Mechanism::Landlock(6), true),
            (ReadOnly, Mechanism::Landlock(5), false),
            (Workspace, Mechanism::Nothing, false),
            (ReadOnly, Mechanism::Nothing, false),
        ] {
            let found = Enforcement::of(mode, &probe(mechanism.clone()), Outer::Unknown);
            assert_eq!(found == Enforcement::Whole, is_whole, "{mode} {mechanism:?}");
            assert_eq!(matches!(found, Enforcement::Lacking(_)), !is_whole, "{mode} {mechanism:?}");
            let inside = Enforcement::of(mode, &probe(mechanism), Outer::Stated);
            assert_eq!(inside == Enforcement::Outer, !is_whole, "{mode}");
        }
        assert_eq!(Enforcement::of(Off, &probe(Mechanism::Nothing), Outer::Unknown), Enforcement::Off);
    }

    #[test]
    fn only_a_marked_command_has_consent() {
        let mut asks = vec![Ask::new("external_directory", vec!["/x/*".to_owned()])];
        assert_eq!(Consent::of(&asks), Consent::Given, "the line only changes directories");
        asks.push(Ask::new("bash", vec!["make".to_owned()]));
        assert_eq!(Consent::of(&asks), Consent::Missing);
        Enforcement::Whole.mark(&mut asks);
        assert_eq!(Consent::of(&asks), Consent::Missing);
        Enforcement::Lacking("why".to_owned()).mark(&mut asks);
        assert_eq!(Consent::of(&asks), Consent::Given);
        assert_eq!(asks[1].always, ["make"]);
        assert!(asks[0].policy == Policy::Rules);
    }
}
