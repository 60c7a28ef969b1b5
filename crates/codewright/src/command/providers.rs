//! `providers`: lists, adds and removes credentials of model providers. Secrets are never printed.

use std::collections::BTreeMap;
use std::io::{BufRead as _, IsTerminal as _, Read as _, Write as _};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use codewright_config::{Dirs, Env};
use codewright_llm::catalog::{self, Catalog};
use codewright_llm::oauth::{Kind, Prompt, SignIn, is_known, methods};
use codewright_llm::vault::{Credential, Source, Stored};
use codewright_llm::{Client, Network};
use codewright_proto::Clock;
use serde_json::{Map, Value};

use crate::clean::clean_line;
use crate::cli::{ProvidersArgs, ProvidersCommand};
use crate::connection::VERSION;
use crate::style;

mod plugin;
mod terminal;
mod verify;
mod well_known;

/// The longest key that is read.
const KEY_LIMIT_BYTES: u64 = 64 * 1024;
/// How many invalid answers are accepted before the question is cancelled.
const TRIES: usize = 3;

pub(crate) fn main(args: ProvidersArgs) -> anyhow::Result<ExitCode> {
    let env = Env::from_process();
    let dirs = Dirs::new(&env)?;
    let client = client(&env)?;
    let sign_in = codewright_engine::sign_in(client, &dirs, &env, &Clock::system());
    match args.command {
        ProvidersCommand::List(_) => list(&sign_in, &env),
        ProvidersCommand::Login { url, provider, method, .. } => {
            let named = url.as_deref().or(provider.as_deref());
            login(&sign_in, &env, named, method.as_deref())
        }
        ProvidersCommand::Logout { provider, .. } => logout(&sign_in, provider.as_deref()),
    }
}

/// The HTTP client for sign-ins.
fn client(env: &Env) -> anyhow::Result<Client> {
    let network = Network { variables: env.of(codewright_config::env::NETWORK) };
    Ok(Client::with_network(network, &format!("codewright/{VERSION}"))?)
}

fn list(sign_in: &SignIn, env: &Env) -> anyhow::Result<ExitCode> {
    let stored = sign_in.vault().read()?;
    for warning in &stored.warnings {
        style::warning(warning);
    }
    let mut text = format!("┌  Credentials {}\n│\n", sign_in.vault().path().display());
    let mut count = 0;
    for (provider, credential, source) in stored.iter() {
        count += 1;
        let place = match source {
            Source::Own => "",
            Source::Original => " (OpenCode's auth.json)",
            Source::Variable => " (OPENCODE_AUTH_CONTENT)",
        };
        let unused = matches!(credential, Credential::OAuth(_)) && !is_known(provider);
        let unused = if unused { " (this version cannot use it; store a key instead)" } else { "" };
        let name = clean_line(&name(provider));
        text.push_str(&format!("●  {name} {}{place}{unused}\n│\n", kind(credential)));
    }
    text.push_str(&format!("└  {count} {}\n", plural(count, "credential")));
    let catalog = Catalog::embedded();
    let of_rows = catalog::providers().iter().flat_map(|row| row.env.iter().map(|name| (row.name, *name)));
    let others = catalog.providers().filter(|facts| catalog::provider(&facts.id).is_none());
    let others = others.flat_map(|facts| facts.key_variables().map(|name| (facts.name.as_str(), name)));
    let found: Vec<_> =
        of_rows.chain(others).filter(|(_, variable)| env.filled(variable).is_some()).collect();
    if !found.is_empty() {
        text.push_str("\n┌  Environment\n│\n");
        for (name, variable) in &found {
            text.push_str(&format!("●  {name} {variable}\n│\n"));
        }
        text.push_str(&format!("└  {} environment {}\n", found.len(), plural(found.len(), "variable")));
    }
    Ok(crate::print(&text))
}

