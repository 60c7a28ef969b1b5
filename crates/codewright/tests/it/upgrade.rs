//! `upgrade` replaces a program of the install script with a signed newer one, and nothing else.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::json;
use tempfile::TempDir;

const TARGET: &str = "x86_64-test";

type Files = Arc<Mutex<HashMap<String, Vec<u8>>>>;

/// A server with releases, and an installed program.
struct Installed {
    folder: TempDir,
    files: Files,
    source: String,
}

fn key(seed: u8) -> Result<Ed25519KeyPair> {
    Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).ok().context("a key")
}

fn public(pair: &Ed25519KeyPair) -> String {
    STANDARD.encode([b"Ed".as_slice(), &[7; 8], pair.public_key().as_ref()].concat())
}

fn signature(pair: &Ed25519KeyPair, bytes: &[u8]) -> String {
    let signature = pair.sign(bytes);
    let line = STANDARD.encode([b"Ed".as_slice(), &[7; 8], signature.as_ref()].concat());
    let whole = STANDARD.encode(pair.sign(&[signature.as_ref(), b"release"].concat()).as_ref());
    format!("untrusted comment: x\n{line}\ntrusted comment: release\n{whole}\n")
}

fn archive(script: &str) -> Result<Vec<u8>> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let mut header = tar::Header::new_gnu();
    header.set_size(script.len() as u64);
    header.set_mode(0o644);
    tar.append_data(&mut header, "codewright-x/codewright", script.as_bytes())?;
    Ok(tar.into_inner()?.finish()?)
}

fn serve(files: &Files) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let source = format!("http://{}", listener.local_addr()?);
    let files = Arc::clone(files);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            answer(stream, &files).ok();
        }
    });
    Ok(source)
}

fn answer(mut stream: TcpStream, files: &Files) -> Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().context("no request")??;
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let found = files.lock().ok().and_then(|files| files.get(&path).cloned());
    let status = if found.is_some() { "200 OK" } else { "404 Not Found" };
    let bytes = found.unwrap_or_default();
    write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", bytes.len())?;
    Ok(stream.write_all(&bytes)?)
}

impl Installed {
    fn new() -> Result<Self> {
        let files = Files::default();
        let source = serve(&files)?;
        let folder = TempDir::new()?;
        fs::create_dir(folder.path().join("bin"))?;
        let installed = Self { folder, files, source };
        let (from, to) = (env!("CARGO_BIN_EXE_codewright"), installed.program());
        fs::hard_link(from, &to).or_else(|_| fs::copy(from, &to).map(drop))?;
        installed.receipt(&public(&key(1)?))?;
        Ok(installed)
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("bin/codewright")
    }

    fn receipt(&self, key: &str) -> Result<()> {
        let receipt = json!({
            "method": "script", "version": "0.1.0", "target": TARGET, "source": self.source, "key": key,
        });
        Ok(fs::write(self.folder.path().join("bin/codewright.receipt.json"), receipt.to_string())?)
    }

    /// Publishes a version with a program that prints `prints`, signed by the key of a seed.
    fn publish(&self, version: &str, prints: &str, seed: u8) -> Result<()> {
        let bytes = archive(&format!("#!/bin/sh\necho '{prints} (interface)'\n"))?;
        let digest = ring::digest::digest(&ring::digest::SHA256, &bytes);
        let digest: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let file = json!({ "target": TARGET, "name": "a.tar.gz", "size": bytes.len(), "sha256": digest });
        let manifest = json!({ "version": version, "files": [file] }).to_string();
        let signature = signature(&key(seed)?, manifest.as_bytes());
        for place in ["latest/download".to_owned(), format!("download/v{version}")] {
            self.put(&format!("/{place}/manifest.json"), manifest.as_bytes());
            self.put(&format!("/{place}/manifest.json.minisig"), signature.as_bytes());
        }
        self.put(&format!("/download/v{version}/a.tar.gz"), &bytes);
        Ok(())
    }

    fn put(&self, path: &str, bytes: &[u8]) {
        self.files.lock().unwrap().insert(path.to_owned(), bytes.to_owned());
    }

    fn run(&self, arguments: &[&str]) -> Result<Output> {
        let mut command = Command::new(self.program());
        let home = self.folder.path();
        Ok(command.args(arguments).env_clear().env("HOME", home).env("PATH", "/usr/bin:/bin").output()?)
    }

