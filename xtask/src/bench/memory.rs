//! Measures the memory of a server that rests after heavy work.
//!
//! A round consists of sessions with large outputs, all at the same time, parallel reads of long transcripts, and large
//! bodies that the server refuses. After each round the server rests.

use std::fmt::Write as _;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::serve::{create_session, has, prompt_session};
use super::served::Served;
use super::wire::Connection;
use super::{Plan, Program};
use crate::model::{ANSWER, BULK, BULKY, Model};

/// The name on the command line.
pub(super) const NAME: &str = "memory";
/// The number of rounds.
const ROUNDS: usize = 4;
/// The number of sessions that work at the same time.
const SESSIONS: usize = 24;
/// The number of parallel readers.
const READERS: usize = 8;
/// The number of transcripts that each reader reads.
const READS: usize = 12;
/// The number of turns of the long transcript.
const TURNS: usize = 161;
/// The number of refused bodies, which are sent at the same time.
const REFUSED: usize = 6;
/// The size of a refused body.
const REFUSED_BYTES: usize = 20_000_000;
/// The time from the start until the server is idle and has returned memory.
const SETTLE: Duration = Duration::from_secs(8);
/// The rest after a round.
const REST: Duration = Duration::from_secs(40);
/// The limit of the memory after a round above the memory at the start.
const LIMIT_MIB: f64 = 24.0;
/// The limit of the growth from the second round to the last; the first fills caches.
const GROWTH_MIB: f64 = 2.0;
/// The limit of the memory at the start.
const START_MIB: f64 = 20.0;

/// The memory of one program.
struct Figures {
    start_mib: f64,
    rounds_mib: Vec<f64>,
    peak_mib: f64,
}

/// Measures each program and returns the lines of the report.
pub(super) fn measure(plan: &Plan) -> Result<String> {
    let mut model = Model::start()?;
    let mut text = format!("\n{NAME}: a server, {} s after rounds of heavy work\n", REST.as_secs());
    let ours = plan.program()?;
    for (at, path) in [&ours].into_iter().chain(&plan.against).enumerate() {
        let name = if at == 0 { "ours".to_owned() } else { format!("against {at}") };
        match measure_program(&Program::new(&name, path, &model.url)?) {
            Ok(figures) => text.push_str(&lines(&name, &figures, at == 0)?),
            Err(error) if at > 0 => writeln!(text, "  FAILED {name}: {error:#}")?,
            Err(error) => return Err(error),
        }
    }
    let problems = model.seen()?.problems;
    ensure!(problems.is_empty(), "{text}{}", problems.join("\n"));
    Ok(text)
}

/// Formats the figures of a program; the first one has limits.
fn lines(program: &str, figures: &Figures, has_limits: bool) -> Result<String> {
    let Figures { start_mib, rounds_mib, peak_mib } = figures;
    let (first, last) = (rounds_mib.get(1).context("no rounds")?, rounds_mib.last().context("no rounds")?);
    let most = rounds_mib.iter().copied().fold(f64::NAN, f64::max);
    let each: Vec<_> = rounds_mib.iter().map(|mib| format!("{mib:.1}")).collect();
    let mut text = String::new();
    for (name, value, limit) in [
        ("at the start", *start_mib, Some(START_MIB)),
        ("most after a round, above the start", most - start_mib, Some(LIMIT_MIB)),
        ("growth from round 2 to the last", last - first, Some(GROWTH_MIB)),
        ("peak", *peak_mib, None),
    ] {
        let verdict = match limit.filter(|_| has_limits) {
            Some(limit) if value <= limit => format!("≤ {limit} ok"),
            Some(limit) => format!("≤ {limit} MISSED"),
            None => String::new(),
        };
        let line = format!("  {name:<38} {program:<10} {value:>8.1} MiB  {verdict}");
        writeln!(text, "{}", line.trim_end())?;
    }
    writeln!(text, "  {:<38} {program:<10} {} MiB", "after each round", each.join(", "))?;
    Ok(text)
}

