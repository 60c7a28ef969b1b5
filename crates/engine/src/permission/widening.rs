//! Permission requests that are about more than ordinary work in the directory and the sandbox of a session.

use codewright_proto::PermissionRequest;
use codewright_tools::Ask;

use super::gate::{CONTROL_REASON, OUTSIDE};

/// The metadata keys of a request that widens what a session may do: a rule must name the target, only exactly the target can be
/// granted, the machine cannot enforce the sandbox, the whole network, or a control file.
const MARKS: [&str; 5] = [Ask::NAMED, Ask::EXACT, Ask::UNENFORCED, Ask::OPEN_NETWORK, CONTROL_REASON];

/// Reports whether a permission request is about a directory outside, the sandbox, a private address, a hidden file or a
/// control file. On a server with users only administrators grant it.
#[must_use]
pub fn widens(request: &PermissionRequest) -> bool {
    [OUTSIDE, Ask::SANDBOX].contains(&request.permission.as_str())
        || MARKS.iter().any(|mark| request.metadata.contains_key(*mark))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_for_more_than_ordinary_work_is_recognized() {
        for (permission, metadata, expected) in [
            ("bash", json!({"command": "ls"}), false),
            ("read", json!({"filepath": "a"}), false),
            ("network", json!({"host": "example.com", "port": 443}), false),
            ("sandbox", json!({}), true),
            ("external_directory", json!({}), true),
            ("sandbox", json!({"network": "open"}), true),
            ("read", json!({"exact": true}), true),
            ("webfetch", json!({"named": true}), true),
            ("bash", json!({"sandbox": "no user namespaces"}), true),
            ("edit", json!({"controlFile": "git runs it"}), true),
        ] {
            let request = json!({
                "id": "per_1", "sessionID": "ses_1", "permission": permission, "patterns": ["x"],
                "metadata": metadata, "always": [],
            });
            let request: PermissionRequest = serde_json::from_value(request).unwrap();
            assert_eq!(widens(&request), expected, "{permission} {metadata}");
        }
    }
}
