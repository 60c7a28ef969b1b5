//! The directory: paths, search, files, processes and diffs.
//!
//! Nothing here knows about tools, sessions or permission. Every function takes
//! a path that was already judged, works within a written bound and gives an
//! error that names the path it failed on.

mod diff;
mod error;
mod file;
mod path;
mod process;
mod reading;
mod search;
mod watch;

pub use diff::{Diff, unified};
pub use error::Error;
pub use file::{MAX_TEXT_BYTES, TextFile, read_bytes, read_text, write_atomic};
pub use path::{Place, Workspace, normalize, physical, relative};
pub use process::{
    Command, Confinement, End, Ended, Limits, Output, Rest, SUPERVISE, Screen, Seated, open_terminal, run,
    supervise,
};
pub use reading::{Entries, Kind, MAX_LINE_CHARS, Page, Window, list, read_lines, sniff};
pub use search::{
    Access, Entry, Files, Glob, Grep, Judge, Line, MAX_SEARCH, Matches, Withheld, closest, entries, glob,
    grep, names, spans,
};
pub use watch::{Change, Changed, Folder, Watch};
