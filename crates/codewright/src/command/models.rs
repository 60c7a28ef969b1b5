//! `models`: lists the available models, one per line.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::bail;
use codewright_config::{Env, env};
use codewright_engine::Instance;
use serde_json::Value;

use crate::cli::ModelsArgs;
use crate::connection::{engine_error, open_engine, working_directory};
use crate::style;

pub(crate) fn main(args: &ModelsArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(models(args))
}

async fn models(args: &ModelsArgs) -> anyhow::Result<ExitCode> {
    let env = Env::from_process();
    if args.refresh && env.is_on(env::DISABLE_MODELS_FETCH) {
        bail!("--refresh cannot fetch the model list: OPENCODE_DISABLE_MODELS_FETCH is set");
    }
    let engine = open_engine(env, &working_directory(None)?).await?;
    if args.refresh {
        engine.providers().refresh_models().await.map_err(engine_error)?;
        style::note("the model list is up to date");
    }
    let instance = engine.instance(engine.default_directory()).await.map_err(engine_error)?;
    for warning in instance.warnings() {
        style::warning(&warning);
    }
    let listed = list(&instance, args);
    engine.close().await?;
    let listed = listed.map(|(lines, hidden)| {
        if hidden > 0 {
            style::note(&format!("{hidden} models that cannot be agents are hidden; `--all` lists them"));
        }
        lines
    });
    match std::io::stdout().write_all(listed?.as_bytes()) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        // The reader closed the pipe.
        Err(_) => Ok(ExitCode::FAILURE),
    }
}

/// The lines to print, sorted by provider and model, and the number of hidden models.
fn list(instance: &Instance, args: &ModelsArgs) -> anyhow::Result<(String, usize)> {
    let mut providers = match &args.provider {
        Some(id) => vec![instance.provider_json(id).map_err(engine_error)?],
        None => instance.usable_providers().map_err(engine_error)?,
    };
    providers.sort_by(|a, b| text(a, "id").cmp(text(b, "id")));
    let (mut lines, mut hidden) = (String::new(), 0);
    for provider in &providers {
        let mut models: Vec<_> = provider["models"].as_object().into_iter().flatten().collect();
        models.sort_by(|a, b| a.0.cmp(b.0));
        for (id, model) in models {
            if !args.all && !can_be_agent(model) {
                hidden += 1;
                continue;
            }
            lines.push_str(&crate::clean::clean_line(&format!("{}/{id}", text(provider, "id"))));
            lines.push('\n');
            if args.verbose {
                lines.push_str(&crate::clean::escape_json(&serde_json::to_string_pretty(model)?));
                lines.push('\n');
            }
        }
    }
    Ok((lines, hidden))
}

/// Reports whether a model of the API calls tools, reads text and returns text alone.
pub(crate) fn can_be_agent(model: &Value) -> bool {
    let capabilities = &model["capabilities"];
    let kinds = |side: &str| capabilities[side].as_object().into_iter().flatten().collect::<Vec<_>>();
    // If nothing is known about the input, it is text.
    let input = kinds("input");
    let is_read = input.iter().all(|(_, on)| **on == false) || capabilities["input"]["text"] != false;
    let is_written = kinds("output").iter().all(|(kind, on)| *kind == "text" || **on == false);
    capabilities["toolcall"] != false && is_read && is_written
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}
