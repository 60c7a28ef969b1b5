//! Published releases: a signed manifest, and archives that it names with size and digest.

use std::cmp::Ordering;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use codewright_llm::Client;
use minisign_verify::{PublicKey, Signature};
use semver::Version;
use serde::Deserialize;
use url::Url;

use super::receipt::Receipt;
use crate::clean::clean_line;

const MANIFEST: &str = "manifest.json";
const SIGNATURE: &str = "manifest.json.minisig";
const MANIFEST_LIMIT_BYTES: usize = 64 * 1024;
const SIGNATURE_LIMIT_BYTES: usize = 2 * 1024;
/// The largest archive.
const ARCHIVE_LIMIT_BYTES: u64 = 64 * 1024 * 1024;
/// The deadline for a manifest or a signature.
const MANIFEST_DEADLINE: Duration = Duration::from_secs(20);
/// The deadline for an archive.
const ARCHIVE_DEADLINE: Duration = Duration::from_secs(300);
/// Servers of releases send files from other hosts.
const REDIRECTS_LIMIT: usize = 5;

/// What a release consists of.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Manifest {
    pub(super) version: String,
    files: Vec<Archive>,
}

/// An archive with the program for a system.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Archive {
    target: String,
    pub(super) name: String,
    pub(super) size: u64,
    sha256: String,
}

impl Manifest {
    /// The archive for a system.
    pub(super) fn file(&self, target: &str) -> anyhow::Result<&Archive> {
        let file = self.files.iter().find(|file| file.target == target);
        let file = file
            .with_context(|| format!("version {} has no archive for {}", self.version, clean_line(target)))?;
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        ensure!(file.name.bytes().all(is_name), "the name of the archive is not valid");
        ensure!(file.size <= ARCHIVE_LIMIT_BYTES, "the archive is larger than {ARCHIVE_LIMIT_BYTES} bytes");
        Ok(file)
    }
}

/// Compares two versions.
pub(super) fn compare(one: &str, other: &str) -> anyhow::Result<Ordering> {
    let parse =
        |text: &str| Version::parse(text).with_context(|| format!("`{}` is not a version", clean_line(text)));
    Ok(parse(one)?.cmp(&parse(other)?))
}

/// Where releases are downloaded from.
pub(super) struct Source<'a> {
    client: &'a Client,
}

impl<'a> Source<'a> {
    pub(super) fn new(client: &'a Client) -> Self {
        Self { client }
    }

    /// Downloads the manifest of a version, or of the newest one, and checks its signature.
    pub(super) async fn manifest(&self, receipt: &Receipt, wanted: Option<&str>) -> anyhow::Result<Manifest> {
        let key = PublicKey::from_base64(&receipt.key)
            .context("the receipt has no valid public key; run the install script again")?;
        let place = match wanted {
            Some(version) => {
                compare(version, version)?;
                format!("download/v{version}")
            }
            None => "latest/download".to_owned(),
        };
        let address = |name: &str| format!("{}/{place}/{name}", receipt.source.trim_end_matches('/'));
        let text = self.get(&address(MANIFEST), MANIFEST_LIMIT_BYTES, MANIFEST_DEADLINE).await?;
        let signature = self.get(&address(SIGNATURE), SIGNATURE_LIMIT_BYTES, MANIFEST_DEADLINE).await?;
        let signature = String::from_utf8(signature).ok().and_then(|text| Signature::decode(&text).ok());
        let signature = signature.context("the signature of the release is damaged; nothing was changed")?;
        key.verify(&text, &signature, true).context(
            "the release is not signed with the key of the installed program; nothing was changed",
        )?;
        let manifest: Manifest =
            serde_json::from_slice(&text).context("the manifest of the release is damaged")?;
        if let Some(version) = wanted.filter(|version| *version != manifest.version) {
            bail!(
                "the server sent version {} instead of {version}; nothing was changed",
                clean_line(&manifest.version)
            );
        }
        Ok(manifest)
    }

    /// Downloads an archive and checks its size and digest.
    pub(super) async fn archive(
        &self,
        receipt: &Receipt,
        manifest: &Manifest,
        file: &Archive,
    ) -> anyhow::Result<Vec<u8>> {
        let source = receipt.source.trim_end_matches('/');
        let address = format!("{source}/download/v{}/{}", manifest.version, file.name);
        let limit = usize::try_from(file.size)?;
        let bytes = self.get(&address, limit, ARCHIVE_DEADLINE).await?;
        ensure!(
            bytes.len() == limit,
            "the download of {} ended after {} of {limit} bytes; nothing was changed",
            file.name,
            bytes.len()
        );
        let digest = ring::digest::digest(&ring::digest::SHA256, &bytes);
        let digest: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        ensure!(
            digest == file.sha256,
            "{} has another digest than the signed manifest says; nothing was changed",
            file.name
        );
        Ok(bytes)
    }

    /// Downloads a file of at most `limit` bytes within the deadline.
    async fn get(&self, address: &str, limit: usize, deadline: Duration) -> anyhow::Result<Vec<u8>> {
        let result = tokio::time::timeout(deadline, self.get_now(address, limit)).await;
        result
            .unwrap_or_else(|_| bail!("no complete answer within {} s", deadline.as_secs()))
            .with_context(|| format!("cannot download {}", clean_line(address)))
    }

    async fn get_now(&self, address: &str, limit: usize) -> anyhow::Result<Vec<u8>> {
        let mut url = checked(address)?;
        for _ in 0..=REDIRECTS_LIMIT {
            let mut response = self.client.http(&url)?.get(url.clone()).send().await?;
            if response.status().is_redirection() {
                let target = response.headers().get("location").and_then(|value| value.to_str().ok());
                let target = target.context("the server redirects to nowhere")?;
                url = checked(url.join(target)?.as_str())?;
                continue;
            }
            ensure!(response.status().is_success(), "the server answered {}", response.status());
            let mut bytes = Vec::new();
            while let Some(part) = response.chunk().await? {
                ensure!(bytes.len() + part.len() <= limit, "the answer has more than {limit} bytes");
                bytes.extend_from_slice(&part);
            }
            return Ok(bytes);
        }
        bail!("the server redirects more than {REDIRECTS_LIMIT} times")
    }
}

/// An address that is fetched: HTTPS, or a server on this machine.
fn checked(address: &str) -> anyhow::Result<Url> {
    let url = Url::parse(address).context("the address is not valid")?;
    let is_local = matches!(url.host_str(), Some("127.0.0.1" | "localhost" | "[::1]"));
    ensure!(url.scheme() == "https" || url.scheme() == "http" && is_local, "only https is used");
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        for (one, other, expected) in [
            ("0.9.0", "0.10.0", Ordering::Less),
            ("1.0.0", "1.0.0", Ordering::Equal),
            ("1.0.0-rc.1", "1.0.0", Ordering::Less),
        ] {
            assert_eq!(compare(one, other).unwrap(), expected, "{one} {other}");
        }
        assert!(compare("1.0", "../x").is_err());
    }

    #[test]
    fn only_https_and_this_machine_are_asked() {
        for (address, is_right) in [
            ("https://example.com/x", true),
            ("http://127.0.0.1:1/x", true),
            ("http://example.com/x", false),
            ("file:///etc/passwd", false),
        ] {
            assert_eq!(checked(address).is_ok(), is_right, "{address}");
        }
    }
}
