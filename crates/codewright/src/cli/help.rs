//! The groups of commands in the help of the program.

use clap::{Command, CommandFactory as _};

use super::Cli;

/// The commands by what users look for, most usual first. Each visible command is in one group.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Everyday", &["run", "review", "session", "stats", "demo"]),
    ("Set up", &["providers", "models", "agent", "mcp", "plugin", "trust", "permissions", "sandbox"]),
    ("Servers and editors", &["serve", "web", "attach", "acp", "users"]),
    ("Data", &["export", "import", "db", "upgrade", "uninstall"]),
    ("Diagnosis", &["doctor", "bug", "debug", "completion"]),
];

/// The template of the help: the options of the terminal client come after the commands.
const TEMPLATE: &str = "{about}\n\n{usage-heading} {usage}\n\n{before-help}{all-args}";

/// The definition of the command line, with the commands of the help in groups.
pub(crate) fn definition() -> Command {
    let command = Cli::command();
    let groups = grouped(&command);
    let prompt = "codewright                 open the terminal client in this directory\n  \
                  codewright \"fix the test\"  open it and send a prompt\n  \
                  codewright DIRECTORY       open it in another directory";
    // The template would list the commands again.
    command
        .before_help(format!("  {prompt}\n\n{groups}"))
        .help_template(TEMPLATE)
        .mut_subcommands(|it| it.hide(true))
}

/// The groups with their commands and descriptions.
fn grouped(command: &Command) -> String {
    let mut text = String::new();
    for (title, names) in GROUPS {
        text.push_str(&format!("{title}:\n"));
        for found in names.iter().filter_map(|name| command.find_subcommand(name)) {
            let about = found.get_about().map(ToString::to_string).unwrap_or_default();
            text.push_str(&format!("  {:<12} {about}\n", found.get_name()));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_visible_command_is_in_one_group() {
        let command = Cli::command();
        let visible = command.get_subcommands().filter(|it| !it.is_hide_set()).map(Command::get_name);
        let mut visible: Vec<_> = visible.collect();
        let mut grouped: Vec<_> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        visible.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(visible, grouped);
    }
}
