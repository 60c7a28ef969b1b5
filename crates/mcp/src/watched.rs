//! A transport whose end is noticed. The SDK drops it when the connection ends.
//!
//! Only calls of tools ask for progress. The SDK gives every request a token for it, which is removed here: no other
//! request waits for progress, and servers then receive what they receive from OpenCode.

use rmcp::RoleClient;
use rmcp::model::{ClientRequest, JsonRpcMessage, RequestMetaObject};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Map, Value};
use tokio_util::sync::{CancellationToken, DropGuard};

/// The only request with progress.
const PROGRESSING: &str = "tools/call";
/// The key of a token for progress.
const TOKEN: &str = "progressToken";

/// A transport and the token that is cancelled with it.
pub(crate) struct Watched<T> {
    transport: T,
    _closed: DropGuard,
}

impl<T> Watched<T> {
    pub(crate) fn new(transport: T, closed: CancellationToken) -> Self {
        Self { transport, _closed: closed.drop_guard() }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Watched<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        mut item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        if let JsonRpcMessage::Request(message) = &mut item
            && let ClientRequest::CustomRequest(request) = &mut message.request
            && request.method != PROGRESSING
            && let Some(mut metadata) = request.extensions.remove::<RequestMetaObject>()
        {
            metadata.remove(TOKEN);
            if !metadata.is_empty() {
                request.extensions.insert(metadata);
            }
            // Without an object the SDK sends `null`, which servers may reject.
            request.params.get_or_insert_with(|| Value::Object(Map::new()));
        }
        self.transport.send(item)
    }

    fn receive(&mut self) -> impl Future<Output = Option<RxJsonRpcMessage<RoleClient>>> + Send {
        self.transport.receive()
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.transport.close()
    }
}
