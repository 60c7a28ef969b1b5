//! The export settings, read from the `OTEL_*` environment variables.

use std::collections::BTreeMap;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;
use url::Url;

/// The default time limit of an export request.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The largest time limit that a variable can set.
const MAX_TIMEOUT: Duration = Duration::from_secs(60);
/// The path that is appended to an endpoint that is shared by all kinds of signals.
const TRACES_PATH: &str = "v1/traces";
/// The maximum number of resource attributes that are read from the environment.
const MAX_ATTRIBUTES: usize = 64;
/// The default `service.name`.
const SERVICE: &str = "codewright";

/// The default sampler.
const SAMPLER: &str = "parentbased_always_on";
/// The prefix of samplers that follow the decision of an incoming `traceparent` header.
const PARENT_BASED: &str = "parentbased_";

/// Where spans are exported, and which of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub address: Address,
    /// Attributes that describe the program itself.
    pub resource: BTreeMap<String, String>,
    /// The sampled share of all traces, from 0 to 1.
    pub share: f64,
    /// Whether an incoming `traceparent` header decides sampling.
    pub honors_parents: bool,
    /// The warning about a variable that was ignored because its value is invalid.
    pub warning: Option<String>,
}

/// The address of a collector, with the request parameters.
#[derive(Clone, PartialEq)]
pub struct Address {
    /// The URL that spans are posted to.
    pub url: Url,
    /// The headers of every request. They may contain credentials.
    pub headers: Vec<(String, String)>,
    /// The time limit of a request.
    pub timeout: Duration,
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Address").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

impl Settings {
    /// Reads the settings from environment variables. Returns `None` if they name no collector.
    ///
    /// # Errors
    /// Fails with a description of the first invalid variable.
    pub fn read(variables: &BTreeMap<String, String>, version: &str) -> Result<Option<Self>, String> {
        let get =
            |name: &str| variables.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
        let of = |name: &str| {
            let own = format!("OTEL_EXPORTER_OTLP_TRACES_{name}");
            get(&own).map(|value| (own, value)).or_else(|| {
                let general = format!("OTEL_EXPORTER_OTLP_{name}");
                get(&general).map(|value| (general, value))
            })
        };
        let is_off = get("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let elsewhere = get("OTEL_TRACES_EXPORTER").is_some_and(|value| value != "otlp");
        let Some((variable, endpoint)) = of("ENDPOINT").filter(|_| !is_off && !elsewhere) else {
            return Ok(None);
        };
        if let Some((variable, protocol)) = of("PROTOCOL")
            && !protocol.starts_with("http/")
        {
            return Err(format!("{variable}: protocol `{protocol}` is not supported, only `http/json`"));
        }
        // The error does not repeat the value because it may contain a password.
        let url = Url::parse(endpoint).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let mut url =
            url.ok_or_else(|| format!("{variable} is not a URL that starts with http:// or https://"))?;
        if !variable.contains("TRACES") {
            let path = format!("{}/{TRACES_PATH}", url.path().trim_end_matches('/'));
            url.set_path(&path);
        }
        let headers = match of("HEADERS") {
            Some((variable, list)) => headers(&variable, list)?,
            None => Vec::new(),
        };
        // 0 means no limit; the maximum is used instead.
        let (timeout, warning) = match of("TIMEOUT").map(|(variable, ms)| (variable, ms.parse())) {
            Some((_, Ok(0))) => (MAX_TIMEOUT, None),
            Some((_, Ok(ms))) => (Duration::from_millis(ms).min(MAX_TIMEOUT), None),
            Some((variable, Err(_))) => {
                let used = TIMEOUT.as_secs();
                (TIMEOUT, Some(format!("{variable} is not a number of milliseconds; using {used} s")))
            }
            None => (TIMEOUT, None),
        };
        let attributes = get("OTEL_RESOURCE_ATTRIBUTES")
            .map(|list| pairs("OTEL_RESOURCE_ATTRIBUTES", list))
            .transpose()?;
        let mut resource = BTreeMap::from([("service.name".to_owned(), SERVICE.to_owned())]);
        resource.extend(attributes.unwrap_or_default().into_iter().take(MAX_ATTRIBUTES));
        resource.extend(get("OTEL_SERVICE_NAME").map(|name| ("service.name".to_owned(), name.to_owned())));
        resource.insert("service.version".to_owned(), version.to_owned());
        let sampler = get("OTEL_TRACES_SAMPLER").unwrap_or(SAMPLER);
        let share = share(sampler, get("OTEL_TRACES_SAMPLER_ARG"))?;
        let honors_parents = sampler.starts_with(PARENT_BASED);
        let address = Address { url, headers, timeout };
        Ok(Some(Self { address, resource, share, honors_parents, warning }))
    }
}

/// Parses a comma-separated list of `name=value` with percent-encoded values.
fn pairs(variable: &str, list: &str) -> Result<Vec<(String, String)>, String> {
    let entries = list.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    let parsed = entries.map(|entry| {
        let (name, value) = entry.split_once('=')?;
        let name = name.trim();
        (!name.is_empty())
            .then(|| (name.to_owned(), percent_decode_str(value.trim()).decode_utf8_lossy().into_owned()))
    });
    parsed
        .collect::<Option<_>>()
        .ok_or_else(|| format!("{variable} is not a comma-separated list of `name=value`"))
}

/// Parses a list of HTTP headers.
fn headers(variable: &str, list: &str) -> Result<Vec<(String, String)>, String> {
    let pairs = pairs(variable, list)?;
    for (at, (name, value)) in pairs.iter().enumerate() {
        // Errors give the position of the header, because an invalid name may be part of a credential.
        if HeaderName::try_from(name).is_err() {
            return Err(format!("{variable}: the name of header {} is not a valid HTTP header name", at + 1));
        }
        if HeaderValue::try_from(value).is_err() {
            return Err(format!("{variable}: the value of header {} contains control characters", at + 1));
        }
    }
    Ok(pairs)
}

fn share(sampler: &str, argument: Option<&str>) -> Result<f64, String> {
    match sampler.strip_prefix(PARENT_BASED).unwrap_or(sampler) {
        "always_on" => Ok(1.0),
        "always_off" => Ok(0.0),
        "traceidratio" => {
            let share = argument.unwrap_or("1").parse().ok().filter(|share| (0.0..=1.0).contains(share));
            share.ok_or_else(|| "OTEL_TRACES_SAMPLER_ARG is not a number from 0 to 1".to_owned())
        }
        _ => Err(format!("OTEL_TRACES_SAMPLER: unknown sampler `{sampler}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<Settings>, String> {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Settings::read(&variables.collect(), "1.2.3")
    }

    #[track_caller]
    fn check_url(variables: &[(&str, &str)], expected: Option<&str>) {
        let found = read(variables).unwrap().map(|settings| settings.address.url.to_string());
        assert_eq!(found.as_deref(), expected);
    }

    const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318");

    #[test]
    fn tracing_is_off_unless_a_collector_is_configured() {
        check_url(&[], None);
        check_url(&[("OTEL_SERVICE_NAME", "x")], None);
        check_url(&[ENDPOINT], Some("http://c:4318/v1/traces"));
        check_url(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "https://c/otlp/")], Some("https://c/otlp/v1/traces"));
        check_url(&[ENDPOINT, ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://d/t")], Some("http://d/t"));
        check_url(&[ENDPOINT, ("OTEL_SDK_DISABLED", "TRUE")], None);
        check_url(&[ENDPOINT, ("OTEL_TRACES_EXPORTER", "none")], None);
        check_url(
            &[ENDPOINT, ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")],
            Some("http://c:4318/v1/traces"),
        );
    }

    #[test]
    fn headers_names_and_shares_are_read() {
        let settings = read(&[
            ENDPOINT,
            ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Basic%20abc, x-team = a"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "2500"),
            ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test,service.name=other"),
            ("OTEL_SERVICE_NAME", "mine"),
            ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
            ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
        ]);
        let settings = settings.unwrap().unwrap();
        let headers = [("authorization", "Basic abc"), ("x-team", "a")];
        assert_eq!(
            settings.address.headers,
            headers.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
        assert_eq!(settings.address.timeout, Duration::from_millis(2500));
        let resource: Vec<_> =
            settings.resource.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            resource,
            ["deployment.environment.name=test", "service.name=mine", "service.version=1.2.3"]
        );
        assert!((settings.share - 0.25).abs() < f64::EPSILON);
    }

    #[test]
    fn a_timeout_of_zero_is_the_maximum() {
        for (ms, expected) in [("0", MAX_TIMEOUT), ("1", Duration::from_millis(1)), ("99999999", MAX_TIMEOUT)]
        {
            let settings = read(&[ENDPOINT, ("OTEL_EXPORTER_OTLP_TIMEOUT", ms)]).unwrap().unwrap();
            assert_eq!((settings.address.timeout, settings.warning), (expected, None));
        }
    }

    #[test]
    fn an_invalid_timeout_is_ignored_with_a_warning_that_names_the_variable() {
        for name in ["OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT"] {
            for value in ["5s", "-1", "1e3"] {
                let settings = read(&[ENDPOINT, (name, value)]).unwrap().unwrap();
                let warning = settings.warning.unwrap_or_default();
                assert!(warning.starts_with(&format!("{name} ")) && !warning.contains(value), "{warning}");
                assert_eq!(settings.address.timeout, TIMEOUT);
            }
        }
        assert_eq!(read(&[("OTEL_EXPORTER_OTLP_TIMEOUT", "5s")]), Ok(None), "tracing is off anyway");
    }

    #[test]
    fn errors_do_not_repeat_secrets() {
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "hunter2"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "hunter2"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "hunter2 b=c"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-a=b, x-key=hunter2%0a"),
            ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "hunter2\u{e4}=c"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_TRACES_SAMPLER", "sometimes"),
        ] {
            let wrong = read(&[ENDPOINT, (name, value)]).unwrap_err();
            assert!(wrong.contains(name) && !wrong.contains("hunter2"), "{wrong}");
        }
        let debug = format!("{:?}", read(&[ENDPOINT, ("OTEL_EXPORTER_OTLP_HEADERS", "k=hunter2")]));
        assert!(!debug.contains("hunter2"), "{debug}");
    }
}