fn measure_program(program: &Program) -> Result<Figures> {
    let server = Served::start(program)?;
    thread::sleep(SETTLE);
    let start_mib = server.memory()?.now_mib;
    let address = server.address.as_str();
    let mut connection = Connection::new(address)?;
    let long = create_session(&mut connection, "Long")?;
    for _ in 0..TURNS {
        let answer = prompt_session(&mut connection, &long, "hi")?;
        ensure!(has(&answer, ANSWER), "the answer was {answer}");
    }
    drop(connection);
    let body = refused_body();
    let mut rounds_mib = Vec::new();
    for round in 0..ROUNDS {
        let mut transcripts = work(address, round)?;
        transcripts.push(long.clone());
        read(address, &transcripts)?;
        refuse(address, &long, &body)?;
        thread::sleep(REST);
        rounds_mib.push(server.memory()?.now_mib);
    }
    let peak_mib = server.memory()?.peak_mib;
    server.end()?;
    Ok(Figures { start_mib, rounds_mib, peak_mib })
}

/// Runs turns with large outputs in new sessions, and returns the sessions.
fn work(address: &str, round: usize) -> Result<Vec<String>> {
    let expected = BULKY.text();
    let prompt = |at: usize| {
        let mut connection = Connection::new(address)?;
        let session = create_session(&mut connection, &format!("Round {round}, session {at}"))?;
        let answer = prompt_session(&mut connection, &session, &format!("{BULK} please"))?;
        ensure!(has(&answer, &expected), "a session's answer is not that of the model");
        Ok(session)
    };
    parallel(SESSIONS, prompt)
}

/// Reads transcripts in parallel.
fn read(address: &str, transcripts: &[String]) -> Result<()> {
    let read = |reader: usize| {
        let mut connection = Connection::new(address)?;
        for at in 0..READS {
            let session = &transcripts[(reader + at) % transcripts.len()];
            let bytes = connection.bytes("GET", &format!("/session/{session}/message"), None)?;
            ensure!(
                bytes.len() > BULKY.bytes.min(TURNS * 500),
                "a transcript has only {} bytes",
                bytes.len()
            );
        }
        // The long transcript is the last one, and every reader reads it.
        let long = transcripts.last().context("no transcript")?;
        connection.bytes("GET", &format!("/session/{long}/message"), None).map(drop)
    };
    parallel(READERS, read).map(drop)
}

/// Sends bodies that the server reads and refuses.
fn refuse(address: &str, session: &str, body: &[u8]) -> Result<()> {
    let send = |_| {
        let status = Connection::new(address)?.send_large(&format!("/session/{session}/message"), body)?;
        ensure!(status.starts_with('4'), "a wrong body was answered with {status}");
        Ok(())
    };
    parallel(REFUSED, send).map(drop)
}

/// Returns a prompt whose last field has the wrong type.
fn refused_body() -> Vec<u8> {
    let text = "a refused text ".repeat(REFUSED_BYTES / 15);
    format!(r#"{{"parts":[{{"type":"text","text":"{text}"}}],"model":7}}"#).into_bytes()
}

fn parallel<T: Send>(count: usize, work: impl Fn(usize) -> Result<T> + Sync) -> Result<Vec<T>> {
    thread::scope(|scope| {
        let threads: Vec<_> = (0..count)
            .map(|at| {
                scope.spawn({
                    let work = &work;
                    move || work(at)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no request panics")).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_above_its_limit_is_marked() {
        let figures = |last| Figures { start_mib: 17.0, rounds_mib: vec![30.0, 31.0, last], peak_mib: 200.0 };
        let good = lines("ours", &figures(32.0), true).unwrap();
        assert!(good.contains("≤ 24 ok") && !good.contains("MISSED"), "{good}");
        let grown = lines("ours", &figures(34.0), true).unwrap();
        assert!(grown.contains("≤ 2 MISSED") && grown.contains("≤ 24 ok"), "{grown}");
        assert!(lines("ours", &figures(42.0), true).unwrap().contains("≤ 24 MISSED"));
        assert!(!lines("against 1", &figures(42.0), false).unwrap().contains('≤'));
    }

    #[test]
    fn the_refused_body_is_json_of_the_wrong_shape() {
        let body = refused_body();
        assert!(body.len() >= REFUSED_BYTES - 100);
        let value: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert!(value["model"].is_number());
    }
}
