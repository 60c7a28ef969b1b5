//! Texts with placeholders.

/// A text and its values that do not fit together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfilled {
    /// The text has a placeholder without a value.
    #[error("no value for `{0}`")]
    Missing(String),
    /// The text has no place for a value.
    #[error("no place for `{0}`")]
    Unused(String),
}

/// Fills every `{{name}}` of a text; each value must have a place and each place a value.
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
    fn places_and_values_must_agree() {
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
