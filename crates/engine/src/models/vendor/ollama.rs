//! Ollama: its own variable names the address of the server.

use codewright_config::{Env, env};
use codewright_llm::catalog::ProviderRow;

use super::{PLAIN, Vendor};

pub(super) const VENDOR: Vendor = Vendor { local_url, ..PLAIN };

fn local_url(row: &ProviderRow, env: &Env) -> Option<String> {
    let host = env.filled(env::OLLAMA_HOST).filter(|_| row.id == "ollama")?;
    let host = host.trim_end_matches('/');
    let scheme = if host.contains("://") { "" } else { "http://" };
    let authority = host.rsplit("://").next().unwrap_or(host);
    let port = if authority.contains(':') { "" } else { ":11434" };
    Some(format!("{scheme}{}{port}/v1", host.replace("0.0.0.0", "127.0.0.1")))
}

#[cfg(test)]
mod tests {
    use codewright_llm::catalog;

    use super::*;

    #[test]
    fn the_variable_names_the_address() {
        let row = catalog::provider("ollama").unwrap();
        for (host, expected) in [
            ("", "http://localhost:11434/v1"),
            ("0.0.0.0", "http://127.0.0.1:11434/v1"),
            ("10.0.0.2:4000", "http://10.0.0.2:4000/v1"),
            ("https://ollama.example/", "https://ollama.example:11434/v1"),
            ("http://127.0.0.1:9", "http://127.0.0.1:9/v1"),
        ] {
            let env = Env::from_pairs([("OLLAMA_HOST", host)]);
            let found =
                super::super::list::local_url(row, &env).replace("127.0.0.1:11434", "localhost:11434");
            assert_eq!(found, expected.replace("127.0.0.1:11434", "localhost:11434"), "{host}");
        }
    }
}