fn login(
    sign_in: &SignIn,
    env: &Env,
    provider: Option<&str>,
    method: Option<&str>,
) -> anyhow::Result<ExitCode> {
    if let Some(url) = provider.filter(|url| url.contains("://")) {
        return login_at(sign_in, env, url);
    }
    let plugins = plugin::PluginSignIns::open(env)?;
    let done = match login_with(sign_in, env, &plugins, provider, method) {
        Ok(provider) => {
            let (name, path) = (clean_line(&name(&provider)), sign_in.vault().path().display());
            // A sign-in has just used its credential. The provider may be slow, and the key is stored already.
            let stored = sign_in.vault().read()?;
            let subject = match stored.get(&provider) {
                Some(Credential::Api { .. }) => {
                    print_prompt(&format!("●  Checking the key of {name} …\n"));
                    verify::Subject::Key
                }
                Some(_) | None => verify::Subject::SignIn,
            };
            let confirmed = verify::confirm(env, &provider, subject);
            Ok(crate::print(&format!("{confirmed}└  Signed in to {name}; saved in {path}\n")))
        }
        Err(error) => Err(error),
    };
    plugins.close();
    done
}

/// Signs in and stores the credential. Returns the provider.
fn login_with(
    sign_in: &SignIn,
    env: &Env,
    plugins: &plugin::PluginSignIns,
    provider: Option<&str>,
    method: Option<&str>,
) -> anyhow::Result<String> {
    let provider = match provider {
        Some(provider) if plugins.has(provider.trim()) => provider.trim().to_owned(),
        Some(provider) => id_of(provider.trim()),
        None => pick_provider(plugins)?,
    };
    if provider.is_empty() {
        bail!("the name of the provider is empty");
    }
    if !plugins.has(&provider) {
        check_known(env, &provider)?;
    }
    if plugins.has(&provider) {
        plugins.login(sign_in, &provider, method)?;
        return Ok(provider);
    }
    let ways = methods(&provider);
    let labels: Vec<_> = ways.iter().map(|way| way.label).collect();
    let takes_key = ways.iter().position(|way| way.kind == Kind::Api);
    let index = pick_method(&provider, &labels, takes_key, method)?;
    let way = ways.get(index).context("the method is not in the list")?;
    let credential = match way.kind {
        Kind::Api => {
            // If the key is piped in, the other values come from the environment.
            let answers = if std::io::stdin().is_terminal() {
                ask_prompts(way.prompts)?
            } else {
                from_environment(way.prompts, env)
            };
            let extra = metadata(answers);
            Credential::Api { key: key(&provider)?.as_str().into(), extra }
        }
        Kind::OpenAiBrowser
        | Kind::OpenAiDevice
        | Kind::Copilot
        | Kind::DigitalOcean
        | Kind::GitLab
        | Kind::Poe
        | Kind::Snowflake
        | Kind::Xai => {
            let inputs = ask_prompts(way.prompts)?;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let credential = runtime.block_on(by_sign_in(sign_in, &provider, index, &inputs));
            // A thread may still be reading a line of the terminal.
            runtime.shutdown_background();
            credential?
        }
    };
    sign_in.vault().set(&provider, &credential)?;
    Ok(provider)
}

/// Signs in at an organisation's address.
fn login_at(sign_in: &SignIn, env: &Env, url: &str) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let client = client(env)?;
    let signed_in = runtime.block_on(well_known::sign_in(&client, url, env));
    // A thread may still be reading a line of the terminal.
    runtime.shutdown_background();
    let (url, credential) = signed_in?;
    sign_in.vault().set(&url, &credential)?;
    let (url, path) = (clean_line(&url), sign_in.vault().path().display());
    Ok(crate::print(&format!("└  Signed in at {url}; saved in {path}\n")))
}

async fn by_sign_in(
    sign_in: &SignIn,
    provider: &str,
    method: usize,
    inputs: &BTreeMap<String, String>,
) -> anyhow::Result<Credential> {
    let begun = sign_in.begin(provider, method, inputs).await?;
    let device = begun.instructions.starts_with("Enter code");
    print_prompt(&format!("│  Go to: {}\n│  {}\n", clean_line(&begun.url), clean_line(&begun.instructions)));
    if !device {
        print_prompt(
            "│  No browser on this machine? Open the address elsewhere and paste the final address here.\n",
        );
    }
    print_prompt("│  Waiting …\n");
    let pasted = async {
        if device {
            return std::future::pending().await;
        }
        let line = tokio::task::spawn_blocking(|| {
            let mut line = String::new();
            std::io::stdin().lock().take(KEY_LIMIT_BYTES).read_line(&mut line).map(|_| line)
        });
        match line.await {
            Ok(Ok(line)) if !line.trim().is_empty() => line,
            // At the end of the input the browser may still finish the sign-in.
            _ => std::future::pending().await,
        }
    };
    tokio::select! {
        credential = sign_in.finish(begun, pasted) => Ok(credential?),
        _ = tokio::signal::ctrl_c() => bail!("the sign-in was cancelled; nothing was changed"),
    }
}

