//! The first start after an installation, in empty root file systems: no network, no git, no certificates, no home.
//!
//! The root has the program, the libraries that it names, and busybox. Each step runs in new
//! namespaces, so its mounts and processes end with it.

mod root;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use codewright_testkit::{BlockingServer, Project, Script, Terminal, TerminalOptions};
use serde_json::json;

use self::root::{Network, Place, Root, User};

/// What the scripted model answers.
const ANSWER: &str = "Hello from behind the proxy.";
/// The certificates of the tests, whose server is `model.test`.
const CERTIFICATES: &str = "crates/llm/tests/it/tls";
/// The source of the proxy.
const PROXY: &str = include_str!("first_run/proxy.py");
/// The end of the demo if all went well.
const DEMO_END: &str = "The test passes now.";
/// A home in the root that can only be read in the steps with [`READ_ONLY_HOME`].
const HOME: (&str, &str) = ("HOME", "/home/user");
const READ_ONLY_HOME: &str =
    "mount --bind \"$root/home\" \"$root/home\"; mount -o remount,ro,bind \"$root/home\"";
const READ_ONLY_ROOT: &str = "mount --rbind \"$root\" \"$root\"; mount -o remount,ro,bind \"$root\"; mount -t tmpfs tmpfs \"$root/tmp\"";
const NO_DEVICES: &str = "umount -l \"$root/dev\"; mount -t tmpfs tmpfs \"$root/dev\"; : >\"$root/dev/null\"; chmod 666 \"$root/dev/null\"";

/// A start of the program, with the expected exit code and output.
struct Step {
    name: &'static str,
    place: Place,
    variables: &'static [(&'static str, &'static str)],
    arguments: &'static [&'static str],
    code: i32,
    expected: &'static str,
}

impl Step {
    const fn new(
        name: &'static str,
        variables: &'static [(&'static str, &'static str)],
        arguments: &'static [&'static str],
        expected: &'static str,
    ) -> Self {
        Self { name, place: Place::PLAIN, variables, arguments, code: 0, expected }
    }

    const fn fails(self) -> Self {
        Self { code: 1, ..self }
    }

    const fn with(self, mounts: &'static str) -> Self {
        Self { place: Place { mounts, ..self.place }, ..self }
    }

    const fn of(self, user: User) -> Self {
        Self { place: Place { user, ..self.place }, ..self }
    }
}

/// The starts without a network.
const STEPS: [Step; 13] = [
    Step::new("starts with the libraries that it names", &[], &["--version"], "interface of OpenCode"),
    Step::new("demo as root, without a network, git and certificates", &[HOME], &["demo"], DEMO_END),
    Step::new("demo of a user without a name", &[("HOME", "/")], &["demo"], DEMO_END).of(User::Unnamed),
    Step::new("demo without HOME", &[], &["demo"], DEMO_END),
    Step::new("demo with a home that does not exist", &[("HOME", "/missing")], &["demo"], DEMO_END),
    Step::new("demo with a home that can only be read", &[HOME], &["demo"], DEMO_END).with(READ_ONLY_HOME),
    Step::new("demo in a root that can only be read", &[HOME], &["demo"], DEMO_END).with(READ_ONLY_ROOT),
    Step::new("demo without devices", &[HOME], &["demo"], DEMO_END).with(NO_DEVICES),
    Step::new("run without a provider says what to do", &[HOME], &["run", "hi"], "providers login").fails(),
    Step::new("a home that can only be read is named", &[HOME], &["run", "hi"], "set XDG_DATA_HOME")
        .with(READ_ONLY_HOME)
        .fails(),
    Step::new(
        "sessions can be elsewhere than in such a home",
        &[HOME, ("XDG_DATA_HOME", "/tmp/data")],
        &["session", "list"],
        "",
    )
    .with(READ_ONLY_HOME),
    Step::new(
        "without HOME the system's directory of the user is used",
        &[],
        &["debug", "paths"],
        "/root/.local",
    ),
    Step::new("doctor says that git is missing", &[HOME], &["doctor"], "install git").fails(),
];

