//! The event log, its projections and the feed, on SQLite.
