//! What clients and the server write down for people who look for a fault: one JSON object a
//! line, in a file that never grows beyond its bound.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use crate::Engine;

/// The file is put aside when it has so many bytes; one older file is kept.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;
/// The longest line.
const MAX_LINE_BYTES: usize = 16 * 1024;

/// The file that lines go to; made when the first is written.
pub(crate) struct Journal(Mutex<PathBuf>);

impl Journal {
    pub(crate) fn new(state: &std::path::Path) -> Self {
        Self(Mutex::new(state.join("log").join("codewright.log")))
    }

    fn append(&self, line: &str) -> std::io::Result<()> {
        // Nothing changes the path, so a poisoned one is whole.
        let path = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(above) = path.parent() {
            std::fs::create_dir_all(above)?;
        }
        if std::fs::metadata(&*path).is_ok_and(|file| file.len() > MAX_FILE_BYTES) {
            std::fs::rename(&*path, path.with_extension("log.old"))?;
        }
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        // One write, so that lines of several processes stay whole.
        options.open(&*path)?.write_all(line.as_bytes())
    }
}

impl Engine {
    /// Writes a line down; that it cannot be written troubles nobody.
    pub async fn note(&self, level: &str, service: &str, message: &str, extra: Option<Value>) {
        let mut line = json!({
            "time": self.0.clock.now_ms(),
            "level": level,
            "service": service,
            "message": message,
        });
        if let Some(extra) = extra {
            line["extra"] = extra;
        }
        let mut line = line.to_string();
        if line.len() > MAX_LINE_BYTES {
            line = json!({"level": level, "service": service, "message": "a line that was too long"})
                .to_string();
        }
        line.push('\n');
        let inner = self.0.clone();
        // Neither a full disk nor the end of the program is a reason to fail for whoever notes something.
        drop(tokio::task::spawn_blocking(move || inner.journal.append(&line)).await);
    }
}
