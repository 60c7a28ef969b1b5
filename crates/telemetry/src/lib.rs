//! OpenTelemetry tracing: measures how long work takes and exports the spans to a collector.
//!
//! A [`Span`] is one piece of work with a start, an end and a few attributes. It is exported after it
//! is dropped. Attributes are names and numbers that the program defines itself; they never contain
//! text of a user, a model, a file or a command. Traced code never waits for the collector: spans that
//! do not fit into the queue are dropped and counted. If no collector is configured, spans do nothing.

mod encode;
mod settings;
mod span;
mod tracer;

pub use settings::{Address, Settings};
pub use span::{Context, Kind, Span, carry, current, within};
pub use tracer::{Batch, Counts, Deliver, Delivery, Tracer};
