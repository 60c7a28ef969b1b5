//! The short form of `cargo xtask attacks`.

use anyhow::{Result, ensure};
use codewright_testkit::attack::{Attack, Form, Verdict};

#[test]
fn hostile_repositories_requests_and_calls_have_no_effect() -> Result<()> {
    let attack = Attack { form: Form::Short, ..Attack::new(env!("CARGO_BIN_EXE_codewright")) };
    let outcomes = attack.play();
    ensure!(outcomes.len() >= 60, "{} plays", outcomes.len());
    let wrong: Vec<String> = outcomes
        .iter()
        .filter(|one| !matches!(one.verdict, Verdict::Held | Verdict::Skipped(_)))
        .map(|one| format!("{}: {:?}", one.name, one.verdict))
        .collect();
    ensure!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), outcomes.len(), wrong.join("\n"));
    Ok(())
}
