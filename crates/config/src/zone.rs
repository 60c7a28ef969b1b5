//! The file of the system's time zone.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use crate::Env;
use crate::env::TZ;

/// The file of the zone, usually a link into the database of zones.
const FILE: &str = "/etc/localtime";
/// The limit for the size of the file. The largest zones have 4 KiB.
const MAX_BYTES: u64 = 256 * 1024;

/// Returns the content of the system's zone file, unless `TZ` names a zone or the file is missing or too large.
///
/// Finding the zone by the target of the link reads every directory of the database, which costs more than the rest of
/// opening the configuration.
#[must_use]
pub fn zone_file(env: &Env) -> Option<Vec<u8>> {
    if env.get(TZ).is_some() { None } else { read(Path::new(FILE)) }
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MAX_BYTES + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= MAX_BYTES).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_zone_has_no_file() {
        for zone in ["", "Europe/Berlin", "JST-9"] {
            assert_eq!(zone_file(&Env::from_pairs([("TZ", zone)])), None, "{zone}");
        }
    }

    #[test]
    fn a_file_is_read_within_its_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("localtime");
        assert_eq!(read(&path), None);
        std::fs::write(&path, "TZif").unwrap();
        assert_eq!(read(&path).as_deref(), Some(&b"TZif"[..]));
        std::fs::write(&path, vec![0; MAX_BYTES as usize + 1]).unwrap();
        assert_eq!(read(&path), None);
    }
}