fn logout(sign_in: &SignIn, provider: Option<&str>) -> anyhow::Result<ExitCode> {
    let stored = sign_in.vault().read()?;
    let provider = match provider {
        Some(provider) if stored.get(provider).is_some() => provider.to_owned(),
        Some(provider) => id_of(provider),
        None => pick_stored(&stored)?,
    };
    if !sign_in.vault().remove(&provider)? {
        let known: Vec<_> = stored.iter().map(|(name, ..)| name).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        bail!(
            "there are no credentials for `{}`; stored credentials: {}",
            clean_line(&provider),
            clean_line(&known)
        );
    }
    let name = clean_line(&name(&provider));
    Ok(crate::print(&format!("└  Signed out of {name}\n")))
}

/// The id of a provider, found by id or display name. An unknown name is returned unchanged: it may be configured.
fn id_of(named: &str) -> String {
    let catalog = Catalog::embedded();
    let rows = || catalog::providers().iter().map(|row| (row.id, row.name));
    let known = || rows().chain(catalog.providers().map(|facts| (facts.id.as_str(), facts.name.as_str())));
    if known().any(|(id, _)| id == named) {
        return named.to_owned();
    }
    let found = known().find(|(id, name)| id.eq_ignore_ascii_case(named) || name.eq_ignore_ascii_case(named));
    found.map_or(named, |(id, _)| id).to_owned()
}

/// Checks that the catalog, this program or the configuration knows a provider: a misspelt name would be noticed much
/// later.
fn check_known(env: &Env, provider: &str) -> anyhow::Result<()> {
    let catalog = Catalog::embedded();
    if catalog::provider(provider).is_some() || catalog.provider(provider).is_some() || is_known(provider) {
        return Ok(());
    }
    let configured = configured(env)?;
    if configured.iter().any(|id| id == provider) {
        return Ok(());
    }
    let known = catalog.providers().map(|facts| facts.id.as_str());
    let names = known.chain(configured.iter().map(String::as_str));
    let similar = codewright_config::nearest(provider, names, 1);
    let similar = similar.first().map(|similar| format!("; did you mean `{similar}`?")).unwrap_or_default();
    bail!(
        "there is no provider `{}`{similar}\nto use your own, describe it below `provider` in opencode.json first",
        clean_line(provider)
    )
}

/// The providers of the configuration.
fn configured(env: &Env) -> anyhow::Result<Vec<String>> {
    let (dirs, directory) = (Dirs::new(env)?, crate::connection::working_directory(None)?);
    let input =
        codewright_config::LoadInput { directory: &directory, worktree: &directory, env, dirs: &dirs };
    let loaded = codewright_config::load(input)?;
    Ok(loaded.config.provider.iter().map(|(id, _)| id.to_owned()).collect())
}

/// The display name of a provider.
fn name(provider: &str) -> String {
    if let Some(row) = catalog::provider(provider) {
        return row.name.to_owned();
    }
    Catalog::embedded().provider(provider).map_or(provider, |facts| &facts.name).to_owned()
}

fn kind(credential: &Credential) -> &'static str {
    match credential {
        Credential::Api { .. } => "api",
        Credential::OAuth(_) => "oauth",
        Credential::WellKnown { .. } => "wellknown",
    }
}

fn plural(count: usize, word: &str) -> String {
    if count == 1 { word.to_owned() } else { format!("{word}s") }
}

