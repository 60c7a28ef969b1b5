//! Paths, search, files, processes and diffs of a directory.
//!
//! Nothing here depends on tools, sessions or permissions. Functions take paths that were already checked,
//! work within documented limits, and return errors that name the path.

mod beneath;
mod diff;
mod directory;
mod disk;
mod documents;
mod error;
mod file;
pub mod git;
mod held;
mod path;
mod private;
mod process;
mod programs;
mod reading;
mod search;
mod spelling;
mod watch;

pub use beneath::{Node, Opening, Status, fixed_directory};
pub use codewright_sandbox::{
    Below, Blocked, CONFINE, Creation, Guarded, Mechanism, Mounter, Network, Opened, OutsidePackages, Probe,
    Sandbox, Strongest, TEMPORARY, folded_name, is_part_of_repository, listeners,
};
pub use diff::{Diff, unified};
pub use directory::{Directory, EntryStatus};
pub use disk::free_bytes;
pub use documents::Documents;
pub use error::Error;
pub use file::{MAX_TEXT_BYTES, TextFile, write_atomic};
pub use held::Held;
pub use path::{Place, Workspace, hold, hold_at, normalize, physical, relative};
pub use private::{is_own, make_private_directory, private_file, repair_private_directory};
pub use process::{
    Author, Command, Confined, Confinement, Connected, Connections, Descent, End, Ended, Errors, Limits,
    Outcome, Outlet, Output, Peer, RefusedHost, Rest, SUPERVISE, Screen, Seated, Served, TerminalSize,
    confine, connect, deny_tracing, has_commands, open_terminal, probe_sandbox, process_descent, run,
    sandbox_support, serve, socket_descent, supervise,
};
pub use programs::{ProgramSearch, Programs};
pub use reading::{Entries, Kind, MAX_LINE_CHARS, Page, Window, list, read_lines, sniff};
pub use search::{
    Access, Entry, Files, Glob, Globs, Grep, Judge, Line, MAX_SEARCH, Matches, Withheld, closest, entries,
    glob, grep, names, spans,
};
pub use spelling::{Likeness, alike_glob, composed, existing, has_namesake, plain, spellings};
pub use watch::{Change, Changed, Folder, Limit, Tree, TreeChange, TreeChanges, TreeOptions, Watch};
