//! Instructions that are fetched from addresses.
//!
//! The fetched text is part of every request. So only encrypted connections to the named hosts are used,
//! unless the configuration allows others, and redirects to other servers are not followed. A result is
//! cached for a minute, failures included: an address that hangs must not delay every step.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use codewright_config::InstructionRules;
use futures_util::future::join_all;

use super::{ADDRESS_DEADLINE, Instruction, MAX_BYTES};

/// The lifetime of a cached result.
const FRESH: Duration = Duration::from_secs(60);
/// The most addresses that are fetched.
const MAX_ADDRESSES: usize = 16;

/// The text of an address, or the reason why there is none.
type Answer = Result<String, String>;

/// The cached results by address.
#[derive(Default)]
pub(crate) struct Addresses {
    known: Mutex<HashMap<String, (Instant, Answer)>>,
}

impl Addresses {
    /// Returns the texts of the addresses in order, and warnings about those that were left out.
    pub(crate) async fn read(
        &self,
        client: &codewright_llm::Client,
        rules: &InstructionRules,
        listed: impl Iterator<Item = &str>,
    ) -> (Vec<Instruction>, Vec<String>) {
        let mut listed: Vec<_> = listed.collect();
        let mut warnings = Vec::new();
        if listed.len() > MAX_ADDRESSES {
            warnings.push(format!(
                "`instructions` lists more than {MAX_ADDRESSES} addresses; the rest is left out"
            ));
            listed.truncate(MAX_ADDRESSES);
        }
        let asked = listed.iter().map(|url| self.one(client, rules, url));
        let answers = join_all(asked).await;
        let mut found = Vec::new();
        for (url, answer) in listed.into_iter().zip(answers) {
            match answer {
                Ok(text) if text.trim().is_empty() => {}
                Ok(text) => found.push(Instruction {
                    origin: url.to_owned(),
                    text,
                    is_of_repository: false,
                    is_untrusted: false,
                    real: None,
                }),
                Err(reason) => warnings.push(format!("`instructions`: `{url}` was left out: {reason}")),
            }
        }
        (found, warnings)
    }

    async fn one(
        &self,
        client: &codewright_llm::Client,
        rules: &InstructionRules,
        url: &str,
    ) -> Result<String, String> {
        allowed(rules, url)?;
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, answer)) = known().get(url).filter(|(at, _)| at.elapsed() < FRESH) {
            return answer.clone();
        }
        let limit = usize::try_from(rules.max_bytes.unwrap_or(MAX_BYTES)).unwrap_or(usize::MAX);
        let answer = codewright_llm::fetch(client, url, limit, ADDRESS_DEADLINE).await;
        let answer = answer.map_err(|error| error.failure().message.clone());
        known().insert(url.to_owned(), (Instant::now(), answer.clone()));
        answer
    }
}

/// Checks that an address may be fetched.
fn allowed(rules: &InstructionRules, url: &str) -> Result<(), String> {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    if scheme != "https" && !rules.http {
        return Err("it is not encrypted; set `prompt.instructions.http` to fetch it anyway".to_owned());
    }
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(inner) => inner.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    if host.is_empty() {
        return Err("it names no host".to_owned());
    }
    let Some(hosts) = &rules.hosts else { return Ok(()) };
    let host = host.to_ascii_lowercase();
    let is_named =
        hosts.iter().map(|named| named.to_ascii_lowercase()).any(|named| match named.strip_prefix('.') {
            Some(domain) => host == domain || host.ends_with(&named),
            None => host == named,
        });
    if is_named { Ok(()) } else { Err(format!("`prompt.instructions.hosts` does not name `{host}`")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_fetched_only_if_the_rules_allow_it() {
        let rules = |http: bool, hosts: Option<&[&str]>| InstructionRules {
            http,
            hosts: hosts.map(|hosts| hosts.iter().map(|host| (*host).to_owned()).collect()),
            ..InstructionRules::default()
        };
        for (http, hosts, url, expected) in [
            (false, None, "https://x.org/a", true),
            (false, None, "http://x.org/a", false),
            (true, None, "http://x.org/a", true),
            (false, None, "https:///a", false),
            (false, Some(&["x.org"][..]), "https://X.org:8443/a", true),
            (false, Some(&["x.org"]), "https://y.x.org/a", false),
            (false, Some(&[".x.org"]), "https://y.x.org/a", true),
            (false, Some(&[".x.org"]), "https://x.org", true),
            (false, Some(&[".x.org"]), "https://evilx.org", false),
            (false, Some(&["x.org"]), "https://x.org@evil.org/", false),
            (false, Some(&["x.org"]), "https://evil.org\\@x.org/", false),
            (false, Some(&[]), "https://x.org", false),
            (true, Some(&["::1"]), "http://[::1]:80/a", true),
        ] {
            assert_eq!(allowed(&rules(http, hosts), url).is_ok(), expected, "{url} {hosts:?}");
        }
    }
}
