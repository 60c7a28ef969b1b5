//! Makes a request obey the rules of the provider that receives it.
//!
//! Sessions contain the answers of many models, the files of users and the tools of strangers' servers. A provider that
//! refuses one of them refuses every later request of the session. So each request is converted before it is sent: for
//! any request, the result obeys the [`Rules`]. Equal requests give equal results, and a longer conversation begins with
//! the same messages, so that providers can cache them.

mod conversation;
mod names;
mod pictures;
mod references;
mod schema;

pub(crate) use names::{Names, nine};
pub use pictures::media_type;
pub(crate) use references::target;

use crate::protocol::rules::Rules;
use crate::{Model, Request, ToolSpec};
use names::key_map;

/// A request that obeys the rules.
#[derive(Debug)]
pub(crate) struct Fitted {
    pub(crate) request: Request,
    /// What was renamed in it.
    pub(crate) names: Names,
}

/// Converts a request.
pub(crate) fn fit(request: &Request, model: &Model, rules: &Rules) -> Fitted {
    let mut request = request.clone();
    let mut names = Names::new(rules.tool_name);
    request.tools = tools(std::mem::take(&mut request.tools), rules, &mut names);
    note_missing_tools(&mut request, rules, &mut names);
    if request.has_files() {
        request.messages = pictures::fit(std::mem::take(&mut request.messages), model, &rules.pictures);
    }
    request.messages = conversation::fit(std::mem::take(&mut request.messages), rules, &names);
    Fitted { request, names }
}

/// Returns the tools with valid names and schemas. Of several with one name, the first is kept.
fn tools(tools: Vec<ToolSpec>, rules: &Rules, names: &mut Names) -> Vec<ToolSpec> {
    let mut fitted: Vec<ToolSpec> = Vec::with_capacity(tools.len());
    for tool in tools {
        if names.has(&tool.name) {
            continue;
        }
        let schema = schema::fit(&tool.parameters, rules.schema);
        let keys = key_map(&tool.parameters, rules.schema);
        fitted.push(ToolSpec {
            name: names.add(&tool.name, keys),
            description: tool.description,
            parameters: schema,
        });
    }
    fitted
}

/// Leaves out the last tools if there are too many, and tells the model.
fn note_missing_tools(request: &mut Request, rules: &Rules, names: &mut Names) {
    if request.tools.len() <= rules.most_tools {
        return;
    }
    let left_out: Vec<String> = request.tools.drain(rules.most_tools..).map(|tool| tool.name).collect();
    for name in &left_out {
        names.remove(name);
    }
    let named = left_out.join(", ");
    request.more_system.push(format!(
        "This provider takes at most {} tools, so these are left out of the request: {named}. If one of them is \
         needed, say so to the user.",
        rules.most_tools
    ));
}

#[cfg(test)]
mod tests;
