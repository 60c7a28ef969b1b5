//! Permission requests and questions in the schemas of the v2 API.

use codewright_proto::{Event, PermissionRequest, Signal};
use serde_json::{Value, json};

/// Converts a permission request.
pub(crate) fn permission(request: &PermissionRequest) -> Value {
    let mut value = json!(request);
    if let Some(object) = value.as_object_mut() {
        for (old, new) in [("permission", "action"), ("patterns", "resources"), ("always", "save")] {
            if let Some(field) = object.remove(old) {
                object.insert(new.to_owned(), field);
            }
        }
        if let Some(tool) = object.remove("tool") {
            let source = json!({"type": "tool", "messageID": tool["messageID"], "callID": tool["callID"]});
            object.insert("source".to_owned(), source);
        }
    }
    value
}

/// Returns the type and data of the v2 event of a permission request, if `event` is about one.
pub(super) fn of_event(event: &Event) -> Option<(&'static str, Value)> {
    match event {
        Event::PermissionAsked(request) => Some(("permission.v2.asked", permission(request))),
        Event::PermissionReplied { session_id, request_id, reply, by, .. } => {
            let mut data = json!({"sessionID": session_id, "requestID": request_id, "reply": reply});
            if let Some(by) = by.as_ref().filter(|by| by.is_shown()) {
                data["by"] = json!(by);
            }
            Some(("permission.v2.replied", data))
        }
        Event::SessionCreated { .. }
        | Event::SessionUpdated { .. }
        | Event::SessionDeleted { .. }
        | Event::MessageUpdated { .. }
        | Event::MessageRemoved { .. }
        | Event::PartUpdated { .. }
        | Event::PartRemoved { .. }
        | Event::TodoUpdated { .. } => None,
    }
}

/// Returns the type and data of the v2 event of a question, if `signal` is about one.
pub(super) fn of_signal(signal: &Signal) -> Option<(&'static str, Value)> {
    let kind = match signal {
        Signal::QuestionAsked(_) => "question.v2.asked",
        Signal::QuestionReplied { .. } => "question.v2.replied",
        Signal::QuestionRejected { .. } => "question.v2.rejected",
        _ => return None,
    };
    Some((kind, json!(signal)["properties"].take()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permission_requests_and_questions_have_the_names_and_schemas_of_v2() {
        let request = json!({
            "id": "per_1", "sessionID": "ses_1", "permission": "bash", "patterns": ["ls"], "metadata": {},
            "always": ["ls *"], "tool": {"messageID": "msg_1", "callID": "c"},
        });
        let asked: Event =
            serde_json::from_value(json!({"type": "permission.asked", "properties": request})).unwrap();
        let converted = json!({
            "id": "per_1", "sessionID": "ses_1", "action": "bash", "resources": ["ls"], "metadata": {},
            "save": ["ls *"], "source": {"type": "tool", "messageID": "msg_1", "callID": "c"},
        });
        assert_eq!(of_event(&asked), Some(("permission.v2.asked", converted)));
        let replied = json!({"sessionID": "ses_1", "requestID": "que_1", "answers": [["Red"]]});
        let signal: Signal =
            serde_json::from_value(json!({"type": "question.replied", "properties": replied})).unwrap();
        assert_eq!(of_signal(&signal), Some(("question.v2.replied", replied)));
        assert_eq!(of_signal(&Signal::ServerHeartbeat {}), None);
    }
}
