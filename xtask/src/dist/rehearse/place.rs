//! A server of this machine that publishes releases, and is a registry of npm.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

/// The longest request line that is read.
const LINE_LIMIT_BYTES: u64 = 8 * 1024;

/// The server, whose files are below a directory.
pub(in crate::dist) struct Place {
    folder: PathBuf,
    port: u16,
}

impl Place {
    /// Starts the server. It ends with the process.
    pub(in crate::dist) fn start(folder: PathBuf) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        fs::create_dir_all(&folder)?;
        let served = folder.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that goes away needs no answer.
                drop(answer(stream, &served));
            }
        });
        Ok(Self { folder, port })
    }

    /// The address below which releases are.
    pub(in crate::dist) fn address(&self) -> String {
        format!("http://127.0.0.1:{}/releases", self.port)
    }

    pub(in crate::dist) fn registry_address(&self) -> String {
        format!("http://127.0.0.1:{}/npm/", self.port)
    }

    /// The file of a release, as it is served.
    pub(in crate::dist) fn file(&self, version: &str, name: &str) -> PathBuf {
        self.folder.join("releases/download").join(format!("v{version}")).join(name)
    }

    /// Publishes the files of a directory as a version, which becomes the newest one.
    pub(in crate::dist) fn publish(&self, from: &Path, version: &str) -> Result<()> {
        for folder in [
            self.folder.join(format!("releases/download/v{version}")),
            self.folder.join("releases/latest/download"),
        ] {
            fs::create_dir_all(&folder)?;
            for entry in fs::read_dir(from)? {
                let entry = entry?;
                fs::copy(entry.path(), folder.join(entry.file_name()))?;
            }
        }
        Ok(())
    }

    /// Publishes packages of npm.
    pub(in crate::dist) fn registry(&self, from: &Path, version: &str, names: &[String]) -> Result<()> {
        for name in names {
            let file = format!("npm-{name}-{version}.tgz");
            let bytes = fs::read(from.join(&file))?;
            let digest = ring::digest::digest(&ring::digest::SHA512, &bytes);
            let mut manifest = manifest(&bytes)?;
            manifest["dist"] = json!({
                "tarball": format!("{}{file}", self.registry_address()),
                "integrity": format!("sha512-{}", STANDARD.encode(digest)),
            });
            let full = manifest["name"].as_str().context("the package has no name")?.to_owned();
            let list = json!({ "name": full, "dist-tags": { "latest": version }, "versions": { version: manifest } });
            let folder = self.folder.join("npm");
            fs::create_dir_all(&folder)?;
            // npm asks for `@scope%2fname`.
            fs::write(folder.join(full.replace('/', "%2f")), serde_json::to_vec(&list)?)?;
            fs::write(folder.join(file), bytes)?;
        }
        Ok(())
    }
}

/// The `package.json` of a package.
fn manifest(bytes: &[u8]) -> Result<serde_json::Value> {
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(bytes));
    for entry in archive.entries()? {
        let entry = entry?;
        if entry.path()?.ends_with("package.json") {
            return Ok(serde_json::from_reader(entry)?);
        }
    }
    anyhow::bail!("the package has no package.json")
}

fn answer(mut stream: TcpStream, folder: &Path) -> Result<()> {
    let mut lines = BufReader::new(std::io::Read::take(stream.try_clone()?, LINE_LIMIT_BYTES));
    let mut first = String::new();
    lines.read_line(&mut first)?;
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
    }
    let path = first.split(' ').nth(1).unwrap_or_default().trim_start_matches('/');
    let is_inside = !path.split('/').any(|part| part == "..");
    let found = fs::read(folder.join(path)).ok().filter(|_| is_inside);
    let status = if found.is_some() { "200 OK" } else { "404 Not Found" };
    let bytes = found.unwrap_or_default();
    write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", bytes.len())?;
    stream.write_all(&bytes)?;
    Ok(())
}
