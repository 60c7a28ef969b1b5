//! What took how long, told to a collector of OpenTelemetry when one is named.
//!
//! A [`Span`] is one piece of work with its beginning, its end and a few facts; it is told when it is
//! dropped. Facts are names and numbers of our own: no text of a user, a model, a file or a command
//! ever becomes one. Whoever works never waits for the collector: what does not fit into the queue
//! is dropped and counted. Without a collector a span is nothing at all.

mod encode;
mod settings;
mod span;
mod tracer;

pub use settings::{Address, Settings};
pub use span::{Context, Kind, Span, carry, current, within};
pub use tracer::{Batch, Counts, Deliver, Delivered, Tracer};
