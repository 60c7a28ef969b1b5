//! The way to the collector: a queue with a bound, and a task that empties it.

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

use crate::encode::{Began, encode};
use crate::span::Ended;
#[cfg(test)]
use crate::within;
use crate::{Address, Context, Kind, Settings, Span, current};

/// Spans that wait for the collector; more are dropped.
const QUEUE: usize = 2048;
/// Spans of one request.
const BATCH: usize = 512;
/// How long spans are gathered before they are sent.
const GATHER: Duration = Duration::from_secs(5);
/// How often a batch is sent that the collector does not take now.
const ATTEMPTS: u32 = 3;
/// Between two attempts.
const PAUSE: Duration = Duration::from_secs(1);
/// How long the last spans may hold up the end of the program.
const CLOSE_DEADLINE: Duration = Duration::from_secs(2);

/// What is sent to a collector at once.
#[derive(Debug)]
pub struct Batch {
    /// Where to.
    pub address: Address,
    /// The spans, as JSON.
    pub body: Vec<u8>,
}

/// What became of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivered {
    /// The collector has it.
    Taken,
    /// It may take it later.
    Later,
    /// It never will.
    Refused,
}

/// Sends batches; whoever waits sets the time.
pub trait Deliver: Send + Sync + 'static {
    /// Sends one.
    fn deliver(&self, batch: Batch) -> Pin<Box<dyn Future<Output = Delivered> + Send + '_>>;
}

/// What became of the spans of a program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Those that the collector has.
    pub told: u64,
    /// Those that found the queue full.
    pub dropped: u64,
    /// Those that the collector did not take.
    pub lost: u64,
}

#[derive(Debug, Default)]
struct Counters {
    told: AtomicU64,
    dropped: AtomicU64,
    queued: AtomicU64,
}

/// Makes spans; clones share their queue. One that is off makes none.
#[derive(Clone, Default)]
pub struct Tracer(Option<Arc<Shared>>);

pub(crate) struct Shared {
    queue: mpsc::Sender<Ended>,
    counters: Arc<Counters>,
    /// The part of all traces that is told, of 2^64.
    limit: u64,
    heeds_parents: bool,
    keys: RandomState,
    given: AtomicU64,
    end: CancellationToken,
    worker: Mutex<JoinSet<()>>,
}

impl Tracer {
    /// One that tells a collector.
    #[must_use]
    pub fn new(settings: Settings, version: &str, clock: &Clock, deliver: impl Deliver) -> Self {
        let (queue, ended) = mpsc::channel(QUEUE);
        let (counters, end) = (Arc::new(Counters::default()), CancellationToken::new());
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share is from 0 to 1")]
        let limit = (settings.share * u64::MAX as f64) as u64;
        let heeds_parents = settings.heeds_parents;
        let work = Worker {
            ended,
            counters: counters.clone(),
            end: end.clone(),
            began: Began { unix_ms: clock.now_ms(), instant: Instant::now() },
            version: version.to_owned(),
            settings,
            deliver: Box::new(deliver),
        };
        let mut worker = JoinSet::new();
        worker.spawn(work.run());
        let (keys, given, worker) = (RandomState::new(), AtomicU64::new(0), Mutex::new(worker));
        Self(Some(Arc::new(Shared { queue, counters, limit, heeds_parents, keys, given, end, worker })))
    }

    /// Begins a span below the one that the calling task works for.
    #[must_use]
    pub fn span(&self, name: &str, kind: Kind) -> Span {
        self.span_below(name, kind, current())
    }

    /// Begins a span below another, or a trace.
    #[must_use]
    pub fn span_below(&self, name: &str, kind: Kind, parent: Option<Context>) -> Span {
        match &self.0 {
            Some(shared) => Span::open(shared, name, kind, parent),
            None => Span::default(),
        }
    }

    /// Begins a span named after what is done and to what.
    #[must_use]
    pub fn span_of(&self, name: &str, of: &str, kind: Kind) -> Span {
        if self.is_on() { self.span(&format!("{name} {of}"), kind) } else { Span::default() }
    }

    /// A span of whoever asks us, as ours belong to it.
    #[must_use]
    pub fn adopt(&self, parent: Context) -> Context {
        match &self.0 {
            Some(shared) if !shared.heeds_parents => {
                Context { is_told: shared.is_told(parent.trace), ..parent }
            }
            _ => parent,
        }
    }

    /// Whether spans are told at all.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Tells what is left, for a moment at most, and what became of all.
    pub async fn close(&self) -> Counts {
        let Some(shared) = &self.0 else { return Counts::default() };
        shared.end.cancel();
        let worker = std::mem::take(&mut *shared.worker.lock().unwrap_or_else(PoisonError::into_inner));
        let mut worker = worker;
        // What is not told by then never is.
        drop(timeout(CLOSE_DEADLINE, worker.join_next()).await);
        worker.abort_all();
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counters { told, dropped, queued } = &*shared.counters;
        let (told, queued) = (read(told), read(queued));
        // What still waits counts as not taken.
        Counts { told, dropped: read(dropped), lost: queued.saturating_sub(told) }
    }
}

