//! The user's browser, asked to show an address.
//!
//! It is started and left to itself: nobody waits for it, and that there is none is no error.

use std::process::Stdio;

use codewright_config::{Env, env};
use tokio::process::Command;

/// What opens an address where the user names no browser.
const OPENERS: [&str; 5] = ["xdg-open", "open", "wslview", "sensible-browser", "x-www-browser"];
/// What stands for the address in a command of the user's.
const PLACE: &str = "%s";

/// Shows an address, if anything here can; says whether something was started.
pub(super) fn open(env: &Env, url: &str) -> bool {
    commands(env.filled(env::BROWSER), url).iter().any(|command| start(command))
}

/// The commands that may show an address, the first one first.
fn commands(browsers: Option<&str>, url: &str) -> Vec<Vec<String>> {
    let Some(browsers) = browsers else {
        return OPENERS.map(|opener| vec![opener.to_owned(), url.to_owned()]).to_vec();
    };
    let of = |browser: &str| {
        let mut words: Vec<_> = browser.split_whitespace().map(|word| word.replace(PLACE, url)).collect();
        if !browser.contains(PLACE) && !words.is_empty() {
            words.push(url.to_owned());
        }
        words
    };
    browsers.split(':').map(of).filter(|words| !words.is_empty()).collect()
}

fn start(command: &[String]) -> bool {
    let Some((program, args)) = command.split_first() else { return false };
    // A group of its own: an interrupt ends the server and not the user's browser.
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
    fn a_browser_of_the_users_gets_the_address_where_it_wants_it() {
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
