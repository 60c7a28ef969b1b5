//! Opens an address in the user's browser.
//!
//! The browser is started and not waited for. A missing browser is not an error.

use std::process::Stdio;

use codewright_config::{Env, env};
use tokio::process::Command;

/// The programs that open an address if `BROWSER` is not set.
const OPENERS: [&str; 5] = ["xdg-open", "open", "wslview", "sensible-browser", "x-www-browser"];
/// The placeholder for the address in `BROWSER`.
const PLACEHOLDER: &str = "%s";

/// Opens an address. Returns whether a program was started.
pub(crate) fn open(env: &Env, url: &str) -> bool {
    commands(env.filled(env::BROWSER), url).iter().any(|command| start(command))
}

/// The commands that can open an address, in the order in which they are tried.
fn commands(browsers: Option<&str>, url: &str) -> Vec<Vec<String>> {
    let Some(browsers) = browsers else {
        return OPENERS.map(|opener| vec![opener.to_owned(), url.to_owned()]).to_vec();
    };
    let of = |browser: &str| {
        let mut words: Vec<_> =
            browser.split_whitespace().map(|word| word.replace(PLACEHOLDER, url)).collect();
        if !browser.contains(PLACEHOLDER) && !words.is_empty() {
            words.push(url.to_owned());
        }
        words
    };
    browsers.split(':').map(of).filter(|words| !words.is_empty()).collect()
}

fn start(command: &[String]) -> bool {
    let Some((program, args)) = command.split_first() else { return false };
    // In a separate process group, so that an interrupt ends the server but not the browser.
    let mut command = Command::new(program);
    command.args(args).process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    for (variable, _) in env::OWN {
        command.env_remove(variable).env_remove(variable.replacen("OPENCODE_", "CODEWRIGHT_", 1));
    }
    command.spawn().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_replaces_the_placeholder_or_is_appended() {
        let of =
            |browsers| commands(Some(browsers), "http://x/").iter().map(|words| words.join(" ")).collect();
        for (browsers, expected) in [
            ("firefox", vec!["firefox http://x/"]),
            ("links:w3m -F", vec!["links http://x/", "w3m -F http://x/"]),
            ("sh -c %s&", vec!["sh -c http://x/&"]),
            (":", vec![]),
        ] {
            let found: Vec<String> = of(browsers);
            assert_eq!(found, expected, "{browsers}");
        }
        assert_eq!(commands(None, "http://x/")[0], ["xdg-open", "http://x/"]);
    }
}
