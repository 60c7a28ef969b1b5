//! The limits of one analysis, and the result when one is reached.
//!
//! A limit that silently drops something would hide it from the permission rules. So all limits of the
//! analysis are here, and reaching one is recorded in the same call that reports it. The reason cannot be
//! removed, and [`Limits::outcome`] is the only way to get a result: it is [`Analysis::Unknown`] if a reason
//! is recorded.

use std::cell::Cell;
use std::fmt;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// The limit of processor time. Waiting for a processor does not count.
const MAX_TIME: Duration = Duration::from_millis(50);

/// The number of steps between two readings of the clock.
const STEPS_PER_READING: usize = 8;

/// The outcome of an analysis.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Analysis<T> {
    /// The value contains every effect that can be read off the line.
    Complete(T),
    /// The line may have any effect. `known` contains those that were found.
    Unknown {
        /// The reason why the analysis stopped.
        reason: Reason,
        /// The effects that were found before.
        known: T,
    },
}

/// A counted resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    /// Bytes of the line and of every script in it.
    Bytes,
    /// Commands, including those that other commands run.
    Commands,
    /// Nested scripts that are parsed.
    Scripts,
    /// Words of commands, counted again for every command that runs another.
    Words,
    /// Words that are looked up as paths.
    Paths,
    /// Files that are read or written.
    Files,
    /// Entries of directories that are compared with wildcards.
    Entries,
    /// Bytes of the texts that are compared with the rules.
    Patterns,
    /// Bytes of the values of words.
    Values,
}

const LIMITS: usize = 9;

impl Limit {
    const fn max(self) -> usize {
        match self {
            Self::Bytes => 256 * 1024,
            Self::Commands => 512,
            Self::Scripts => 64,
            Self::Paths => 2048,
            Self::Words => 20_000,
            Self::Files => 1024,
            Self::Entries => 20_000,
            Self::Patterns => 1024 * 1024,
            Self::Values => 4 * 1024 * 1024,
        }
    }

    const fn reason(self) -> Reason {
        match self {
            Self::Bytes | Self::Patterns | Self::Words => Reason::Length,
            Self::Commands | Self::Scripts => Reason::Commands,
            Self::Paths | Self::Files => Reason::Files,
            Self::Entries => Reason::Entries,
            Self::Values => Reason::Values,
        }
    }
}

/// The reason why the effect of a line is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// The line or a script in it is too long.
    Length,
    /// There are too many operators.
    Operators,
    /// The syntax is not supported.
    Syntax,
    /// Commands or words are nested too deeply.
    Depth,
    /// There are too many commands.
    Commands,
    /// There are too many files.
    Files,
    /// A wildcard would have to be compared with too many names.
    Entries,
    /// A word has too many values.
    Values,
    /// The line changes to too many directories.
    Directories,
    /// The analysis took too long.
    Time,
    /// A directory is named that only the shell knows, such as `~user` or `~-`.
    Tilde,
    /// A builtin changes how the shell runs commands.
    Builtin,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Length => "the command line is too long to be analysed",
            Self::Operators => "the command line has too many operators to be analysed",
            Self::Syntax => "the syntax of the command line is not understood",
            Self::Depth => "the command line is nested too deeply to be analysed",
            Self::Commands => "the command line runs too many commands to be analysed",
            Self::Files => "the command line names too many files to be analysed",
            Self::Entries => "a wildcard matches in directories that are too large to be analysed",
            Self::Values => "a word of the command line has too many values to be analysed",
            Self::Directories => "the command line changes the directory too often to be analysed",
            Self::Time => "the command line takes too long to be analysed",
            Self::Tilde => "the command line names a home directory that only the shell knows",
            Self::Builtin => "the command line changes how the shell runs commands",
        })
    }
}

/// The counters of one analysis.
#[derive(Debug)]
pub(super) struct Limits {
    used: [Cell<usize>; LIMITS],
    started: Duration,
    /// The number of time checks. The clock is read for some of them only.
    looks: Cell<usize>,
    reason: Cell<Option<Reason>>,
}

impl Limits {
    pub(super) fn new() -> Self {
        Self {
            used: Default::default(),
            started: thread_time(),
            looks: Cell::new(0),
            reason: Cell::new(None),
        }
    }

    /// Counts `amount` more. Returns `false` if that exceeds the limit, which makes the outcome unknown.
    #[must_use]
    pub(super) fn take(&self, limit: Limit, amount: usize) -> bool {
        let used = &self.used[limit as usize];
        used.set(used.get().saturating_add(amount));
        if used.get() > limit.max() {
            self.give_up(limit.reason());
            return false;
        }
        self.is_in_time()
    }

    /// Whether time is left. If not, the outcome is unknown. Cheap steps read the clock only now and then.
    #[must_use]
    pub(super) fn has_time(&self) -> bool {
        self.looks.set(self.looks.get().wrapping_add(1));
        let is_due =
            self.looks.get().is_multiple_of(STEPS_PER_READING) || self.reason.get() == Some(Reason::Time);
        !is_due || self.is_in_time()
    }

    fn is_in_time(&self) -> bool {
        let is_early = thread_time().saturating_sub(self.started) < MAX_TIME;
        if !is_early {
            self.give_up(Reason::Time);
        }
        is_early
    }

    /// Whether searching for more files is useless.
    #[must_use]
    pub(super) fn is_full(&self) -> bool {
        use Reason::{Directories, Entries, Files, Time};
        matches!(self.reason.get(), Some(Directories | Entries | Files | Time)) || !self.is_in_time()
    }

    /// Makes the outcome unknown. The first reason is kept.
    pub(super) fn give_up(&self, reason: Reason) {
        if self.reason.get().is_none() {
            self.reason.set(Some(reason));
        }
    }

    /// Runs work on text that may not be shell code. Returns whether its syntax was rejected.
    pub(super) fn without_syntax(&self, work: impl FnOnce()) -> bool {
        let before = self.reason.get();
        work();
        let is_syntax = before.is_none() && self.reason.get() == Some(Reason::Syntax);
        if is_syntax {
            self.reason.set(None);
        }
        is_syntax
    }

    /// Returns the outcome with the effects that were found.
    pub(super) fn outcome<T>(&self, known: T) -> Analysis<T> {
        match self.reason.get() {
            None => Analysis::Complete(known),
            Some(reason) => Analysis::Unknown { reason, known },
        }
    }
}

/// The processor time of this thread. Without such a clock the time does not advance, and the other limits
/// still hold.
fn thread_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reaching_any_limit_makes_the_outcome_unknown() {
        use Limit::{Bytes, Commands, Entries, Files, Paths, Patterns, Scripts, Values, Words};
        for limit in [Bytes, Commands, Scripts, Words, Paths, Files, Entries, Patterns, Values] {
            let limits = Limits::new();
            assert!(limits.take(limit, limit.max()), "{limit:?}");
            assert_eq!(limits.outcome(()), Analysis::Complete(()), "{limit:?}");
            assert!(!limits.take(limit, 1), "{limit:?}");
            let reason = limit.reason();
            assert_eq!(limits.outcome(()), Analysis::Unknown { reason, known: () }, "{limit:?}");
        }
    }

    #[test]
    fn the_first_reason_is_kept() {
        let limits = Limits::new();
        limits.give_up(Reason::Depth);
        limits.give_up(Reason::Syntax);
        assert_eq!(limits.outcome(1), Analysis::Unknown { reason: Reason::Depth, known: 1 });
    }
}
