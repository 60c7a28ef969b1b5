//! The instructions of MCP servers in the system text.

use codewright_mcp::Servers;
use codewright_tools::tags::neutralize;

/// The longest instructions of a server.
const MAX_BYTES: usize = 16 * 1024;
/// The limit for all servers.
const MAX_TOTAL_BYTES: usize = 64 * 1024;

/// Returns the block of the system text, if a server has instructions.
pub(crate) fn block(servers: &Servers) -> Option<String> {
    let mut text = String::new();
    for (name, instructions) in servers.instructions() {
        // A server must not end the block that contains its text.
        let instructions = neutralize(instructions.trim()).replace("</", "< /");
        let cut = &instructions[..instructions.floor_char_boundary(MAX_BYTES)];
        if cut.is_empty() || text.len() + cut.len() > MAX_TOTAL_BYTES {
            continue;
        }
        let name: String = name.chars().filter(|c| !matches!(c, '"' | '<' | '>')).collect();
        text.push_str(&format!("  <server name=\"{name}\">\n"));
        for line in cut.lines() {
            text.push_str("    ");
            text.push_str(line);
            text.push('\n');
        }
        text.push_str("  </server>\n");
    }
    (!text.is_empty()).then(|| format!("<mcp_instructions>\n{text}</mcp_instructions>"))
}