fn pick_provider(plugins: &plugin::PluginSignIns) -> anyhow::Result<String> {
    if !std::io::stdin().is_terminal() {
        bail!("missing provider: use `codewright providers login -p NAME`, with the key on standard input");
    }
    let rows = catalog::providers().iter().filter(|row| !row.local).map(|row| row.id);
    let mut ids: Vec<_> = rows.chain(plugins.providers()).collect();
    ids.sort_unstable_by_key(|id| (catalog::popularity(id), *id));
    ids.dedup();
    let names: Vec<_> = ids.iter().map(|id| clean_line(&format!("{} ({id})", name(id)))).collect();
    print_prompt("┌  Sign in\n");
    // A name that is not listed may be a configured provider.
    let answer = pick("Provider, by number or name", &names, |text| {
        let listed = ids.iter().position(|id| *id == text);
        Some(listed.map_or_else(|| text.to_owned(), |index| ids[index].to_owned()))
    })?;
    Ok(match answer {
        Choice::Number(index) => ids[index].to_owned(),
        Choice::Text(text) => text,
    })
}

/// Returns the position of a method. `key` is that of the one that takes a key.
fn pick_method(
    provider: &str,
    labels: &[&str],
    key: Option<usize>,
    label: Option<&str>,
) -> anyhow::Result<usize> {
    let shown: Vec<_> = labels.iter().map(|label| clean_line(label)).collect();
    if let Some(label) = label {
        let label = label.trim();
        let found = labels.iter().position(|known| known.eq_ignore_ascii_case(label));
        return found.with_context(|| {
            format!("`{provider}` has no method `{}`; its methods: {}", clean_line(label), shown.join(", "))
        });
    }
    match (labels, key) {
        ([_], _) => Ok(0),
        // Piped input can only be a key.
        (_, Some(key)) if !std::io::stdin().is_terminal() => Ok(key),
        _ => match pick("Method", &shown, |_| None)? {
            Choice::Number(index) => Ok(index),
            Choice::Text(_) => bail!("no method was selected"),
        },
    }
}

fn pick_stored(stored: &Stored) -> anyhow::Result<String> {
    let names: Vec<_> = stored.iter().map(|(name, ..)| name.to_owned()).collect();
    if names.is_empty() {
        bail!("there are no credentials");
    }
    if !std::io::stdin().is_terminal() {
        bail!(
            "missing provider: use `codewright providers logout NAME`; stored credentials: {}",
            clean_line(&names.join(", "))
        );
    }
    let shown: Vec<_> = names.iter().map(|name| clean_line(name)).collect();
    let known = |text: &str| names.iter().find(|name| *name == text).cloned();
    match pick("Provider, by number or name", &shown, known)? {
        Choice::Number(index) => Ok(names[index].clone()),
        Choice::Text(text) => Ok(text),
    }
}

/// The answers that are saved with a key, in OpenCode's format.
fn metadata(answers: BTreeMap<String, String>) -> Map<String, Value> {
    let notes = answers.into_iter().filter(|(_, answer)| !answer.is_empty());
    let notes: Map<_, _> = notes.map(|(name, answer)| (name, Value::String(answer))).collect();
    let notes = if notes.is_empty() { None } else { Some(("metadata".to_owned(), Value::Object(notes))) };
    notes.into_iter().collect()
}

/// The answers from environment variables.
fn from_environment(prompts: &[Prompt], env: &Env) -> BTreeMap<String, String> {
    const VARIABLES: [(&str, &str); 5] = [
        ("instanceUrl", codewright_config::env::GITLAB_INSTANCE_URL),
        ("resourceName", "AZURE_RESOURCE_NAME"),
        ("accountId", "CLOUDFLARE_ACCOUNT_ID"),
        ("gatewayId", "CLOUDFLARE_GATEWAY_ID"),
        ("account", "SNOWFLAKE_ACCOUNT"),
    ];
    let answers = prompts.iter().filter_map(|prompt| {
        let (key, variable) = VARIABLES.iter().find(|(key, _)| *key == prompt.key)?;
        Some(((*key).to_owned(), env.filled(variable)?.to_owned()))
    });
    answers.collect()
}

