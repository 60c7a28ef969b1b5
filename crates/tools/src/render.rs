//! Templates with placeholders.

/// A template and values that do not match.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfilled {
    /// A placeholder has no value.
    #[error("no value for `{0}`")]
    Missing(String),
    /// A value has no placeholder.
    #[error("no placeholder for `{0}`")]
    Unused(String),
}

/// Replaces every `{{name}}` of a template. Every placeholder must have a value, and every value a
/// placeholder.
pub fn render(text: &str, values: &[(&str, &str)]) -> Result<String, Unfilled> {
    if let Some((name, _)) = values.iter().find(|(name, _)| !text.contains(&format!("{{{{{name}}}}}"))) {
        return Err(Unfilled::Unused((*name).to_owned()));
    }
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((name, after)) = after.split_once("}}") else { break };
        let value = values.iter().find(|(known, _)| *known == name);
        let (_, value) = value.ok_or_else(|| Unfilled::Missing(name.to_owned()))?;
        out.push_str(before);
        out.push_str(value);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_and_values_must_match() {
        let cases = [
            ("a {{x}} b", vec![("x", "1")], Ok("a 1 b".to_owned())),
            ("a {{x}} {{x}}", vec![("x", "{{y}}")], Ok("a {{y}} {{y}}".to_owned())),
            ("a {{x}}", vec![], Err(Unfilled::Missing("x".to_owned()))),
            ("a", vec![("x", "1")], Err(Unfilled::Unused("x".to_owned()))),
        ];
        for (text, values, expected) in cases {
            assert_eq!(render(text, &values), expected, "{text}");
        }
    }
}