impl Shared {
    /// A name for what begins below a parent; whether a trace is told is decided at its beginning.
    pub(crate) fn below(&self, parent: Option<Context>) -> Context {
        let span = self.random();
        match parent {
            Some(parent) => Context { span, ..parent },
            None => {
                let trace = (u128::from(self.random()) << 64) | u128::from(self.random());
                Context { trace, span, is_told: self.is_told(trace) }
            }
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "one half of a trace's name decides")]
    fn is_told(&self, trace: u128) -> bool {
        self.limit == u64::MAX || (trace as u64) < self.limit
    }

    pub(crate) fn tell(&self, span: Ended) {
        if !span.context.is_told {
            return;
        }
        let counters = &self.counters;
        let count = if self.queue.try_send(span).is_ok() { &counters.queued } else { &counters.dropped };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Never 0, which stands for no name.
    fn random(&self) -> u64 {
        self.keys.hash_one(self.given.fetch_add(1, Ordering::Relaxed)).max(1)
    }
}

struct Worker {
    ended: mpsc::Receiver<Ended>,
    counters: Arc<Counters>,
    end: CancellationToken,
    began: Began,
    version: String,
    settings: Settings,
    deliver: Box<dyn Deliver>,
}

impl Worker {
    async fn run(mut self) {
        let mut batch = Vec::new();
        while !self.end.is_cancelled() {
            let gathered = self.gather(&mut batch);
            // Cut short, what was gathered is in the batch.
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

    /// Gathers spans until there are enough or they have waited long enough; whether it is over.
    async fn gather(&mut self, batch: &mut Vec<Ended>) -> bool {
        let Self { ended, end, .. } = self;
        let gathering = async {
            // Nothing is woken while nothing happens.
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

    async fn send(&self, spans: Vec<Ended>) {
        let count = spans.len() as u64;
        let body = encode(&spans, &self.settings.resource, (self.began, &self.version));
        drop(spans);
        let address = &self.settings.address;
        for attempt in 1..=ATTEMPTS {
            let batch = Batch { address: address.clone(), body: body.clone() };
            let delivered = timeout(address.timeout, self.deliver.deliver(batch)).await;
            match delivered.unwrap_or(Delivered::Later) {
                Delivered::Taken => {
                    self.counters.told.fetch_add(count, Ordering::Relaxed);
                    return;
                }
                Delivered::Refused => return,
                Delivered::Later if attempt == ATTEMPTS || self.end.is_cancelled() => return,
                Delivered::Later => {
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
        fn deliver(&self, _: Batch) -> Pin<Box<dyn Future<Output = Delivered> + Send + '_>> {
            Box::pin(std::future::pending())
        }
    }

    struct Always(Arc<Mutex<Vec<String>>>);

    impl Deliver for Always {
        fn deliver(&self, batch: Batch) -> Pin<Box<dyn Future<Output = Delivered> + Send + '_>> {
            self.0.lock().unwrap().push(String::from_utf8(batch.body).unwrap());
            Box::pin(std::future::ready(Delivered::Taken))
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
        let told = Arc::new(Mutex::default());
        (Tracer::new(settings(share), "1", &Clock::system(), Always(Arc::clone(&told))), told)
    }

    #[tokio::test(start_paused = true)]
    async fn a_collector_that_never_answers_costs_the_end_two_seconds_and_spans_beyond_the_queue() {
        let tracer = Tracer::new(settings("1"), "1", &Clock::system(), Never);
        for _ in 0..QUEUE + BATCH + 700 {
            drop(tracer.span("turn", Kind::Internal));
            tokio::task::yield_now().await;
        }
        let begun = tokio::time::Instant::now();
        let counts = tracer.close().await;
        assert_eq!(begun.elapsed(), CLOSE_DEADLINE);
        assert_eq!(counts, Counts { told: 0, dropped: 700, lost: (QUEUE + BATCH) as u64 });
    }

    #[tokio::test(start_paused = true)]
    async fn spans_belong_to_whoever_begins_them_also_in_other_tasks() {
        let (tracer, told) = tracer("1");
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
        assert_eq!(tracer.close().await, Counts { told: 2, dropped: 0, lost: 0 });
        let told: serde_json::Value = serde_json::from_str(&told.lock().unwrap().concat()).unwrap();
        let spans = &told["resourceSpans"][0]["scopeSpans"][0]["spans"];
        assert_eq!((&spans[0]["name"], &spans[1]["name"]), (&"inner".into(), &"outer".into()));
        assert_eq!(spans[0]["parentSpanId"], spans[1]["spanId"]);
        assert_eq!(spans[0]["traceId"], spans[1]["traceId"]);
        assert_eq!(spans[0]["status"]["code"], 2);
        assert_eq!(spans[0]["attributes"][0]["value"]["intValue"], "7");
        assert!(spans[1].get("parentSpanId").is_none());
    }

    #[tokio::test]
    async fn of_a_share_of_nothing_nothing_is_told_and_off_is_off() {
        let (tracer, told) = tracer("0");
        drop(tracer.span("turn", Kind::Internal));
        assert_eq!(tracer.close().await, Counts::default());
        assert!(told.lock().unwrap().is_empty());
        let off = Tracer::default();
        assert!(!off.is_on() && off.span("turn", Kind::Internal).context().is_none());
        assert_eq!(off.close().await, Counts::default());
    }
}
