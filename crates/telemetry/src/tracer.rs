//! The tracer: creates spans and exports them through a bounded queue and a background task.

use std::hash::{BuildHasher as _, RandomState};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use codewright_proto::Clock;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::encode::{Epoch, encode};
use crate::span::FinishedSpan;
#[cfg(test)]
use crate::within;
use crate::{Address, Context, Kind, Settings, Span, current};

/// The maximum number of spans in the queue; further spans are dropped.
const QUEUE: usize = 2048;
/// The maximum number of spans in an export request.
const BATCH: usize = 512;
/// How long spans are collected before they are sent.
const GATHER: Duration = Duration::from_secs(5);
/// How often a batch is sent while the collector requests a retry.
const ATTEMPTS: u32 = 3;
/// The pause between two attempts.
const PAUSE: Duration = Duration::from_secs(1);
/// How long the program waits at its end for the last spans to be sent.
const CLOSE_DEADLINE: Duration = Duration::from_secs(2);

/// An export request.
#[derive(Debug)]
pub struct Batch {
    /// The collector.
    pub address: Address,
    /// The spans, as JSON.
    pub body: Vec<u8>,
}

/// The result of an attempt to send a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// The collector accepted the batch.
    Accepted,
    /// The collector may accept the batch later.
    Retry,
    /// The collector will never accept the batch.
    Rejected,
}

/// Sends batches. The caller applies the time limit.
pub trait Deliver: Send + Sync + 'static {
    /// Sends one batch.
    fn deliver(&self, batch: Batch) -> Pin<Box<dyn Future<Output = Delivery> + Send + '_>>;
}

/// How many spans were exported, dropped and lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Spans that the collector accepted.
    pub exported: u64,
    /// Spans that did not fit into the queue.
    pub dropped: u64,
    /// Spans that were queued and not accepted.
    pub lost: u64,
}

#[derive(Debug, Default)]
struct Counters {
    exported: AtomicU64,
    dropped: AtomicU64,
    queued: AtomicU64,
}

/// Creates spans. Clones share a queue. The default tracer is off: its spans do nothing.
#[derive(Clone, Default)]
pub struct Tracer(Option<Arc<Shared>>);

pub(crate) struct Shared {
    queue: mpsc::Sender<FinishedSpan>,
    counters: Arc<Counters>,
    /// A trace is exported if the low half of the id is below this.
    limit: u64,
    honors_parents: bool,
    keys: RandomState,
    given: AtomicU64,
    end: CancellationToken,
    worker: Mutex<JoinSet<()>>,
}

impl Tracer {
    /// Creates a tracer that exports to a collector, and starts its background task.
    #[must_use]
    pub fn new(settings: Settings, version: &str, clock: &Clock, deliver: impl Deliver) -> Self {
        let (queue, ended) = mpsc::channel(QUEUE);
        let (counters, end) = (Arc::new(Counters::default()), CancellationToken::new());
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the share is from 0 to 1"
        )]
        let limit = (settings.share * u64::MAX as f64) as u64;
        let honors_parents = settings.honors_parents;
        let work = Worker {
            ended,
            counters: counters.clone(),
            end: end.clone(),
            epoch: Epoch { unix_ms: clock.now_ms(), instant: Instant::now() },
            version: version.to_owned(),
            settings,
            deliver: Box::new(deliver),
        };
        let mut worker = JoinSet::new();
        worker.spawn(work.run());
        let (keys, given, worker) = (RandomState::new(), AtomicU64::new(0), Mutex::new(worker));
        Self(Some(Arc::new(Shared { queue, counters, limit, honors_parents, keys, given, end, worker })))
    }

    /// Starts a span as a child of the calling task's span.
    #[must_use]
    pub fn span(&self, name: &str, kind: Kind) -> Span {
        self.child_span(name, kind, current())
    }

    /// Starts a span as a child of `parent`, or as the first span of a trace.
    #[must_use]
    pub fn child_span(&self, name: &str, kind: Kind, parent: Option<Context>) -> Span {
        match &self.0 {
            Some(shared) => Span::open(shared, name, kind, parent),
            None => Span::default(),
        }
    }

    /// Starts a span with the name `operation target`.
    #[must_use]
    pub fn span_on(&self, operation: &str, target: &str, kind: Kind) -> Span {
        if self.is_on() { self.span(&format!("{operation} {target}"), kind) } else { Span::default() }
    }

    /// Returns the context of a client's span to use as a parent, with the sampling decision applied.
    #[must_use]
    pub fn adopt(&self, parent: Context) -> Context {
        match &self.0 {
            Some(shared) if !shared.honors_parents => {
                Context { is_sampled: shared.is_sampled(parent.trace), ..parent }
            }
            _ => parent,
        }
    }

    /// Whether spans are exported at all.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Sends the remaining spans, for two seconds at most, and returns the counts of all spans.
    pub async fn close(&self) -> Counts {
        let Some(shared) = &self.0 else { return Counts::default() };
        shared.end.cancel();
        let worker = std::mem::take(&mut *shared.worker.lock().unwrap_or_else(PoisonError::into_inner));
        let mut worker = worker;
        // Spans that are not sent by then are lost.
        drop(timeout(CLOSE_DEADLINE, worker.join_next()).await);
        worker.abort_all();
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counters { exported, dropped, queued } = &*shared.counters;
        let (exported, queued) = (read(exported), read(queued));
        Counts { exported, dropped: read(dropped), lost: queued.saturating_sub(exported) }
    }
}