fn ask_prompts(prompts: &[Prompt]) -> anyhow::Result<BTreeMap<String, String>> {
    let mut answers = BTreeMap::<String, String>::new();
    for prompt in prompts {
        if prompt.when.is_some_and(|(key, value)| answers.get(key).is_none_or(|answer| answer != value)) {
            continue;
        }
        let answer = if prompt.options.is_empty() {
            print_prompt(&format!("│  {} ({}): ", prompt.message, prompt.placeholder));
            line()?
        } else {
            let shown: Vec<_> =
                prompt.options.iter().map(|(_, label, hint)| format!("{label} ({hint})")).collect();
            let value = |text: &str| {
                prompt
                    .options
                    .iter()
                    .find(|(value, ..)| *value == text)
                    .map(|(value, ..)| (*value).to_owned())
            };
            match pick(prompt.message, &shown, value)? {
                Choice::Number(index) => prompt.options[index].0.to_owned(),
                Choice::Text(text) => text,
            }
        };
        answers.insert(prompt.key.to_owned(), answer);
    }
    Ok(answers)
}

/// Reads a key from the terminal without echo, or all of standard input.
fn key(provider: &str) -> anyhow::Result<String> {
    let text = if std::io::stdin().is_terminal() {
        print_prompt(&format!("│  Key for {} (not shown): ", clean_line(&name(provider))));
        let typed = terminal::without_echo(interruptible_line);
        print_prompt("\n");
        typed?
    } else {
        let mut text = String::new();
        let read = std::io::stdin().lock().take(KEY_LIMIT_BYTES + 1).read_to_string(&mut text);
        // The source error is dropped, because the input is a secret.
        read.map_err(|_| anyhow::anyhow!("the key on standard input is not text"))?;
        text
    };
    let key = text.trim();
    if key.is_empty() {
        bail!(
            "missing key; pipe it in: `echo \"$KEY\" | codewright providers login -p {}`",
            clean_line(provider)
        );
    }
    if key.len() as u64 > KEY_LIMIT_BYTES || key.chars().any(char::is_control) {
        bail!("invalid key: a key is one line of at most 64 KiB");
    }
    Ok(key.to_owned())
}

/// The answer to a question with numbered choices.
enum Choice {
    Number(usize),
    Text(String),
}

/// Prompts the user for a number. `named` handles an answer that is not a number.
fn pick(
    question: &str,
    choices: &[String],
    named: impl Fn(&str) -> Option<String>,
) -> anyhow::Result<Choice> {
    for (index, choice) in choices.iter().enumerate() {
        print_prompt(&format!("│  {:>3}. {choice}\n", index + 1));
    }
    for _ in 0..TRIES {
        print_prompt(&format!("◆  {question}: "));
        let answer = line()?;
        match answer.parse::<usize>() {
            Ok(number) if (1..=choices.len()).contains(&number) => return Ok(Choice::Number(number - 1)),
            Ok(_) => {}
            Err(_) => {
                if let Some(text) = Some(answer.as_str()).filter(|text| !text.is_empty()).and_then(&named) {
                    return Ok(Choice::Text(text));
                }
            }
        }
        print_prompt(&format!("│  Answer with a number from 1 to {}.\n", choices.len()));
    }
    bail!("nothing was selected; nothing was changed")
}

/// Reads a line of standard input.
fn line() -> anyhow::Result<String> {
    let mut line = String::new();
    let read = std::io::stdin().lock().take(KEY_LIMIT_BYTES).read_line(&mut line)?;
    if read == 0 {
        bail!("the input ended; nothing was changed");
    }
    Ok(line.trim().to_owned())
}

/// Reads a line, or fails on Ctrl-C so that the caller can restore the terminal.
fn interruptible_line() -> anyhow::Result<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answer = runtime.block_on(async {
        tokio::select! {
            line = tokio::task::spawn_blocking(line) => line?,
            _ = tokio::signal::ctrl_c() => bail!("the sign-in was cancelled; nothing was changed"),
        }
    });
    // A thread may still be reading the line.
    runtime.shutdown_background();
    answer
}

/// Prints a prompt on standard error, so that standard output can be piped.
fn print_prompt(text: &str) {
    let mut stderr = std::io::stderr();
    // If standard error is closed, there is no other way to report this.
    drop(stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush()));
}
