//! The conversion of agents, models, providers and sessions into the schemas of the v2 API.

use std::collections::BTreeMap;

use codewright_engine::{Connection, method_id};
use codewright_proto::Session;
use serde_json::{Map, Value, json};

/// Returns the providers in the reply of `GET /config/providers`.
pub(super) fn providers(listed: &Value) -> impl Iterator<Item = &Value> {
    listed["providers"].as_array().into_iter().flatten()
}

/// Returns those of the fields that are present.
fn present<'a>(from: &'a Value, keys: &'a [&'a str]) -> impl Iterator<Item = (String, Value)> + 'a {
    keys.iter().filter_map(|key| {
        let value = from.get(key).filter(|value| !value.is_null())?;
        Some(((*key).to_owned(), value.clone()))
    })
}

fn request() -> Value {
    json!({"headers": {}, "body": {}})
}

pub(super) fn agent(agent: &Value) -> Value {
    let mut converted = Map::new();
    converted.insert("id".to_owned(), agent["name"].clone());
    if let Some(model) = agent.get("model").filter(|model| model.is_object()) {
        let model = json!({"id": model["modelID"], "providerID": model["providerID"]});
        converted.insert("model".to_owned(), model);
    }
    converted.insert("request".to_owned(), request());
    if let Some(prompt) = agent.get("prompt").filter(|prompt| prompt.is_string()) {
        converted.insert("system".to_owned(), prompt.clone());
    }
    converted.extend(present(agent, &["description", "mode"]));
    converted.insert("hidden".to_owned(), json!(agent["hidden"] == true));
    converted.extend(present(agent, &["color", "steps"]));
    let rules = agent["permission"].as_array().into_iter().flatten().map(
        |rule| json!({"action": rule["permission"], "resource": rule["pattern"], "effect": rule["action"]}),
    );
    converted.insert("permissions".to_owned(), rules.collect());
    converted.into()
}

/// Converts a command. In the v2 API its model is an object, not a string.
pub(super) fn command(command: &Value) -> Value {
    let mut converted: Map<_, _> = present(command, &["name", "template", "description", "agent"]).collect();
    if let Some((provider, model)) = command["model"].as_str().and_then(|model| model.split_once('/')) {
        converted.insert("model".to_owned(), json!({"id": model, "providerID": provider}));
    }
    converted.extend(present(command, &["subtask"]));
    converted.into()
}

/// Returns the URL and the package of a provider or model, never its key.
fn api(npm: &Value, url: &Value) -> Map<String, Value> {
    let mut api = Map::new();
    api.insert("type".to_owned(), json!("aisdk"));
    api.insert("package".to_owned(), npm.clone());
    if url.as_str().is_some_and(|url| !url.is_empty()) {
        api.insert("url".to_owned(), url.clone());
    }
    api
}

pub(super) fn provider(provider: &Value) -> Value {
    let first = provider["models"].as_object().and_then(|models| models.values().next());
    let first = first.map_or(&Value::Null, |model| &model["api"]);
    json!({
        "id": provider["id"],
        "name": provider["name"],
        "api": api(&first["npm"], &first["url"]),
        "request": request(),
    })
}

