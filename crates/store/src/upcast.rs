//! Decodes events that any version of the program has stored.
//!
//! When the schema of an event changes, its version is increased, a function that converts the old schema is added to the
//! table, and a stored row of the old schema stays in the fixtures forever.

use codewright_proto::Event;
use serde_json::Value;

use crate::Error;

/// Converts the properties of one version to the next.
type Upcast = fn(Value) -> Value;

/// The event's name, the old version and the conversion.
const UPCASTS: &[(&str, u32, Upcast)] = &[];

/// Decodes an event from its stored type, such as `message.updated.1`, and its properties.
pub(crate) fn decode(kind: &str, data: &str) -> Result<Event, Error> {
    decode_with(UPCASTS, kind, data)
}

fn decode_with(upcasts: &[(&str, u32, Upcast)], kind: &str, data: &str) -> Result<Event, Error> {
    let unreadable = |error| Error::unreadable(format!("event of type `{kind}`"), error);
    let custom = |message| unreadable(serde::de::Error::custom(message));
    let (name, version) = kind.rsplit_once('.').ok_or_else(|| custom("the type has no version"))?;
    let mut version: u32 = version.parse().map_err(|_| custom("the version is not a number"))?;
    // The name is inserted into JSON below, and another program may have written it.
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.') {
        return Err(custom("the name has invalid characters"));
    }
    let step = |version| upcasts.iter().find(|(of, from, _)| *of == name && *from == version);
    let event: Event = if step(version).is_some() {
        let mut properties: Value = serde_json::from_str(data).map_err(unreadable)?;
        while let Some((_, _, upcast)) = step(version) {
            properties = upcast(properties);
            version += 1;
        }
        let event = serde_json::json!({ "type": name, "properties": properties });
        serde_json::from_value(event).map_err(unreadable)?
    } else {
        let json = format!(r#"{{"type":"{name}","properties":{data}}}"#);
        serde_json::from_str(&json).map_err(unreadable)?
    };
    if event.version() != version {
        return Err(custom("a newer version of the program has written it"));
    }
    Ok(event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_schema_is_converted_step_by_step() {
        let upcasts: &[(&str, u32, Upcast)] = &[("message.removed", 0, |mut properties| {
            properties["messageID"] = properties["message"].take();
            properties
        })];
        let data = r#"{"sessionID":"ses_1","message":"msg_1"}"#;
        let event = decode_with(upcasts, "message.removed.0", data).expect("readable");
        assert_eq!(event.name(), "message.removed");
        decode_with(&[], "message.removed.0", data).expect_err("without its conversion it cannot be decoded");
    }

    #[test]
    fn an_unknown_type_is_reported() {
        let data = r#"{"sessionID":"ses_1","messageID":"msg_1"}"#;
        decode("message.removed.1", data).expect("readable");
        for kind in ["message.removed.2", "message.removed", "nothing.1", "message.\"removed.1", "", "."] {
            let error = decode(kind, data).expect_err(kind).to_string();
            assert!(error.contains(kind), "{error}");
        }
    }
}
