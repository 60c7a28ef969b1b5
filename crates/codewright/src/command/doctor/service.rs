//! What the engine knows: configuration, model, key, network, clock, sandbox, servers of tools and database.

use std::sync::Arc;
use std::time::Duration;

use codewright_config::Env;
use codewright_engine::{Engine, Error, Instance, KeyProbe, KeyVerdict, SandboxMode};

use super::{DEADLINE, Finding};

/// The difference of the clocks above which sign-ins and signatures fail.
const MAX_SKEW: Duration = Duration::from_secs(120);

pub(super) async fn examine(env: &Env, engine: &Engine) -> Vec<Finding> {
    let opened = tokio::time::timeout(DEADLINE, engine.instance(engine.default_directory())).await;
    let instance = match opened {
        Ok(Ok(instance)) => instance,
        Ok(Err(error)) => {
            let advice = error.hint().unwrap_or_else(|| "correct the configuration".to_owned());
            return vec![Finding::failed("config", error.to_string(), advice), database(engine).await];
        }
        Err(_) => {
            return vec![Finding::failed("config", "the directory did not open in time", "check its disk")];
        }
    };
    let (keys, sandbox, database) =
        tokio::join!(keys(engine, &instance), sandbox(engine, &instance), database(engine));
    let mut findings = vec![config(&instance)];
    findings.extend(keys);
    findings.extend([sandbox, servers(env, engine, &instance), database]);
    findings
}

fn config(instance: &Instance) -> Finding {
    let warnings = instance.warnings();
    match warnings.first() {
        None => Finding::ok("config", "no problems"),
        Some(first) => {
            let more = warnings.len() - 1;
            let more = if more == 0 { String::new() } else { format!(" (and {more} more)") };
            Finding::warning(
                "config",
                format!("{first}{more}"),
                "`codewright debug config --origins` shows every value",
            )
        }
    }
}

/// The model, its key, the network and the clock, from one request to the provider.
async fn keys(engine: &Engine, instance: &Instance) -> Vec<Finding> {
    let chosen = instance.providers_json()["model"].clone();
    let model = match (chosen["providerID"].as_str(), chosen["modelID"].as_str()) {
        (Some(provider), Some(model)) => format!("{provider}/{model}"),
        _ => String::new(),
    };
    let probe = engine.providers().probe(instance, None, DEADLINE).await;
    let probe = match probe {
        Ok(probe) => probe,
        Err(error) => return vec![without_model(&error)],
    };
    let guessed = if chosen["guessed"] == true { " (nobody chose one; set `model` to keep it)" } else { "" };
    let mut findings = vec![Finding::ok("model", format!("{model}{guessed}"))];
    findings.extend(of_probe(&probe));
    findings.extend(probe.date.as_deref().and_then(seconds).map(|server| clock(server, now())));
    findings
}

fn without_model(error: &Error) -> Finding {
    let advice = match error {
        Error::NoProvider => "run `codewright providers login`, or start a model server".to_owned(),
        other => other.hint().unwrap_or_else(|| "choose a model with `model` in opencode.json".to_owned()),
    };
    Finding::failed("key", error.to_string(), advice)
}

/// The findings about the key and the network.
fn of_probe(probe: &KeyProbe) -> Vec<Finding> {
    let url = &probe.url;
    let reached = || Finding::ok("network", format!("{url} answers; its certificate is accepted"));
    match &probe.verdict {
        KeyVerdict::Accepted => vec![Finding::ok("key", "accepted"), reached()],
        KeyVerdict::Refused(why) => {
            let advice = "store another key with `codewright providers login`";
            vec![Finding::failed("key", format!("refused: {why}"), advice), reached()]
        }
        KeyVerdict::Unchecked(why) => {
            vec![Finding::ok("key", format!("not checked: {why}")), Finding::ok("network", url.clone())]
        }
        KeyVerdict::Unreachable(why) => {
            let advice = "check the network, the proxy, the certificates and the base URL of the provider";
            vec![Finding::failed("network", format!("{url}: {why}"), advice)]
        }
    }
}

fn clock(server: u64, here: u64) -> Finding {
    let skew = Duration::from_secs(server.abs_diff(here));
    match skew > MAX_SKEW {
        false => Finding::ok("clock", "agrees with the provider's"),
        true => {
            let detail = format!("{} s away from the provider's clock", skew.as_secs());
            Finding::warning("clock", detail, "set the time of this machine: sign-ins depend on it")
        }
    }
}

