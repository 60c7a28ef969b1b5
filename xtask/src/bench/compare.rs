//! Compares lists, transcripts and undo of several programs over the same HTTP requests.
//!
//! Each program fills its own data directory by requests, because the files are not compatible. The items of
//! every answer are counted, and an undo must restore the file.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::Program;
use super::abort::request;
use super::served::Served;
use super::spread::Spread;
use crate::model::{EDIT, Model, REPLACED};

/// The number of sessions in the list.
const SESSIONS: usize = 1000;
/// The number of messages of the transcript.
const MESSAGES: usize = 200;
/// The names of the measurements.
const ROWS: [&str; 3] = ["list of 1000 sessions", "transcript of 200 messages", "an edit undone"];

/// Measures each program and returns the lines of the report.
pub(super) fn measure(ours: &Path, against: &[PathBuf], runs: usize) -> Result<String> {
    let model = Model::start()?;
    let mut columns = Vec::new();
    for (at, path) in [ours].into_iter().chain(against.iter().map(PathBuf::as_path)).enumerate() {
        let name = if at == 0 { "ours".to_owned() } else { format!("against {at}") };
        let program = Program::new(&name, path, &model.url)?;
        columns.push((name, measure_program(&program, runs, if at == 0 { Undo::Must } else { Undo::May })?));
    }
    let mut text = String::from("  compared with other programs, over HTTP, in ms:\n");
    for (row, what) in ROWS.iter().enumerate() {
        write!(text, "  {what:<34}")?;
        for (name, times) in &columns {
            match Spread::of(times[row].iter().copied()) {
                Some(it) => write!(text, " {name} {:.1} ({:.1} .. {:.1})", it.median, it.least, it.most)?,
                None => write!(text, " {name} did not answer")?,
            }
        }
        text.push('\n');
    }
    Ok(text)
}

/// Whether a program must support undo.
#[derive(Clone, Copy)]
enum Undo {
    Must,
    May,
}

/// Returns the times of each measurement in milliseconds. The first run warms the machine.
fn measure_program(program: &Program, runs: usize, expected: Undo) -> Result<[Vec<f64>; ROWS.len()]> {
    let server = Served::start(program)?;
    let url = server.address.as_str();
    let created = |_| request(url, "POST", "/session", Some(&json!({})));
    let sessions = (0..SESSIONS).map(created).collect::<Result<Vec<_>>>()?;
    let id = |at: usize| sessions[at]["id"].as_str().context("no session");
    let long = format!("/session/{}/message", id(0)?);
    for at in 0..MESSAGES {
        let text = format!(
            "Prompt {at} without an answer, as long as prompts are that describe what is to be done."
        );
        request(url, "POST", &long, Some(&prompt(&text, true)))?;
    }
    let edited = format!("/session/{}", id(1)?);
    let mut times: [Vec<f64>; ROWS.len()] = Default::default();
    for run in 0..=runs {
        let listed = clock(|| request(url, "GET", &format!("/session?limit={SESSIONS}"), None))?;
        let read = clock(|| request(url, "GET", &long, None))?;
        for ((_, answer), count) in [&listed, &read].into_iter().zip([SESSIONS, MESSAGES]) {
            let found = answer.as_array().map_or(0, Vec::len);
            ensure!(found == count, "the answer has {found} items, not {count}");
        }
        // Another program may not answer, so it gets one request.
        let undone = match expected {
            Undo::Must => Some(undo(program, url, &edited)?),
            Undo::May if run > 1 && times[2].is_empty() => None,
            Undo::May => undo(program, url, &edited).ok(),
        };
        if run > 0 {
            times[0].push(listed.0);
            times[1].push(read.0);
            times[2].extend(undone);
        }
    }
    Ok(times)
}

/// Runs a turn that edits a file, and returns the time to undo it.
fn undo(program: &Program, url: &str, session: &str) -> Result<f64> {
    program.sandbox.reset()?;
    let file = program.sandbox.edited();
    let prompt = prompt(&format!("{EDIT} {} please", file.display()), false);
    let answer = request(url, "POST", &format!("{session}/message"), Some(&prompt))?;
    ensure!(fs::read_to_string(&file)?.contains(REPLACED.1), "the file was not edited");
    let message = json!({"messageID": answer["info"]["parentID"]});
    let (time, _) = clock(|| request(url, "POST", &format!("{session}/revert"), Some(&message)))?;
    ensure!(fs::read_to_string(&file)?.contains(REPLACED.0), "the edit was not undone");
    Ok(time)
}

fn prompt(text: &str, is_alone: bool) -> Value {
    let model = json!({"providerID": "mock", "modelID": "plain-model"});
    json!({"noReply": is_alone, "model": model, "parts": [{"type": "text", "text": text}]})
}

fn clock(work: impl FnOnce() -> Result<Value>) -> Result<(f64, Value)> {
    let begun = Instant::now();
    let answer = work()?;
    Ok((begun.elapsed().as_secs_f64() * 1000.0, answer))
}
