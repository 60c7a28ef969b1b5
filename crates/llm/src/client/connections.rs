//! Connections to servers, opened by kind.
//!
//! Reading the machine's certificates costs more than all else a short run
//! does, so plain HTTP gets a client without any, and each kind of client is
//! built when it is first needed.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::HeaderValue;
use reqwest::redirect::{Action, Attempt, Policy};
use reqwest::{Certificate, ClientBuilder, Url};

use super::failure;
use crate::Error;
use crate::network::{Network, Way};
use crate::web::Pinned;

/// Kinds of client that are kept; they differ by configured timeouts, of which there are few.
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
    /// On this machine, where no proxy can be meant.
    local: bool,
    connect: Duration,
}

impl Kind {
    fn of(url: &Url, connect: Duration) -> Self {
        Self { secure: url.scheme() == "https", local: is_local(url), connect }
    }
}

impl Connections {
    pub(crate) fn new(user_agent: HeaderValue, network: Network) -> Self {
        Self { user_agent, network: Arc::new(network), clients: Arc::default() }
    }

    /// A client for `url` that gives up connecting after `connect`.
    pub(crate) fn to(&self, url: &Url, connect: Duration) -> Result<reqwest::Client, Error> {
        let kind = Kind::of(url, connect);
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

    /// A client for one request to `url` that follows nothing and knows no other addresses.
    pub(crate) fn pinned(
        &self,
        url: &Url,
        connect: Duration,
        pinned: Pinned,
    ) -> Result<reqwest::Client, Error> {
        let pinned = Arc::new(pinned);
        self.build(Kind::of(url, connect), |builder| {
            builder.redirect(Policy::none()).dns_resolver(Arc::clone(&pinned))
        })
    }

    /// Whether a proxy is named for addresses such as `url`.
    pub(crate) fn has_proxy(&self, url: &Url) -> bool {
        // One that is named wrongly is told when it is needed.
        !matches!(self.way(Kind::of(url, Duration::ZERO)), Ok(None))
    }

    /// The error for a request to `url` that got no answer.
    pub(crate) fn not_reached(&self, why: &reqwest::Error, url: &Url, connect: Duration) -> Error {
        let way = self.way(Kind::of(url, connect)).ok().flatten();
        failure::not_reached(why, url, connect, way.as_ref().map(Way::shown).as_deref())
    }

    fn way(&self, kind: Kind) -> Result<Option<Way>, Error> {
        if kind.local { Ok(None) } else { self.network.way(kind.secure) }
    }

    fn build(
        &self,
        kind: Kind,
        adjust: impl Fn(ClientBuilder) -> ClientBuilder,
    ) -> Result<reqwest::Client, Error> {
        // An error says that a provider is installed already, which is as good.
        drop(rustls::crypto::ring::default_provider().install_default());
        let way = self.way(kind)?;
        let builder = || {
            let builder = reqwest::Client::builder()
                .user_agent(self.user_agent.clone())
                .connect_timeout(kind.connect)
                // The process's variables are not looked at a second time.
                .no_proxy();
            let builder = adjust(builder);
            match &way {
                Some(way) => builder.proxy(way.proxy()),
                None => builder,
            }
        };
        let bad = |why| Error::rejected(format!("the HTTP client cannot be set up: {why}"));
        if !kind.secure && !way.as_ref().is_some_and(Way::is_secure) {
            return builder().tls_certs_only([]).build().map_err(bad);
        }
        let roots = self.network.roots()?;
        if let Some(only) = roots.only {
            return builder().tls_certs_only(only.into_iter().chain(roots.more)).build().map_err(bad);
        }
        // The machine's own certificates; where it has none, such as in a bare
        // container, the ones browsers trust.
        let more = roots.more;
        let machine = builder().tls_certs_merge(more.clone()).build();
        machine.or_else(|_| builder().tls_certs_only(browser_roots().chain(more)).build()).map_err(bad)
    }
}

fn browser_roots() -> impl Iterator<Item = Certificate> {
    webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().filter_map(|root| Certificate::from_der(root).ok())
}

/// Keys travel in headers that a redirect would carry along, so it is followed within one server only.
fn redirect(attempt: Attempt) -> Action {
    let is_same = attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
    if is_same && attempt.previous().len() <= REDIRECTS_LIMIT { attempt.follow() } else { attempt.stop() }
}

fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host.parse::<IpAddr>().is_ok_and(|address| {
            // Clouds answer a machine's own questions at such addresses, and no proxy could ask them for it.
            address.is_loopback() || matches!(address, IpAddr::V4(address) if address.is_link_local())
        })
}