fn now() -> u64 {
    codewright_proto::Clock::system().now_ms() / 1000
}

/// The seconds since 1970 of a date such as `Sun, 06 Nov 1994 08:49:37 GMT`.
fn seconds(date: &str) -> Option<u64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut words = date.split_once(", ")?.1.split(' ');
    let day: i64 = words.next()?.parse().ok()?;
    let name = words.next()?;
    let month = MONTHS.iter().position(|month| *month == name)? as i64 + 1;
    let year: i64 = words.next()?.parse().ok()?;
    let mut time = words.next()?.split(':').map(|field| field.parse::<i64>().ok());
    let (hours, minutes, seconds) = (time.next()??, time.next()??, time.next()??);
    // Years begin in March, so that the leap day is the last one.
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = 365 * year + year / 4 - year / 100 + year / 400 + day_of_year - 719_468;
    u64::try_from(days * 86_400 + hours * 3600 + minutes * 60 + seconds).ok()
}

async fn sandbox(engine: &Engine, instance: &Arc<Instance>) -> Finding {
    let report = match tokio::time::timeout(DEADLINE, engine.sandboxes().report(instance)).await {
        Ok(Ok(report)) => report,
        Ok(Err(error)) => return Finding::warning("sandbox", error.to_string(), "run `codewright sandbox`"),
        Err(_) => return Finding::warning("sandbox", "no answer in time", "run `codewright sandbox`"),
    };
    let mechanism = &report.support.mechanism;
    let detail = format!("{} with {}", report.mode, mechanism.name());
    if report.mode == SandboxMode::Off {
        return Finding::warning("sandbox", "off", "start with `--sandbox workspace`, or set `sandbox.mode`");
    }
    if mechanism.is_complete() || report.has_outer {
        return Finding::ok("sandbox", detail);
    }
    let reasons = report.support.reasons.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let reasons = if reasons.is_empty() { String::new() } else { format!(" ({reasons})") };
    Finding::warning(
        "sandbox",
        format!("{detail}, not complete{reasons}"),
        "`codewright sandbox` lists what is missing",
    )
}

/// The configured MCP servers. They are not started.
fn servers(env: &Env, engine: &Engine, instance: &Arc<Instance>) -> Finding {
    let configured = engine.mcp().configured(instance);
    if configured.is_empty() {
        return Finding::ok("mcp", "no servers; `codewright mcp add` adds one");
    }
    let has_program = |target: &str| {
        let program = target.split_whitespace().next().unwrap_or_default();
        let paths = std::env::split_paths(env.filled(codewright_config::env::PATH).unwrap_or_default());
        target.contains("://")
            || program.contains('/')
            || paths.map(|path| path.join(program)).any(|path| path.is_file())
    };
    let missing: Vec<_> = configured
        .iter()
        .filter(|server| !has_program(&server.target))
        .map(|server| server.name.as_str())
        .collect();
    let names: Vec<_> = configured.iter().map(|server| server.name.as_str()).collect();
    match missing.is_empty() {
        true => Finding::ok("mcp", format!("configured: {}", names.join(", "))),
        false => {
            let detail = format!("the program is not on PATH: {}", missing.join(", "));
            Finding::warning(
                "mcp",
                detail,
                "install it, or remove the server; `codewright mcp list` starts all servers",
            )
        }
    }
}

async fn database(engine: &Engine) -> Finding {
    match tokio::time::timeout(DEADLINE, engine.events().probe()).await {
        Ok(Ok(())) => Finding::ok("database", "can be written"),
        Ok(Err(error)) => {
            let advice =
                error.hint().unwrap_or_else(|| "check the disk and the rights of the directory".to_owned());
            Finding::failed("database", error.to_string(), advice)
        }
        Err(_) => Finding::failed("database", "no answer in time", "another process may hold it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_servers_are_read() {
        for (date, expected) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Thu, 29 Feb 2024 23:59:59 GMT", Some(1_709_251_199)),
            ("yesterday", None),
            ("Sun, 06 Nov 1994", None),
        ] {
            assert_eq!(seconds(date), expected, "{date}");
        }
    }

    #[test]
    fn a_wrong_clock_is_a_warning() {
        assert_eq!(clock(1000, 1060).advice, None);
        assert!(clock(1000, 5000).detail.contains("4000 s"));
    }
}
