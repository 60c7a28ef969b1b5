//! HTTP clients, one for each kind of connection.
//!
//! Loading the system's certificates is the slowest part of a short run. Plain HTTP therefore gets
//! a client without certificates, and each kind of client is built on first use.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::HeaderValue;
use reqwest::redirect::{Action, Attempt, Policy};
use reqwest::{Certificate, ClientBuilder, Url};

use super::{Pinned, failure};
use crate::Error;
use crate::network::{Network, ProxySetting};

/// Limit of cached clients. They differ by configured timeouts, of which there are few.
const KINDS_LIMIT: usize = 32;
const REDIRECTS_LIMIT: usize = 5;

#[derive(Debug, Clone)]
pub(crate) struct Connections {
    user_agent: HeaderValue,
    network: Arc<Network>,
    clients: Arc<Mutex<HashMap<Kind, reqwest::Client>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Kind {
    secure: bool,
    /// No proxy applies: the server runs on this machine, or the user has excepted it.
    direct: bool,
    connect: Duration,
}

impl Connections {
    pub(crate) fn new(user_agent: HeaderValue, network: Network) -> Self {
        Self { user_agent, network: Arc::new(network), clients: Arc::default() }
    }

    fn kind(&self, url: &Url, connect: Duration) -> Kind {
        let direct = is_local(url) || self.network.is_excepted(url);
        Kind { secure: url.scheme() == "https", direct, connect }
    }

    /// Returns a client for `url` with this connect timeout.
    pub(crate) fn to(&self, url: &Url, connect: Duration) -> Result<reqwest::Client, Error> {
        let kind = self.kind(url, connect);
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&kind) {
            return Ok(client.clone());
        }
        let client = self.build(kind, |builder| builder.redirect(Policy::custom(redirect)))?;
        if clients.len() == KINDS_LIMIT {
            clients.clear();
        }
        clients.insert(kind, client.clone());
        Ok(client)
    }

    /// Returns a client for one request to `url` that follows no redirects and connects only to the
    /// given addresses.
    pub(crate) fn pinned(
        &self,
        url: &Url,
        connect: Duration,
        pinned: Pinned,
    ) -> Result<reqwest::Client, Error> {
        let pinned = Arc::new(pinned);
        self.build(self.kind(url, connect), |builder| {
            builder.redirect(Policy::none()).dns_resolver(Arc::clone(&pinned))
        })
    }

    /// Returns whether a proxy is configured for `url`.
    pub(crate) fn has_proxy(&self, url: &Url) -> bool {
        // An invalid setting is reported when a request needs it.
        !matches!(self.proxy(self.kind(url, Duration::ZERO)), Ok(None))
    }

    /// Returns the error for a request to `url` that got no answer.
    pub(crate) fn not_reached(&self, why: &reqwest::Error, url: &Url, connect: Duration) -> Error {
        let proxy = self.proxy(self.kind(url, connect)).ok().flatten();
        failure::not_reached(why, url, connect, proxy.as_ref().map(ProxySetting::describe).as_deref())
    }

    fn proxy(&self, kind: Kind) -> Result<Option<ProxySetting>, Error> {
        if kind.direct { Ok(None) } else { self.network.proxy(kind.secure) }
    }

    fn build(
        &self,
        kind: Kind,
        adjust: impl Fn(ClientBuilder) -> ClientBuilder,
    ) -> Result<reqwest::Client, Error> {
        // It fails if a provider is already installed, which is fine.
        drop(rustls::crypto::ring::default_provider().install_default());
        let proxy = self.proxy(kind)?;
        let builder = || {
            let builder = reqwest::Client::builder()
                .user_agent(self.user_agent.clone())
                .connect_timeout(kind.connect)
                // The proxy settings were already read from the environment.
                .no_proxy();
            let builder = adjust(builder);
            match &proxy {
                Some(setting) => builder.proxy(setting.proxy()),
                None => builder,
            }
        };
        let bad = |why| Error::rejected(format!("the HTTP client cannot be set up: {why}"));
        if !kind.secure && !proxy.as_ref().is_some_and(ProxySetting::is_secure) {
            return builder().tls_certs_only([]).build().map_err(bad);
        }
        let roots = self.network.roots()?;
        if let Some(only) = roots.only {
            return builder().tls_certs_only(only.into_iter().chain(roots.more)).build().map_err(bad);
        }
        // The system's certificates. If there are none, for example in a bare container, the ones
        // that browsers trust.
        let more = roots.more;
        let machine = builder().tls_certs_merge(more.clone()).build();
        machine.or_else(|_| builder().tls_certs_only(browser_roots().chain(more)).build()).map_err(bad)
    }
}

fn browser_roots() -> impl Iterator<Item = Certificate> {
    webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().filter_map(|root| Certificate::from_der(root).ok())
}

/// Follows redirects within one server only, because keys travel in headers that a redirect would
/// send along.
fn redirect(attempt: Attempt) -> Action {
    let is_same = attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
    if is_same && attempt.previous().len() <= REDIRECTS_LIMIT { attempt.follow() } else { attempt.stop() }
}

fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host.parse::<IpAddr>().is_ok_and(|address| {
            // Cloud metadata services use link-local addresses, which a proxy could not reach.
            address.is_loopback() || matches!(address, IpAddr::V4(address) if address.is_link_local())
        })
}