impl Shared {
    /// Creates the context of a new span. Whether a trace is exported is decided at its first span.
    pub(crate) fn child_context(&self, parent: Option<Context>) -> Context {
        let span = self.random();
        match parent {
            Some(parent) => Context { span, ..parent },
            None => {
                let trace = (u128::from(self.random()) << 64) | u128::from(self.random());
                Context { trace, span, is_sampled: self.is_sampled(trace) }
            }
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "the low half of the trace id decides")]
    fn is_sampled(&self, trace: u128) -> bool {
        self.limit == u64::MAX || (trace as u64) < self.limit
    }

    pub(crate) fn enqueue(&self, span: FinishedSpan) {
        if !span.context.is_sampled {
            return;
        }
        let counters = &self.counters;
        let count = if self.queue.try_send(span).is_ok() { &counters.queued } else { &counters.dropped };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns a random number other than 0, which is not a valid id.
    fn random(&self) -> u64 {
        self.keys.hash_one(self.given.fetch_add(1, Ordering::Relaxed)).max(1)
    }
}

struct Worker {
    ended: mpsc::Receiver<FinishedSpan>,
    counters: Arc<Counters>,
    end: CancellationToken,
    epoch: Epoch,
    version: String,
    settings: Settings,
    deliver: Box<dyn Deliver>,
}

impl Worker {
    async fn run(mut self) {
        let mut batch = Vec::new();
        while !self.end.is_cancelled() {
            let gathered = self.gather(&mut batch);
            // If this is cancelled, the spans received so far are in the batch.
            if gathered.await {
                break;
            }
            self.send(std::mem::take(&mut batch)).await;
        }
        loop {
            while batch.len() < BATCH
                && let Ok(span) = self.ended.try_recv()
            {
                batch.push(span);
            }
            if batch.is_empty() {
                return;
            }
            self.send(std::mem::take(&mut batch)).await;
        }
    }

    /// Collects spans until the batch is full or [`GATHER`] has passed. Returns whether the tracer is closing.
    async fn gather(&mut self, batch: &mut Vec<FinishedSpan>) -> bool {
        let Self { ended, end, .. } = self;
        let gathering = async {
            // No timer runs while there are no spans.
            let Some(first) = ended.recv().await else { return true };
            batch.push(first);
            let more = async {
                while batch.len() < BATCH
                    && let Some(span) = ended.recv().await
                {
                    batch.push(span);
                }
            };
            drop(timeout(GATHER, more).await);
            false
        };
        end.run_until_cancelled(gathering).await.unwrap_or(true)
    }

