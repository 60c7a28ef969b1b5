//! A scripted language model that serves the real wire formats over a socket and checks the
//! requests.
//!
//! A [`Script`] contains the model's answers, turn by turn. A [`Server`] plays it to clients of
//! OpenAI Chat Completions, OpenAI Responses, Anthropic Messages (also on Vertex AI), Gemini,
//! Bedrock ConverseStream and Cohere Chat. Each request is checked against the rules of its
//! protocol: a request that a real provider would reject fails here too, with a message that names
//! the problem.
//!
//! HTTP/1.1 is implemented by hand on a `TcpStream`, because the model must be able to stop in the
//! middle of an event, to announce a wrong length and to stall, and server libraries prevent all of
//! that. Only the features that model clients use are supported: no TLS, no HTTP/2, no compression.
//!
//! ```no_run
//! # async fn example() -> std::io::Result<()> {
//! use codewright_scripted::{Script, Server, Turn};
//! use serde_json::json;
//!
//! let script = Script::new()
//!     .tool("read", json!({"filePath": "/tmp/a.txt"}))
//!     .turn(Turn::http_error(429).header("retry-after-ms", "10"))
//!     .text("Done.");
//! let server = Server::start(script).await?;
//! let base_url = format!("{}/v1", server.url());
//! # drop(base_url);
//! # server.stop().await;
//! # Ok(())
//! # }
//! ```

mod error;
mod flood;
mod http;
mod play;
mod protocol;
mod record;
mod request;
mod script;
mod server;

pub use error::Error;
pub use flood::Flood;
pub use http::Headers;
pub use protocol::{Protocol, bedrock_frame};
pub use record::{Outcome, Recorded};
pub use request::{Kind, Request, ToolResult};
pub use script::{
    Args, Call, Checks, Content, Finish, Pace, Reply, Respond, Script, SessionScript, Step, Steps,
    StreamError, Turn, Usage,
};
pub use server::{Server, serve};
