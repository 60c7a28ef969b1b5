//! The network of the tools that fetch web pages: the network of the program.

use std::net::SocketAddr;

use codewright_llm::Client;
use codewright_llm::web::{self, Call, has_proxy, send};
use codewright_tools::{Sent, Web, WebAnswer, WebError, WebRequest};
use url::Url;

/// The number of addresses of one name that are used.
const MAX_ADDRESSES: usize = 16;

/// The network with the proxy settings of the providers.
pub(crate) struct Network(pub(crate) Client);

impl Web for Network {
    fn has_proxy(&self, url: &Url) -> bool {
        has_proxy(&self.0, url)
    }

    fn look_up<'a>(&'a self, host: &'a str, port: u16) -> Sent<'a, Vec<SocketAddr>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, port)).await;
            let found = found.map_err(|why| WebError::Unreachable(why.to_string()))?;
            Ok(found.take(MAX_ADDRESSES).collect())
        })
    }

    fn send<'a>(&'a self, request: &'a WebRequest) -> Sent<'a, WebAnswer> {
        Box::pin(async move {
            let call = Call {
                url: &request.url,
                addresses: &request.addresses,
                accept: request.accept,
                body: request.body.as_deref(),
                limit_bytes: request.limit_bytes,
            };
            match send(&self.0, &call).await {
                Ok(answer) => Ok(WebAnswer {
                    status: answer.status,
                    content_type: answer.content_type,
                    location: answer.location,
                    body: answer.body,
                }),
                Err(web::Error::TooLarge) => Err(WebError::TooLarge),
                Err(web::Error::Unreachable(why)) => Err(WebError::Unreachable(why)),
            }
        })
    }
}
