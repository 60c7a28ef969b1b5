//! Counters of a server in the text format of Prometheus.
//!
//! The number of series is fixed. No label comes from a request, a session, a directory or a user, so the metrics contain
//! no content and cannot grow.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use codewright_engine::Engine;
use codewright_proto::Clock;
use http::StatusCode;

use crate::state::App;

/// The upper bounds of the histogram of response times, in milliseconds.
const BOUNDS_MS: [u64; 9] = [1, 5, 25, 100, 250, 1000, 5000, 30_000, 60_000];
/// The classes of statuses, in the order of their first digits.
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
/// The unit of times in `/proc`, which is fixed for programs.
const TICKS_PER_SECOND: f64 = 100.0;

/// The counters.
pub(crate) struct Metrics {
    /// The start of the server, in milliseconds since 1970.
    started_ms: u64,
    /// The requests by class of status.
    requests: [AtomicU64; CLASSES.len()],
    /// The responses by time until their head; the last bucket has no bound.
    times: [AtomicU64; BOUNDS_MS.len() + 1],
    /// The sum of these times in microseconds.
    time_us: AtomicU64,
    /// The open event streams.
    streams: AtomicU64,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            started_ms: Clock::system().now_ms(),
            requests: Default::default(),
            times: Default::default(),
            time_us: AtomicU64::new(0),
            streams: AtomicU64::new(0),
        }
    }
}

/// An open event stream, which counts until this value is dropped.
pub(crate) struct OpenStream(App);

impl OpenStream {
    pub(crate) fn new(app: &App) -> Self {
        app.metrics.streams.fetch_add(1, Ordering::Relaxed);
        Self(app.clone())
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.metrics.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Metrics {
    /// Counts a response whose head was sent after a time.
    pub(crate) fn answered(&self, status: StatusCode, after: Duration) {
        let class = usize::from(status.as_u16() / 100).saturating_sub(1).min(CLASSES.len() - 1);
        self.requests[class].fetch_add(1, Ordering::Relaxed);
        let bucket = BOUNDS_MS.iter().position(|bound| after <= Duration::from_millis(*bound));
        self.times[bucket.unwrap_or(BOUNDS_MS.len())].fetch_add(1, Ordering::Relaxed);
        let us = u64::try_from(after.as_micros()).unwrap_or(u64::MAX);
        self.time_us.fetch_add(us, Ordering::Relaxed);
    }

    /// Returns all metrics as text.
    pub(crate) fn text(&self, engine: &Engine) -> String {
        let mut text = Text::default();
        text.head("codewright_build_info", "gauge", "The version of the program.");
        text.sample(&format!("codewright_build_info{{version=\"{}\"}}", engine.version()), 1.0);
        text.head("codewright_http_requests_total", "counter", "Answered requests by class of status.");
        for (class, count) in CLASSES.iter().zip(&self.requests) {
            text.count(&format!("codewright_http_requests_total{{class=\"{class}\"}}"), count);
        }
        self.write_times(&mut text);
        text.head("codewright_event_streams", "gauge", "Open event streams.");
        text.count("codewright_event_streams", &self.streams);
        text.head("codewright_running_sessions", "gauge", "Sessions that this server works on.");
        text.sample("codewright_running_sessions", engine.sessions().statuses().len() as f64);
        text.head("codewright_log_position", "gauge", "The position of the last known event of the store.");
        text.sample("codewright_log_position", engine.events().last_position() as f64);
        text.head("process_start_time_seconds", "gauge", "The start of the server, in seconds since 1970.");
        text.sample("process_start_time_seconds", self.started_ms as f64 / 1000.0);
        write_process(&mut text);
        text.0
    }

    fn write_times(&self, text: &mut Text) {
        const NAME: &str = "codewright_http_response_seconds";
        text.head(NAME, "histogram", "Time from a request to the head of its response.");
        let mut total = 0;
        for (at, bucket) in self.times.iter().enumerate() {
            total += bucket.load(Ordering::Relaxed);
            let bound = BOUNDS_MS.get(at).map_or("+Inf".to_owned(), |ms| (*ms as f64 / 1000.0).to_string());
            text.sample(&format!("{NAME}_bucket{{le=\"{bound}\"}}"), total as f64);
        }
        text.sample(&format!("{NAME}_sum"), self.time_us.load(Ordering::Relaxed) as f64 / 1e6);
        text.sample(&format!("{NAME}_count"), total as f64);
    }
}

/// The text of metrics.
#[derive(Default)]
struct Text(String);

impl Text {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, series: &str, value: f64) {
        let _ = writeln!(self.0, "{series} {value}");
    }

    fn count(&mut self, series: &str, count: &AtomicU64) {
        self.sample(series, count.load(Ordering::Relaxed) as f64);
    }
}

/// Writes the memory, the processor time and the open files of the process, where the system reports them.
fn write_process(text: &mut Text) {
    if let Some(bytes) = std::fs::read_to_string("/proc/self/status").ok().as_deref().and_then(resident_bytes)
    {
        text.head("process_resident_memory_bytes", "gauge", "Resident memory.");
        text.sample("process_resident_memory_bytes", bytes);
    }
    if let Some(seconds) = std::fs::read_to_string("/proc/self/stat").ok().as_deref().and_then(cpu_seconds) {
        text.head("process_cpu_seconds_total", "counter", "Processor time.");
        text.sample("process_cpu_seconds_total", seconds);
    }
    if let Ok(files) = std::fs::read_dir("/proc/self/fd") {
        text.head("process_open_fds", "gauge", "Open files.");
        text.sample("process_open_fds", files.count() as f64);
    }
}

/// Returns the resident memory in `/proc/self/status`, which is in KiB.
fn resident_bytes(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<f64>().ok()? * 1024.0)
}

/// Returns the processor time in `/proc/self/stat`: the fields 14 and 15. The name before them may contain spaces.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11).map(|field| field.parse::<f64>().ok());
    Some((fields.next()?? + fields.next()??) / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_time_is_found_after_a_name_with_spaces() {
        let stat = "12 (a ) b) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20";
        assert_eq!(cpu_seconds(stat), Some(2.0));
        assert_eq!(cpu_seconds("nonsense"), None);
        assert_eq!(resident_bytes("Name:\tx\nVmRSS:\t    12 kB\n"), Some(12288.0));
    }

    #[test]
    fn a_response_is_counted_in_its_class_and_in_the_first_bucket_that_fits() {
        let metrics = Metrics::default();
        metrics.answered(StatusCode::NOT_FOUND, Duration::from_millis(5));
        metrics.answered(StatusCode::OK, Duration::from_secs(3600));
        let counts = |list: &[AtomicU64]| -> Vec<u64> {
            list.iter().map(|count| count.load(Ordering::Relaxed)).collect()
        };
        assert_eq!(counts(&metrics.requests), [0, 1, 0, 1, 0]);
        assert_eq!(counts(&metrics.times), [0, 1, 0, 0, 0, 0, 0, 0, 0, 1]);
    }
}
