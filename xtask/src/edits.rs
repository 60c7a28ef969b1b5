//! Makes recorded edits of models again, with the edit tool.
//!
//! A record is a line of JSON in a file that may be compressed with gzip: `kind` (`success`, `notfound`, `ambiguous`), the file
//! `before` the edit, `old`, `new` and `all` as the model gave them, `after` (the file after an edit that was made) and
//! `next` (the file after the edit that the model made instead of one that failed).

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail, ensure};
use codewright_tools::trial;
use serde::Deserialize;

/// The records of this repository.
const SAMPLE: &str = "fixtures/edits";
/// The limit of one uncompressed file of records.
const MAX_BYTES: u64 = 1024 * 1024 * 1024;

#[derive(Debug, Deserialize)]
struct Record {
    kind: Kind,
    before: String,
    old: String,
    new: String,
    all: bool,
    #[serde(default)]
    after: Option<String>,
    #[serde(default)]
    next: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Success,
    NotFound,
    Ambiguous,
}

/// The numbers of the table.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Score {
    pub(crate) made: usize,
    pub(crate) successes: usize,
    pub(crate) applied: usize,
    pub(crate) unquoted: usize,
    pub(crate) meant: usize,
    pub(crate) wrongly_refused: usize,
    pub(crate) misses: usize,
    pub(crate) refused: usize,
    pub(crate) ambiguous: usize,
}

/// Prints the table.
pub(crate) fn main(rest: &[String]) -> Result<ExitCode> {
    let mut files: Vec<PathBuf> = Vec::new();
    let mut is_verbose = false;
    for word in rest {
        match word.as_str() {
            "--verbose" => is_verbose = true,
            flag if flag.starts_with('-') => bail!("`edits` has no flag `{flag}`; see `cargo xtask --help`"),
            path => files.push(path.into()),
        }
    }
    if files.is_empty() {
        files.push(Path::new(env!("CARGO_MANIFEST_DIR")).join(SAMPLE));
    }
    let score = replay(&files, is_verbose)?;
    print(&score)?;
    let is_good = score.made == score.successes
        && score.refused == score.ambiguous
        && score.unquoted + score.wrongly_refused == 0;
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Makes the edits of all files. A directory stands for the files in it whose names contain `.jsonl`.
pub(crate) fn replay(paths: &[PathBuf], is_verbose: bool) -> Result<Score> {
    let mut score = Score::default();
    for path in paths.iter().map(|path| listed(path)).collect::<Result<Vec<_>>>()?.concat() {
        for (at, line) in lines(&path)?.enumerate() {
            let place = || format!("{}:{}", path.display(), at + 1);
            let line = line.with_context(place)?;
            let record: Record = serde_json::from_str(&line).with_context(place)?;
            let verdict = judge(&record, &mut score);
            if is_verbose && let Some(verdict) = verdict {
                writeln!(std::io::stdout(), "{}: {verdict}", place())?;
            }
        }
    }
    ensure!(score.successes + score.misses + score.ambiguous > 0, "there are no records");
    Ok(score)
}

fn listed(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in path.read_dir().with_context(|| format!("cannot read {}", path.display()))? {
        let file = entry?.path();
        if file.file_name().is_some_and(|name| name.to_string_lossy().contains(".jsonl")) {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

fn lines(path: &Path) -> Result<impl Iterator<Item = std::io::Result<String>>> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let is_compressed = path.extension().is_some_and(|end| end == "gz");
    let file: Box<dyn std::io::Read> =
        if is_compressed { Box::new(flate2::read::MultiGzDecoder::new(file)) } else { Box::new(file) };
    Ok(BufReader::new(file.take(MAX_BYTES)).lines())
}

/// Makes one edit, and counts it. Returns what a reader may want to look at.
fn judge(record: &Record, score: &mut Score) -> Option<&'static str> {
    let made = trial::edited(&record.before, &record.old, &record.new, record.all);
    match record.kind {
        Kind::Success => {
            score.successes += 1;
            let is_same = made.ok().as_ref() == record.after.as_ref();
            score.made += usize::from(is_same);
            (!is_same).then_some("a success differs")
        }
        Kind::Ambiguous => {
            score.ambiguous += 1;
            score.refused += usize::from(made.is_err());
            made.is_ok().then_some("an ambiguous edit was made")
        }
        Kind::NotFound => {
            score.misses += 1;
            let Ok(made) = made else {
                let is_wrong = copies(&record.before, &record.old) == 1;
                score.wrongly_refused += usize::from(is_wrong);
                return Some(if is_wrong { "wrongly refused" } else { "refused" });
            };
            score.applied += 1;
            let is_quoted = trial::replaced(&record.before, &record.old, record.all)
                .iter()
                .all(|text| plain(text) == plain(&record.old));
            score.unquoted += usize::from(!is_quoted);
            let is_meant = record.next.as_ref() == Some(&made);
            score.meant += usize::from(is_meant);
            Some(match (is_quoted, is_meant) {
                (false, _) => "replaced text that was not quoted",
                (true, true) => "applied, as the model did next",
                (true, false) => "applied",
            })
        }
    }
}

/// A text without blanks and escapes.
fn plain(text: &str) -> String {
    let mut out: String = text.replace("\\n", "\n").replace("\\t", "\t");
    out.retain(|c| !c.is_whitespace() && c != '\\');
    out
}

/// The number of blocks whose lines are those of the quotation after both ends are trimmed.
fn copies(text: &str, old: &str) -> usize {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let old: Vec<&str> = old.trim_matches('\n').lines().map(str::trim).collect();
    if old.iter().all(|line| line.is_empty()) {
        0
    } else {
        lines.windows(old.len()).filter(|run| **run == old).count()
    }
}

fn print(score: &Score) -> Result<()> {
    let rows = [
        ("edits that succeeded, made again byte for byte", score.made, score.successes),
        ("edits whose text was not found: applied", score.applied, score.misses),
        ("of these, text replaced that was not quoted", score.unquoted, score.applied),
        ("of these, equal to what the model did next", score.meant, score.applied),
        ("edits refused although one block differs only in indentation", score.wrongly_refused, score.misses),
        ("edits with several matches: refused", score.refused, score.ambiguous),
    ];
    let mut out = std::io::stdout().lock();
    for (what, count, of) in rows {
        writeln!(out, "{what:<62} {count:>5} of {of}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorded_edits_of_the_sample_are_made_as_they_were() {
        let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join(SAMPLE);
        let score = replay(&[sample], false).unwrap();
        assert_eq!((score.made, score.refused), (score.successes, score.ambiguous), "{score:?}");
        assert_eq!((score.unquoted, score.wrongly_refused), (0, 0), "{score:?}");
        assert!(score.applied >= 6 && score.meant >= 2, "{score:?}");
    }

    #[test]
    fn a_broken_record_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.jsonl");
        std::fs::write(&file, "{\"kind\": \"success\"\n").unwrap();
        let error = format!("{:#}", replay(std::slice::from_ref(&file), false).unwrap_err());
        assert!(error.contains("x.jsonl:1"), "{error}");
        std::fs::write(&file, "").unwrap();
        assert!(replay(&[file], false).is_err());
    }
}
