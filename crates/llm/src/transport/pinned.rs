//! A DNS resolver that returns fixed addresses for one host.

use std::net::SocketAddr;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// A resolver with fixed addresses for one host. Resolves other names, such as a proxy's, as usual.
#[derive(Debug)]
pub(crate) struct Pinned {
    host: String,
    addresses: Vec<SocketAddr>,
}

impl Pinned {
    pub(crate) fn new(url: &Url, addresses: &[SocketAddr]) -> Self {
        let host = url.host_str().unwrap_or_default().to_ascii_lowercase();
        Self { host, addresses: addresses.to_vec() }
    }
}

impl Resolve for Pinned {
    fn resolve(&self, name: Name) -> Resolving {
        if name.as_str().eq_ignore_ascii_case(&self.host) {
            let addresses = self.addresses.clone();
            return Box::pin(async move {
                if addresses.is_empty() {
                    return Err("the host has no known address".into());
                }
                Ok(Box::new(addresses.into_iter()) as Addrs)
            });
        }
        let name = name.as_str().to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(Box::new(found.collect::<Vec<_>>().into_iter()) as Addrs)
        })
    }
}
