//! Stores the records and the usage of a step.

use codewright_llm::Model;
use codewright_proto::{SessionId, TokenUsage};
use codewright_store::Lease;

use crate::Error;
use crate::inner::Inner;
use crate::models::prices;
use crate::run::recorder::{Record, Recorder};

/// Stores and publishes records in order.
pub(crate) async fn flush(lease: &Lease, inner: &Inner, recorder: &mut Recorder) -> Result<(), Error> {
    let mut events = Vec::new();
    for record in recorder.take() {
        match record {
            Record::Event(event) => events.push(event),
            Record::Signal(signal) => {
                if !events.is_empty() {
                    lease.append(std::mem::take(&mut events)).await?;
                }
                inner.store.signal(signal);
            }
        }
    }
    if !events.is_empty() {
        lease.append(events).await?;
    }
    Ok(())
}

/// Adds the usage of a request to its session.
pub(crate) async fn account(
    inner: &Inner,
    id: &SessionId,
    tokens: &TokenUsage,
    cost: f64,
) -> Result<(), Error> {
    let now = inner.clock.now_ms();
    inner
        .update_session(id, |session| {
            session.tokens.add(tokens);
            session.cost += cost;
            session.time.updated = now;
        })
        .await?;
    Ok(())
}

/// Returns the cost of a step's tokens in US dollars.
pub(crate) fn cost(model: &Model, tokens: &TokenUsage) -> f64 {
    let request = tokens.input + tokens.cache.read + tokens.cache.write;
    let price = prices(model, request);
    let dollars = tokens.input as f64 * price.input
        + (tokens.output + tokens.reasoning) as f64 * price.output
        + tokens.cache.read as f64 * price.cache_read
        + tokens.cache.write as f64 * price.cache_write;
    dollars / 1e6
}