/// The results.
#[derive(Default)]
struct Report {
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl Report {
    fn note(&mut self, name: &str, result: Result<()>) -> Result<()> {
        let mut out = std::io::stdout();
        match result {
            Ok(()) => {
                self.passed += 1;
                writeln!(out, "ok       {name}")?;
            }
            Err(error) => {
                self.failed += 1;
                writeln!(out, "FAILED   {name}: {error:#}")?;
            }
        }
        Ok(())
    }

    fn skip(&mut self, name: &str, reason: &str) -> Result<()> {
        self.skipped += 1;
        writeln!(std::io::stdout(), "skipped  {name}: {reason}")?;
        Ok(())
    }
}

/// Plays all steps.
pub(crate) fn main(rest: &[String]) -> Result<ExitCode> {
    let (mut program, mut own_root, mut oldest) = (None, None, None);
    let mut rest = rest.iter();
    while let Some(flag) = rest.next() {
        match flag.as_str() {
            "--bin" => program = Some(PathBuf::from(crate::value(flag, &mut rest)?)),
            "--root" => own_root = Some(PathBuf::from(crate::value(flag, &mut rest)?)),
            "--glibc" => oldest = Some(crate::value(flag, &mut rest)?.to_owned()),
            other => bail!("`first-run` has no flag `{other}`; see `cargo xtask --help`"),
        }
    }
    let program = program.context("`first-run` needs `--bin PATH`")?;
    let mut report = Report::default();
    glibc(&program, oldest.as_deref(), &mut report)?;
    match Root::new(&program, own_root.as_deref()) {
        Ok(root) => play(&root, &mut report)?,
        Err(reason) => report.skip("all steps in an empty root", &format!("{reason:#}"))?,
    }
    let all = report.passed + report.failed;
    writeln!(std::io::stdout(), "{} of {all} steps, {} skipped", report.passed, report.skipped)?;
    Ok(if report.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn play(root: &Root, report: &mut Report) -> Result<()> {
    for step in STEPS {
        if step.place.user == User::Unnamed && !root.can_change_user() {
            report.skip(step.name, "only root can become another user")?;
            continue;
        }
        if root.is_foreign() && step.expected == "install git" {
            report.skip(step.name, "the given root may have git")?;
            continue;
        }
        let result = root.run(&step).and_then(|output| {
            ensure!(
                output.code == Some(step.code) && output.text.contains(step.expected),
                "code {:?} instead of {}, and `{}` in: {}",
                output.code,
                step.code,
                step.expected,
                output.text.trim()
            );
            Ok(())
        });
        report.note(step.name, result)?;
    }
    report.note("the terminal client shows its first frame", frame(root))?;
    let name = "a proxy with a certificate of its own";
    if Command::new("python3").arg("--version").output().is_err() {
        return report.skip(name, "python3 is not installed");
    }
    report.note(name, proxy(root))
}

/// Compares the newest symbol of glibc that the program needs with the limit.
fn glibc(program: &Path, oldest: Option<&str>, report: &mut Report) -> Result<()> {
    let bytes = std::fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
    let needed = crate::dist::glibc(&bytes);
    let name = match needed {
        Some(minor) => format!("needs glibc 2.{minor}"),
        None => "needs no glibc".to_owned(),
    };
    let Some(oldest) = oldest else {
        return report.note(&name, Ok(()));
    };
    let limit: u32 =
        oldest.strip_prefix("2.").and_then(|minor| minor.parse().ok()).context("`--glibc 2.N`")?;
    let held = || {
        ensure!(needed.unwrap_or(0) <= limit, "the limit is 2.{limit}");
        Ok(())
    };
    report.note(&name, held())
}

/// Opens the terminal client, which has to draw itself without a database of terminals.
fn frame(root: &Root) -> Result<()> {
    let project = Project::plain()?;
    let words = root.words(Place::PLAIN, &[]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (first, rest) = words.split_first().context("no command")?;
    let options = TerminalOptions {
        program: first.as_ref(),
        args: rest,
        project: &project,
        variables: &[("HOME", "/home/user"), ("PATH", root::OUTER_PATH)],
        size: (80, 24),
    };
    let terminal = Terminal::start(&options)?;
    terminal.shows("Ask anything")?;
    Ok(())
}

/// Talks to a model behind a proxy: with its certificate it works, without it the error names the variable.
fn proxy(root: &Root) -> Result<()> {
    let model = BlockingServer::start(Script::new().text(ANSWER).text(ANSWER))?;
    let port = model.url().rsplit(':').next().unwrap_or_default().to_owned();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("no workspace")?.join(CERTIFICATES);
    let mut proxy = Proxy::start(&port, &folder)?;
    let address = format!("http://127.0.0.1:{}", proxy.port()?);
    std::fs::copy(folder.join("authority.pem"), root.path().join("tmp/authority.pem"))?;
    let config = json!({
        "model": "own/plain-model",
        "provider": {"own": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": "https://model.test/v1", "apiKey": "sk-own"},
            "models": {"plain-model": {}},
        }},
    });
    let config = config.to_string();
    let variables = [
        ("HOME", "/home/user"),
        ("HTTPS_PROXY", address.as_str()),
        ("OPENCODE_CONFIG_CONTENT", config.as_str()),
        ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
    ];
    let place = Place { network: Network::Host, ..Place::PLAIN };
    let without = root.start(place, &variables, &["run", "hi"])?;
    ensure!(
        without.code == Some(1) && without.text.contains("NODE_EXTRA_CA_CERTS"),
        "without the certificate: code {:?}, {}",
        without.code,
        without.text
    );
    for variable in ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"] {
        let mut variables = variables.to_vec();
        variables.push((variable, "/tmp/authority.pem"));
        let with = root.start(place, &variables, &["run", "hi"])?;
        ensure!(
            with.code == Some(0) && with.text.contains(ANSWER),
            "with {variable}: code {:?}, {}",
            with.code,
            with.text
        );
    }
    Ok(())
}

/// The process of the proxy, which ends with this value.
struct Proxy(Child);

impl Proxy {
    fn start(model: &str, certificates: &Path) -> Result<Self> {
        let child = Command::new("python3")
            .args(["-c", PROXY, model])
            .args([certificates.join("server.pem"), certificates.join("key.pem")])
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start python3")?;
        Ok(Self(child))
    }

    fn port(&mut self) -> Result<u16> {
        let output = self.0.stdout.take().context("the proxy has no output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        line.trim().parse().context("the proxy did not start")
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
