//! Several files in one call. The schema names one; models of other programs name lists of them.

use serde_json::{Map, Value, json};

use super::Input;
use crate::{Output, ToolError};

/// The limit of files in one call.
const MAX_FILES: usize = 20;
/// The key of the further files.
const FILES: &str = "files";
/// The key of the file.
const FILE: &str = "filePath";

/// Turns a list of files into the file of the schema and further ones: `{"paths": ["a", "b"]}` becomes
/// `{"filePath": "a", "files": [{"filePath": "b"}]}`.
pub(super) fn adapt(_called: &str, input: &mut Value) {
    let Some(fields) = input.as_object_mut() else { return };
    let listed = fields.iter().find_map(|(key, value)| {
        let plain: String =
            key.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
        let is_name = matches!(plain.trim_end_matches('s'), "filepath" | "path" | "file" | "filename");
        Some((key.clone(), list(value)?)).filter(|_| is_name)
    });
    let Some((key, listed)) = listed else { return };
    let Some(mut files) = listed.iter().map(entry).collect::<Option<Vec<Map<String, Value>>>>() else {
        return;
    };
    if key == FILES && fields.get(FILE).is_some_and(Value::is_string) {
        fields.insert(key, files.into());
        return;
    }
    if files.is_empty() {
        return;
    }
    fields.remove(&key);
    // A range next to the list is meant for each file.
    let range: Vec<_> =
        ["offset", "limit"].into_iter().filter_map(|key| Some((key, fields.get(key)?.clone()))).collect();
    for file in &mut files {
        for (key, value) in &range {
            file.entry(*key).or_insert_with(|| value.clone());
        }
    }
    let single = fields.get(FILE).is_some_and(Value::is_string);
    if !single {
        fields.extend(files.remove(0));
    }
    if !files.is_empty() {
        fields.insert(FILES.to_owned(), files.into());
    }
}

/// Returns a list, also one that is written as text.
fn list(value: &Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(list) => Some(list.clone()),
        Value::String(text) if text.trim_start().starts_with('[') => {
            let list: Vec<String> = serde_json::from_str(text).ok()?;
            Some(list.into_iter().map(Value::String).collect())
        }
        _ => None,
    }
}

/// Returns the fields of a file: a path, or an object with one.
fn entry(value: &Value) -> Option<Map<String, Value>> {
    if let Some(path) = value.as_str() {
        return Some(Map::from_iter([(FILE.to_owned(), path.into())]));
    }
    let fields = value.as_object()?;
    let path = [FILE, "file_path", "path", "file"].into_iter().find_map(|key| fields.get(key)?.as_str())?;
    let range = ["offset", "limit"].into_iter().filter_map(|key| {
        let value = fields.get(key).filter(|value| value.is_u64())?;
        Some((key.to_owned(), value.clone()))
    });
    Some(range.chain([(FILE.to_owned(), path.into())]).collect())
}

/// Returns every file of a call. They share its limit of bytes.
pub(super) fn files(input: &Input) -> Result<Vec<Input>, ToolError> {
    let mut files = vec![Input { files: Vec::new(), ..input.clone() }];
    files.extend(input.files.iter().cloned());
    if files.len() > MAX_FILES {
        return Err(ToolError::Model(format!(
            "The call names {} files; at most {MAX_FILES} are read at once. Use several calls.",
            files.len()
        )));
    }
    let sharing = files.len();
    files.iter_mut().for_each(|file| file.sharing = sharing);
    Ok(files)
}

/// Joins the outputs of the files. A file that cannot be read does not hide the others.
pub(super) fn joined(outputs: Vec<Result<Output, ToolError>>) -> Result<Output, ToolError> {
    let count = outputs.len();
    let is_failed = outputs.iter().all(Result::is_err);
    let mut all = Output::default();
    let mut is_truncated = false;
    for output in outputs {
        let output = match output {
            Err(ToolError::Model(reason)) if !is_failed => Output { output: reason, ..Output::default() },
            output => output?,
        };
        if count == 1 {
            return Ok(output);
        }
        if !all.output.is_empty() {
            all.output.push_str("\n\n");
        }
        all.output.push_str(&output.output);
        all.attachments.extend(output.attachments);
        is_truncated |= output.metadata.get("truncated") == Some(&Value::Bool(true));
        if all.title.is_empty() && !output.title.is_empty() {
            (all.title, all.metadata) = (format!("{} and {} more", output.title, count - 1), output.metadata);
        } else if let (Some(Value::Array(all)), Some(Value::Array(more))) =
            (all.metadata.get_mut("loaded"), output.metadata.get("loaded"))
        {
            all.extend(more.iter().cloned());
        }
    }
    all.metadata.insert("truncated".to_owned(), json!(is_truncated));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_files_becomes_one_and_further_ones() {
        let further = json!({"filePath": "a", "files": [{"filePath": "b"}]});
        for (written, expected) in [
            (json!({"filePath": "a"}), json!({"filePath": "a"})),
            (json!({"filePath": ["a", "b"]}), further.clone()),
            (json!({"filePath": "[\"a\", \"b\"]"}), further.clone()),
            (json!({"paths": ["a", "b"]}), further.clone()),
            (json!({"file_paths": ["a", "b"]}), further.clone()),
            (json!({"files": [{"path": "a"}, "b"]}), further.clone()),
            (further.clone(), further),
            (json!({"paths": ["a"]}), json!({"filePath": "a"})),
            (
                json!({"paths": ["a", "b"], "limit": 2}),
                json!({"limit": 2, "filePath": "a", "files": [{"filePath": "b", "limit": 2}]}),
            ),
            // It is not a list of files.
            (json!({"paths": []}), json!({"paths": []})),
            (json!({"paths": [1]}), json!({"paths": [1]})),
            (json!({"filePath": "[x].ts"}), json!({"filePath": "[x].ts"})),
        ] {
            let mut input = written.clone();
            adapt("read", &mut input);
            assert_eq!(input, expected, "{written}");
        }
    }
}
