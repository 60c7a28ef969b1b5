//! The directory: paths, search, files, processes and diffs.
