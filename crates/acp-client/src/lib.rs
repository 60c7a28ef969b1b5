//! Other agents of the Agent Client Protocol: programs that answer prompts in place of a model.
//!
//! Nothing that an agent sends is trusted. The connection is an own one (`peer.rs`) instead of the protocol's SDK, because
//! the SDK queues received messages without a limit. The owner of a prompt reads its updates and serves its requests.

mod agent;
mod agents;
mod error;
mod host;
mod lines;
mod peer;
mod routes;
mod turn;

pub use agent::{Agent, Earlier, Memory, Opening, Session};
pub use agent_client_protocol_schema::v1 as schema;
pub use agents::Agents;
pub use error::Error;
pub use host::{Host, Spec};
pub use lines::{Line, next_line};
pub use peer::{Responder, RpcError};
pub use routes::Request;
pub use turn::{Event, Turn};