    /// Checks that an upgrade fails with a message, and that the program stays as it was.
    #[track_caller]
    fn fails(&self, arguments: &[&str], message: &str) -> Result<()> {
        let before = fs::metadata(self.program())?.len();
        let done = self.run(arguments)?;
        let text = String::from_utf8_lossy(&done.stderr).into_owned();
        ensure!(!done.status.success() && text.contains(message), "{text}");
        ensure!(fs::metadata(self.program())?.len() == before, "the program was replaced");
        let names = fs::read_dir(self.folder.path().join("bin"))?.count();
        ensure!(names == 2, "files stay in the directory");
        Ok(())
    }
}

#[test]
fn a_signed_newer_version_replaces_the_program_and_the_old_one_comes_back() -> Result<()> {
    let installed = Installed::new()?;
    installed.publish("9.9.9", "9.9.9", 1)?;
    let checked = installed.run(&["upgrade", "--check"])?;
    ensure!(String::from_utf8_lossy(&checked.stdout).contains("version 9.9.9 is available"));
    let done = installed.run(&["upgrade"])?;
    ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(installed.run(&["--version"])?.stdout, b"9.9.9 (interface)\n");
    let mode = fs::metadata(installed.program())?.permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
    // The old program under its own name again.
    let previous = installed.folder.path().join("bin/codewright.previous");
    fs::rename(&previous, installed.program())?;
    fs::write(&previous, "#!/bin/sh\necho 9.9.9\n")?;
    fs::set_permissions(&previous, fs::Permissions::from_mode(0o755))?;
    let done = installed.run(&["upgrade", "--rollback"])?;
    ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(installed.run(&["--version"])?.stdout, b"9.9.9\n");
    Ok(())
}

#[test]
fn a_release_that_is_not_what_was_signed_changes_nothing() -> Result<()> {
    let installed = Installed::new()?;
    installed.fails(&["upgrade"], "404")?;
    installed.publish("9.9.9", "9.9.9", 2)?;
    installed.fails(&["upgrade"], "is not signed with the key")?;
    installed.publish("9.9.9", "9.9.8", 1)?;
    installed.fails(&["upgrade"], "has version 9.9.8 instead of 9.9.9")?;
    installed.publish("9.9.9", "9.9.9", 1)?;
    let name = "/download/v9.9.9/a.tar.gz";
    let whole = installed.files.lock().unwrap()[name].clone();
    installed.put(name, &whole[..whole.len() - 1]);
    installed.fails(&["upgrade"], "ended after")?;
    installed.put(name, &[b"x", &whole[1..]].concat());
    installed.fails(&["upgrade"], "another digest")?;
    installed.put(name, &[whole.as_slice(), b"x"].concat());
    installed.fails(&["upgrade"], "more than")?;
    installed.put("/latest/download/manifest.json.minisig", b"x");
    installed.fails(&["upgrade"], "signature of the release is damaged")?;
    Ok(())
}

#[test]
fn an_older_version_needs_its_name() -> Result<()> {
    let installed = Installed::new()?;
    installed.publish("0.0.1", "0.0.1", 1)?;
    installed.fails(&["upgrade"], "the newest published version is 0.0.1")?;
    installed.fails(&["upgrade", "../x"], "is not a version")?;
    let done = installed.run(&["upgrade", "v0.0.1"])?;
    ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(installed.run(&["--version"])?.stdout, b"0.0.1 (interface)\n");
    Ok(())
}

#[test]
fn a_damaged_receipt_and_a_missing_key_are_errors() -> Result<()> {
    let installed = Installed::new()?;
    installed.publish("9.9.9", "9.9.9", 1)?;
    installed.receipt("")?;
    installed.fails(&["upgrade"], "has no valid public key")?;
    fs::write(installed.folder.path().join("bin/codewright.receipt.json"), "{")?;
    installed.fails(&["upgrade"], "is not a receipt of the install script")?;
    Ok(())
}

#[test]
fn uninstall_deletes_the_program_of_the_install_script() -> Result<()> {
    let installed = Installed::new()?;
    let done = installed.run(&["uninstall", "--force"])?;
    ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(fs::read_dir(installed.folder.path().join("bin"))?.count(), 0);
    Ok(())
}