pub(super) fn model(model: &Value) -> Value {
    let mut converted = Map::new();
    converted.extend(present(model, &["id", "providerID"]));
    if model["family"].as_str().is_some_and(|family| !family.is_empty()) {
        converted.extend(present(model, &["family"]));
    }
    converted.extend(present(model, &["name"]));
    let api: Map<_, _> = std::iter::once(("id".to_owned(), model["api"]["id"].clone()))
        .chain(api(&model["api"]["npm"], &model["api"]["url"]))
        .collect();
    converted.insert("api".to_owned(), api.into());
    let capabilities = &model["capabilities"];
    let kinds = |of: &Value| -> Value {
        let kinds = of.as_object().into_iter().flatten();
        kinds.filter(|(_, on)| **on == true).map(|(kind, _)| json!(kind)).collect()
    };
    converted.insert(
        "capabilities".to_owned(),
        json!({
            "tools": capabilities["toolcall"],
            "input": kinds(&capabilities["input"]),
            "output": kinds(&capabilities["output"]),
        }),
    );
    converted.insert("request".to_owned(), request());
    let variants = model["variants"].as_object().into_iter().flatten();
    let variants = variants.map(|(name, options)| json!({"id": name, "headers": {}, "body": options}));
    converted.insert("variants".to_owned(), variants.collect());
    converted.insert("time".to_owned(), json!({"released": released(&model["release_date"])}));
    let cost = &model["cost"];
    let cost = json!([{"input": cost["input"], "output": cost["output"], "cache": cost["cache"]}]);
    converted.insert("cost".to_owned(), cost);
    converted.extend(present(model, &["status"]));
    converted.insert("enabled".to_owned(), json!(true));
    converted.extend(present(model, &["limit"]));
    converted.into()
}

/// Converts a date such as `2025-08-05` to milliseconds since 1970. An invalid date is 0.
fn released(date: &Value) -> i64 {
    let mut parts = date.as_str().unwrap_or_default().split('-').map(|part| part.parse::<i64>().ok());
    let Some(Some(year)) = parts.next() else { return 0 };
    let month = parts.next().flatten().unwrap_or(1).clamp(1, 12);
    let day = parts.next().flatten().unwrap_or(1).clamp(1, 31);
    if !(1970..=9999).contains(&year) {
        return 0;
    }
    // Computes the days since 1970 with March as the first month, so that leap days are last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1 - 719_468;
    days * 86_400_000
}

pub(super) fn integration(
    provider: &Connection,
    sign_ins: &Value,
    labels: &BTreeMap<String, Option<String>>,
) -> Value {
    let Connection { id, name, variables: env, source } = provider;
    let mut methods = vec![json!({"type": "key"})];
    if !env.is_empty() {
        methods.push(json!({"type": "env", "names": env}));
    }
    let offered = sign_ins.get(id).and_then(Value::as_array).into_iter().flatten().enumerate();
    methods.extend(offered.filter(|(_, method)| method["type"] == "oauth").map(|(at, method)| {
        let mut converted = json!({"id": method_id(id, at), "type": "oauth", "label": method["label"]});
        if let Some(prompts) = method.get("prompts") {
            converted["prompts"] = prompts.clone();
        }
        converted
    }));
    let connection = match (source, env.first(), labels.get(id)) {
        (Some("env"), Some(name), None) => vec![json!({"type": "env", "name": name})],
        (_, _, Some(label)) => {
            let label = label.as_ref().unwrap_or(name);
            vec![json!({"type": "credential", "id": id, "label": label})]
        }
        _ => Vec::new(),
    };
    json!({"id": id, "name": name, "methods": methods, "connections": connection})
}

pub(super) fn session(session: &Session) -> Value {
    let source = json!(session);
    let mut converted = Map::new();
    converted.extend(present(
        &source,
        &["id", "parentID", "projectID", "agent", "model", "cost", "tokens", "time"],
    ));
    converted.extend(present(&source, &["title"]));
    converted.insert("location".to_owned(), json!({"directory": session.directory}));
    if let Some(path) = session.path.as_deref().filter(|path| !path.is_empty()) {
        converted.insert("subpath".to_owned(), json!(path));
    }
    if let Some(revert) = &session.revert {
        converted.insert("revert".to_owned(), crate::v2::event::revert(revert));
    }
    converted.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_days_since_1970() {
        for (date, days) in [
            ("1970-01-01", 0),
            ("1970-03-01", 59),
            ("2000-02-29", 11_016),
            ("2025-08-05", 20_305),
            ("2024", 19_723),
            ("2024-03", 19_783),
            ("", 0),
            ("soon", 0),
            ("99999-01-01", 0),
        ] {
            assert_eq!(released(&json!(date)), days * 86_400_000, "{date}");
        }
    }
}
