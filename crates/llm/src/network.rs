//! Proxies and trusted certificates, as configured by the usual environment variables.
//!
//! The variables are evaluated for the first connection that needs them, so that an invalid value
//! does not affect other programs. An invalid value is an error that names the variable: ignoring
//! it would cause a confusing failure later.

mod exceptions;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use reqwest::{Certificate, Proxy, Url};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::Error;
use crate::error::cut;

/// Limit of a certificate file.
const FILE_LIMIT_BYTES: u64 = 16 * 1024 * 1024;
/// Limit of the files in a certificate directory.
const FILES_LIMIT: usize = 4096;

const EXTRA_CERTIFICATES: &str = "NODE_EXTRA_CA_CERTS";
const CERTIFICATE_FILE: &str = "SSL_CERT_FILE";
const CERTIFICATE_DIRECTORIES: &str = "SSL_CERT_DIR";
const FOR_HTTP: [&str; 4] = ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"];
const FOR_HTTPS: [&str; 4] = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
const WITHOUT: [&str; 2] = ["no_proxy", "NO_PROXY"];

/// The environment's network settings; empty by default.
#[derive(Debug, Clone, Default)]
pub struct Network {
    /// The environment variables at startup. Empty values count as unset.
    pub variables: BTreeMap<String, String>,
}

/// A proxy and the variable that configures it.
#[derive(Debug)]
pub(crate) struct ProxySetting {
    variable: &'static str,
    url: Url,
    proxy: Proxy,
}

/// The trusted certificates.
#[derive(Debug, Default)]
pub(crate) struct Roots {
    /// Trusted instead of the system's certificates.
    pub(crate) only: Option<Vec<Certificate>>,
    /// Trusted in addition.
    pub(crate) more: Vec<Certificate>,
}

impl Network {
    fn filled(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Returns whether a server is reached without a proxy.
    pub(crate) fn is_excepted(&self, url: &Url) -> bool {
        let list = WITHOUT.iter().find_map(|name| self.filled(name));
        list.is_some_and(|list| exceptions::contains(list, url))
    }

    /// Returns the proxy for servers of one scheme, if any, without the exceptions.
    pub(crate) fn proxy(&self, is_secure: bool) -> Result<Option<ProxySetting>, Error> {
        let names = if is_secure { FOR_HTTPS } else { FOR_HTTP };
        let found = names.into_iter().find_map(|name| Some((name, self.filled(name)?)));
        let Some((variable, value)) = found else { return Ok(None) };
        let bad = |why: &str| {
            // The text before the last `@` may contain a password.
            let host = value.rsplit('@').next().unwrap_or_default();
            Error::rejected(format!("{variable} is not the URL of a proxy (`{}`): {why}", cut(host, 200)))
        };
        // Other programs also accept a host without a scheme.
        let full = if value.contains("://") { value.to_owned() } else { format!("http://{value}") };
        let url = Url::parse(&full).map_err(|why| bad(&why.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad("only proxies of http:// and https:// are supported"));
        }
        let proxy = Proxy::all(url.clone()).map_err(|why| bad(&why.to_string()))?;
        Ok(Some(ProxySetting { variable, url, proxy }))
    }

    /// Returns the trusted certificates.
    pub(crate) fn roots(&self) -> Result<Roots, Error> {
        let file = self.filled(CERTIFICATE_FILE);
        let directories = self.filled(CERTIFICATE_DIRECTORIES);
        let mut only = (file.is_some() || directories.is_some()).then(Vec::new);
        if let Some(only) = &mut only {
            if let Some(path) = file {
                only.extend(read_file(CERTIFICATE_FILE, Path::new(path))?);
            }
            for directory in directories.into_iter().flat_map(std::env::split_paths) {
                only.extend(read_directory(&directory)?);
            }
            if only.is_empty() {
                let named = directories.unwrap_or_default();
                return Err(Error::rejected(format!(
                    "{CERTIFICATE_DIRECTORIES} names `{named}`, where no file contains a certificate"
                )));
            }
        }
        let more = self.filled(EXTRA_CERTIFICATES);
        let more = more.map(|path| read_file(EXTRA_CERTIFICATES, Path::new(path))).transpose()?;
        Ok(Roots { only, more: more.unwrap_or_default() })
    }
}

impl ProxySetting {
    /// Returns whether the connection to the proxy uses TLS.
    pub(crate) fn is_secure(&self) -> bool {
        self.url.scheme() == "https"
    }

    pub(crate) fn proxy(&self) -> Proxy {
        self.proxy.clone()
    }

