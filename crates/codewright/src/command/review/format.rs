//! The formats of a review.

use codewright_proto::{Finding, Review, Severity};
use serde_json::{Value, json};

use crate::connection::VERSION;

/// The text for people: a line with the place for each finding, then its description and the suggestion.
pub(super) fn text(review: &Review) -> String {
    let mut text = String::new();
    if !review.summary.trim().is_empty() {
        text.push_str(&format!("{}\n\n", review.summary.trim()));
    }
    for Finding { file, line, severity, title, description, suggestion, .. } in &review.findings {
        text.push_str(&format!("{file}:{line}: {}: {}\n", severity.name(), title.trim()));
        text.push_str(&indented(description, "  "));
        if let Some(suggestion) = suggestion {
            text.push_str("  Suggestion:\n");
            text.push_str(&indented(suggestion, "    "));
        }
        text.push('\n');
    }
    match review.findings.len() {
        0 => text.push_str("No findings.\n"),
        1 => text.push_str("1 finding.\n"),
        count => text.push_str(&format!("{count} findings.\n")),
    }
    text
}

fn indented(text: &str, indent: &str) -> String {
    text.trim_end().lines().map(|line| format!("{indent}{line}\n")).collect()
}

/// SARIF 2.1.0, which GitHub and other hosts show beside the lines.
pub(super) fn sarif(review: &Review) -> Value {
    let rules = Severity::ALL.map(|severity| {
        json!({
            "id": severity.name(),
            "shortDescription": { "text": format!("A finding of {} severity", severity.name()) },
            "defaultConfiguration": { "level": level(severity) },
        })
    });
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "Codewright", "version": VERSION, "rules": rules } },
            "originalUriBaseIds": { "%SRCROOT%": { "description": { "text": "The root of the repository" } } },
            "results": review.findings.iter().map(result).collect::<Vec<_>>(),
        }],
    })
}

fn result(finding: &Finding) -> Value {
    let Finding { file, line, end_line, severity, title, description, suggestion, .. } = finding;
    let mut text = format!("{}\n\n{}", title.trim(), description.trim());
    if let Some(suggestion) = suggestion {
        text.push_str(&format!("\n\nSuggestion:\n{}", suggestion.trim_end()));
    }
    json!({
        "ruleId": severity.name(),
        "level": level(*severity),
        "message": { "text": text },
        "locations": [{ "physicalLocation": {
            "artifactLocation": { "uri": uri(file), "uriBaseId": "%SRCROOT%" },
            "region": { "startLine": line, "endLine": end_line.unwrap_or(*line) },
        } }],
    })
}

/// A relative path as a URI reference.
fn uri(path: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    path.bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical | Severity::High => "error",
        Severity::Medium => "warning",
        Severity::Low => "note",
    }
}
