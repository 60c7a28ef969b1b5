//! A scripted language model that speaks the real wire formats over a socket
//! and checks what it is sent.
//!
//! A [`Script`] says what the model answers, turn by turn; a [`Server`] plays
//! it to any client that speaks OpenAI Chat Completions, OpenAI Responses,
//! Anthropic Messages (also as Vertex AI serves it), Gemini, Bedrock ConverseStream
//! or Cohere Chat.
//! Every request is held against the rules of its protocol, so that a client
//! which sends what a real provider would refuse fails here too, with a message
//! that names the fault.
//!
//! HTTP/1.1 is written by hand on a `TcpStream`, on purpose: the model has to
//! break off in the middle of an event, announce a length it does not keep and
//! stall, and a server library exists to make all of that impossible. Only what
//! model clients use is spoken: no TLS, no HTTP/2, no compression.
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
