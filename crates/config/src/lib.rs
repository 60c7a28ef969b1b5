//! Find, merge and check configuration; the one place that reads environment variables.