    async fn send(&self, spans: Vec<FinishedSpan>) {
        let count = spans.len() as u64;
        let body = encode(&spans, &self.settings.resource, self.epoch, &self.version);
        drop(spans);
        let address = &self.settings.address;
        for attempt in 1..=ATTEMPTS {
            let batch = Batch { address: address.clone(), body: body.clone() };
            let delivered = timeout(address.timeout, self.deliver.deliver(batch)).await;
            match delivered.unwrap_or(Delivery::Retry) {
                Delivery::Accepted => {
                    self.counters.exported.fetch_add(count, Ordering::Relaxed);
                    return;
                }
                Delivery::Rejected => return,
                Delivery::Retry if attempt == ATTEMPTS || self.end.is_cancelled() => return,
                Delivery::Retry => {
                    self.end.run_until_cancelled(sleep(PAUSE)).await;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    struct Never;

    impl Deliver for Never {
        fn deliver(&self, _: Batch) -> Pin<Box<dyn Future<Output = Delivery> + Send + '_>> {
            Box::pin(std::future::pending())
        }
    }

    struct Always(Arc<Mutex<Vec<String>>>);

    impl Deliver for Always {
        fn deliver(&self, batch: Batch) -> Pin<Box<dyn Future<Output = Delivery> + Send + '_>> {
            self.0.lock().unwrap().push(String::from_utf8(batch.body).unwrap());
            Box::pin(std::future::ready(Delivery::Accepted))
        }
    }

    fn settings(share: &str) -> Settings {
        let variables = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"),
            ("OTEL_TRACES_SAMPLER", "traceidratio"),
            ("OTEL_TRACES_SAMPLER_ARG", share),
        ];
        let variables: BTreeMap<_, _> =
            variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Settings::read(&variables, "1").unwrap().unwrap()
    }

    fn tracer(share: &str) -> (Tracer, Arc<Mutex<Vec<String>>>) {
        let bodies = Arc::new(Mutex::default());
        (Tracer::new(settings(share), "1", &Clock::system(), Always(Arc::clone(&bodies))), bodies)
    }

    #[tokio::test(start_paused = true)]
    async fn a_collector_that_never_answers_delays_the_end_by_two_seconds() {
        let tracer = Tracer::new(settings("1"), "1", &Clock::system(), Never);
        for _ in 0..QUEUE + BATCH + 700 {
            drop(tracer.span("turn", Kind::Internal));
            tokio::task::yield_now().await;
        }
        let start = tokio::time::Instant::now();
        let counts = tracer.close().await;
        assert_eq!(start.elapsed(), CLOSE_DEADLINE);
        assert_eq!(counts, Counts { exported: 0, dropped: 700, lost: (QUEUE + BATCH) as u64 });
    }

    #[tokio::test(start_paused = true)]
    async fn spans_are_children_of_the_span_that_started_them_also_in_other_tasks() {
        let (tracer, bodies) = tracer("1");
        let outer = tracer.span("outer", Kind::Server);
        let (context, other) = (outer.context(), tracer.clone());
        let mut tasks = JoinSet::new();
        within(context, async {
            tasks.spawn(crate::carry(async move {
                let mut inner = other.span("inner", Kind::Internal);
                inner.set("tokens", 7_u64);
                inner.fail("busy");
            }));
            tasks.join_next().await.unwrap().unwrap();
        })
        .await;
        assert_eq!(current(), None);
        drop(outer);
        assert_eq!(tracer.close().await, Counts { exported: 2, dropped: 0, lost: 0 });
        let request: serde_json::Value = serde_json::from_str(&bodies.lock().unwrap().concat()).unwrap();
        let spans = &request["resourceSpans"][0]["scopeSpans"][0]["spans"];
        assert_eq!((&spans[0]["name"], &spans[1]["name"]), (&"inner".into(), &"outer".into()));
        assert_eq!(spans[0]["parentSpanId"], spans[1]["spanId"]);
        assert_eq!(spans[0]["traceId"], spans[1]["traceId"]);
        assert_eq!(spans[0]["status"]["code"], 2);
        assert_eq!(spans[0]["attributes"][0]["value"]["intValue"], "7");
        assert!(spans[1].get("parentSpanId").is_none());
    }

    #[tokio::test]
    async fn nothing_is_exported_if_the_share_is_zero_or_tracing_is_off() {
        let (tracer, bodies) = tracer("0");
        drop(tracer.span("turn", Kind::Internal));
        assert_eq!(tracer.close().await, Counts::default());
        assert!(bodies.lock().unwrap().is_empty());
        let off = Tracer::default();
        assert!(!off.is_on() && off.span("turn", Kind::Internal).context().is_none());
        assert_eq!(off.close().await, Counts::default());
    }
}