    /// Describes the proxy without its password, for errors.
    pub(crate) fn describe(&self) -> String {
        format!("{} names the proxy {}", self.variable, self.url.origin().ascii_serialization())
    }
}

/// Returns the certificates of a file. Fails if there are none.
fn read_file(variable: &str, path: &Path) -> Result<Vec<Certificate>, Error> {
    let name = path.display();
    let bytes = read_bytes(path)
        .map_err(|why| Error::rejected(format!("{variable} names `{name}`, which cannot be read: {why}")))?;
    let found = certificates(&bytes);
    if found.is_empty() {
        return Err(Error::rejected(format!(
            "{variable} names `{name}`, which contains no readable certificate (expected PEM)"
        )));
    }
    Ok(found)
}

/// Returns the certificates of all files in a directory. Ignores other files.
fn read_directory(directory: &Path) -> Result<Vec<Certificate>, Error> {
    let bad = |why: &dyn std::fmt::Display| {
        let name = directory.display();
        Error::rejected(format!("{CERTIFICATE_DIRECTORIES} names `{name}`, which cannot be read: {why}"))
    };
    let entries = std::fs::read_dir(directory).map_err(|why| bad(&why))?;
    let mut paths: Vec<PathBuf> = entries.flatten().take(FILES_LIMIT).map(|entry| entry.path()).collect();
    paths.sort();
    let files = paths.iter().filter(|path| path.is_file());
    // Many of them are links to the same files; duplicates do no harm.
    Ok(files.filter_map(|path| read_bytes(path).ok()).flat_map(|bytes| certificates(&bytes)).collect())
}

fn read_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_LIMIT_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the certificates in a PEM text. Ignores unusable ones, as other programs do.
fn certificates(pem: &[u8]) -> Vec<Certificate> {
    let mut store = RootCertStore::empty();
    let found = CertificateDer::pem_slice_iter(pem).flatten();
    let usable = found.filter(|found| store.add(found.clone()).is_ok());
    usable.filter_map(|found| Certificate::from_der(&found).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEM: &str = include_str!("../tests/it/tls/authority.pem");

    fn network(variables: &[(&str, &str)]) -> Network {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Network { variables: variables.collect() }
    }

    #[track_caller]
    fn check_proxy(variables: &[(&str, &str)], secure: Option<&str>, plain: Option<&str>) {
        let description =
            |is_secure| network(variables).proxy(is_secure).unwrap().map(|setting| setting.describe());
        assert_eq!(description(true).as_deref(), secure, "https: {variables:?}");
        assert_eq!(description(false).as_deref(), plain, "http: {variables:?}");
    }

    #[test]
    fn each_scheme_has_its_own_proxy() {
        check_proxy(&[], None, None);
        check_proxy(&[("HTTPS_PROXY", "")], None, None);
        check_proxy(&[("HTTP_PROXY", "http://p:1")], None, Some("HTTP_PROXY names the proxy http://p:1"));
        check_proxy(&[("HTTPS_PROXY", "http://p:1")], Some("HTTPS_PROXY names the proxy http://p:1"), None);
        let all = "ALL_PROXY names the proxy https://p";
        check_proxy(&[("ALL_PROXY", "https://u:secret@p/")], Some(all), Some(all));
        check_proxy(
            &[("https_proxy", "p:3128"), ("HTTPS_PROXY", "q:1"), ("all_proxy", "r:1")],
            Some("https_proxy names the proxy http://p:3128"),
            Some("all_proxy names the proxy http://r:1"),
        );
    }

    #[test]
    fn a_bad_proxy_is_named_without_its_password() {
        for (value, why) in [
            ("http://", "empty host"),
            ("http://u:secret@p:x", "invalid port number"),
            ("socks5://u:secret@p:1", "only proxies of http:// and https:// are supported"),
            ("a b", "invalid"),
        ] {
            let error = network(&[("HTTPS_PROXY", value)]).proxy(true).unwrap_err().to_string();
            assert!(error.starts_with("HTTPS_PROXY is not the URL of a proxy"), "{error}");
            assert!(error.contains(why) && !error.contains("secret"), "{error}");
            assert!(network(&[("HTTPS_PROXY", value)]).proxy(false).unwrap().is_none());
        }
    }

    #[test]
    fn certificates_are_read_from_the_configured_paths() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        std::fs::write(path("two.pem"), format!("# a remark\n{PEM}\n{PEM}")).unwrap();
        std::fs::create_dir(path("all")).unwrap();
        std::fs::write(path("all/one.pem"), PEM).unwrap();
        std::fs::write(path("all/readme"), "nothing").unwrap();
        let all = format!("{}:{}", path("all"), path("all"));
        for (variables, only, more) in [
            (vec![], None, 0),
            (vec![("NODE_EXTRA_CA_CERTS", path("two.pem"))], None, 2),
            (vec![("SSL_CERT_FILE", path("two.pem"))], Some(2), 0),
            (vec![("SSL_CERT_DIR", all)], Some(2), 0),
            (vec![("SSL_CERT_FILE", path("two.pem")), ("SSL_CERT_DIR", path("all"))], Some(3), 0),
        ] {
            let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let roots = network(&variables).roots().unwrap();
            assert_eq!((roots.only.map(|only| only.len()), roots.more.len()), (only, more), "{variables:?}");
        }
    }

    #[test]
    fn an_invalid_certificate_path_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        std::fs::write(path("empty"), "").unwrap();
        let damaged = PEM.replace(&PEM[80..100], "AAAA");
        std::fs::write(path("damaged"), damaged).unwrap();
        std::fs::create_dir(path("none")).unwrap();
        for variable in ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"] {
            for (name, why) in [
                ("missing", "which cannot be read: No such file"),
                ("none", "which cannot be read: Is a directory"),
                ("empty", "which contains no readable certificate"),
                ("damaged", "which contains no readable certificate"),
            ] {
                let error = network(&[(variable, &path(name))]).roots().unwrap_err().to_string();
                let expected = format!("{variable} names `{}`, {why}", path(name));
                assert!(error.starts_with(&expected), "{error}");
            }
        }
        for (name, why) in
            [("missing", "which cannot be read"), ("none", "where no file contains a certificate")]
        {
            let error = network(&[("SSL_CERT_DIR", &path(name))]).roots().unwrap_err().to_string();
            assert!(error.starts_with(&format!("SSL_CERT_DIR names `{}`, {why}", path(name))), "{error}");
        }
    }
}
