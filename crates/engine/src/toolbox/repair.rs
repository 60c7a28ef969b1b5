//! Corrects the names and arguments of calls, where only one correction fits.
//!
//! Small mistakes of models are the same for every tool: built-in ones, those of servers and those of plugins. A call
//! that cannot be corrected stays as it is, and its tool reports the reason.

use codewright_tools::{AnyTool, Batch, Tool as _, arguments, conform};
use serde_json::Value;

use super::selection::Selection;
use crate::run::structured;

/// The key of a batch's list, and those of its entries.
const CALLS: &str = "tool_calls";
const TOOL: &str = "tool";
const PARAMETERS: &str = "parameters";

/// Returns the corrected name and arguments of a call, or `None` if it needs no correction or has none.
pub(crate) fn repaired(
    selection: &Selection,
    value_schema: Option<&Value>,
    called: &str,
    written: &str,
) -> Option<(String, String)> {
    let tool = selection.find(called);
    let (name, schema) = match (&tool, value_schema) {
        (Some(tool), _) => (tool.name().to_owned(), tool.parameters()),
        (None, Some(schema)) if called.eq_ignore_ascii_case(structured::TOOL) => {
            (structured::TOOL.to_owned(), schema.clone())
        }
        (None, _) => return None,
    };
    let mut read = arguments(written, &schema).ok()?;
    if let Some(tool) = &tool {
        read.is_repaired |= adapt(&**tool, called, &mut read.input);
    }
    if name == Batch::NAME {
        read.is_repaired |= repair_batch(selection, &mut read.input);
    }
    let is_repaired = read.is_repaired || name != called;
    is_repaired.then(|| (name, read.input.to_string()))
}

/// Turns another form of the arguments into that of the schema. Returns whether it did.
fn adapt(tool: &dyn AnyTool, called: &str, input: &mut Value) -> bool {
    let mut adapted = input.clone();
    (tool.facts().adapt)(called, &mut adapted);
    if adapted == *input {
        return false;
    }
    match conform(tool.name(), &tool.parameters(), adapted) {
        Ok(fixed) => {
            *input = fixed;
            true
        }
        // The tool reports the reason, for the arguments that the model wrote.
        Err(_) => false,
    }
}

/// Corrects the calls of a batch. Returns whether any was corrected.
fn repair_batch(selection: &Selection, input: &mut Value) -> bool {
    let mut is_repaired = false;
    for call in input.get_mut(CALLS).and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(called) = call[TOOL].as_str() else { continue };
        let Some(tool) = selection.find(called) else { continue };
        let given = call[PARAMETERS].clone();
        let mut adapted = given.clone();
        (tool.facts().adapt)(called, &mut adapted);
        let Ok(fixed) = conform(tool.name(), &tool.parameters(), adapted) else { continue };
        if fixed != given {
            call[PARAMETERS] = fixed;
            is_repaired = true;
        }
    }
    is_repaired
}
