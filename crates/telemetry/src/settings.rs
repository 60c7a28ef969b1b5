//! Where spans go, as the usual variables say it.

use std::collections::BTreeMap;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;
use url::Url;

/// How long the collector may take to answer, unless a variable says otherwise.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The longest that a variable may let it take.
const MAX_TIMEOUT: Duration = Duration::from_secs(60);
/// What is added to an address that is meant for all kinds of signals.
const TRACES_PATH: &str = "v1/traces";
/// Attributes of the resource that a variable may name.
const MAX_ATTRIBUTES: usize = 64;
/// The name of the program, unless a variable says otherwise.
const SERVICE: &str = "codewright";

/// How it is decided what is told, unless a variable says otherwise.
const SAMPLER: &str = "parentbased_always_on";
/// How the names begin of ways that leave it to whoever asks.
const OF_PARENTS: &str = "parentbased_";

/// Where spans go.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The collector.
    pub address: Address,
    /// What is told about the program itself.
    pub resource: BTreeMap<String, String>,
    /// Which part of the traces is told, from 0 to 1.
    pub share: f64,
    /// Whether whoever asks us decides for what it asks.
    pub heeds_parents: bool,
    /// What a variable says that is not understood and left aside, if there is one.
    pub left_aside: Option<String>,
}

/// A collector and how it is asked.
#[derive(Clone, PartialEq)]
pub struct Address {
    /// Where to.
    pub url: Url,
    /// What goes with every request; it may hold credentials.
    pub headers: Vec<(String, String)>,
    /// How long it may take.
    pub timeout: Duration,
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Address").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

impl Settings {
    /// What the variables want; nothing unless they name a collector. What is wrong with them is said.
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
            return Err(format!("{variable}: `{protocol}` is not spoken here, only `http/json`"));
        }
        // The value itself may hold a password.
        let url = Url::parse(endpoint).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let mut url =
            url.ok_or_else(|| format!("{variable} is no address that begins with http:// or https://"))?;
        if !variable.contains("TRACES") {
            let path = format!("{}/{TRACES_PATH}", url.path().trim_end_matches('/'));
            url.set_path(&path);
        }
        let headers = match of("HEADERS") {
            Some((variable, list)) => headers(&variable, list)?,
            None => Vec::new(),
        };
        // No limit, which is written as 0, is our own.
        let (timeout, left_aside) = match of("TIMEOUT").map(|(variable, ms)| (variable, ms.parse())) {
            Some((_, Ok(0))) => (MAX_TIMEOUT, None),
            Some((_, Ok(ms))) => (Duration::from_millis(ms).min(MAX_TIMEOUT), None),
            Some((variable, Err(_))) => {
                let used = TIMEOUT.as_secs();
                (TIMEOUT, Some(format!("{variable} is no number of milliseconds; {used} s are used")))
            }
            None => (TIMEOUT, None),
        };
        let told = get("OTEL_RESOURCE_ATTRIBUTES")
            .map(|list| pairs("OTEL_RESOURCE_ATTRIBUTES", list))
            .transpose()?;
        let mut resource = BTreeMap::from([("service.name".to_owned(), SERVICE.to_owned())]);
        resource.extend(told.unwrap_or_default().into_iter().take(MAX_ATTRIBUTES));
        resource.extend(get("OTEL_SERVICE_NAME").map(|name| ("service.name".to_owned(), name.to_owned())));
        resource.insert("service.version".to_owned(), version.to_owned());
        let sampler = get("OTEL_TRACES_SAMPLER").unwrap_or(SAMPLER);
        let share = share(sampler, get("OTEL_TRACES_SAMPLER_ARG"))?;
        let heeds_parents = sampler.starts_with(OF_PARENTS);
        let address = Address { url, headers, timeout };
        Ok(Some(Self { address, resource, share, heeds_parents, left_aside }))
    }
}

/// `name=value` with commas between, values in the escapes of addresses.
fn pairs(variable: &str, list: &str) -> Result<Vec<(String, String)>, String> {
    let entries = list.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    let parsed = entries.map(|entry| {
        // What is shown is the name alone: the value may be a credential.
        let (name, value) = entry.split_once('=')?;
        let name = name.trim();
        (!name.is_empty())
            .then(|| (name.to_owned(), percent_decode_str(value.trim()).decode_utf8_lossy().into_owned()))
    });
    parsed
        .collect::<Option<_>>()
        .ok_or_else(|| format!("{variable} is no list of `name=value` with commas between"))
}

/// Pairs that can go with a request.
fn headers(variable: &str, list: &str) -> Result<Vec<(String, String)>, String> {
    let pairs = pairs(variable, list)?;
    for (at, (name, value)) in pairs.iter().enumerate() {
        // Which one is told by its place: what should have been a name may be part of a credential.
        if HeaderName::try_from(name).is_err() {
            return Err(format!("{variable}: the name of header {} is none that HTTP knows", at + 1));
        }
        if HeaderValue::try_from(value).is_err() {
            return Err(format!("{variable}: the value of header {} holds control characters", at + 1));
        }
    }
    Ok(pairs)
}

fn share(sampler: &str, argument: Option<&str>) -> Result<f64, String> {
    match sampler.strip_prefix(OF_PARENTS).unwrap_or(sampler) {
        "always_on" => Ok(1.0),
        "always_off" => Ok(0.0),
        "traceidratio" => {
            let share = argument.unwrap_or("1").parse().ok().filter(|share| (0.0..=1.0).contains(share));
            share.ok_or_else(|| "OTEL_TRACES_SAMPLER_ARG is no number from 0 to 1".to_owned())
        }
        _ => Err(format!("OTEL_TRACES_SAMPLER: `{sampler}` is not known")),
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
    fn nothing_is_told_unless_a_collector_is_named() {
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
        let told: Vec<_> = settings.resource.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(told, ["deployment.environment.name=test", "service.name=mine", "service.version=1.2.3"]);
        assert!((settings.share - 0.25).abs() < f64::EPSILON);
    }

    #[test]
    fn a_limit_of_nothing_is_the_longest_there_is() {
        for (ms, expected) in [("0", MAX_TIMEOUT), ("1", Duration::from_millis(1)), ("99999999", MAX_TIMEOUT)]
        {
            let settings = read(&[ENDPOINT, ("OTEL_EXPORTER_OTLP_TIMEOUT", ms)]).unwrap().unwrap();
            assert_eq!((settings.address.timeout, settings.left_aside), (expected, None));
        }
    }

    #[test]
    fn a_limit_that_is_no_number_is_told_by_its_name_and_left_aside() {
        for name in ["OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT"] {
            for value in ["5s", "-1", "1e3"] {
                let settings = read(&[ENDPOINT, (name, value)]).unwrap().unwrap();
                let told = settings.left_aside.unwrap_or_default();
                assert!(told.starts_with(&format!("{name} ")) && !told.contains(value), "{told}");
                assert_eq!(settings.address.timeout, TIMEOUT);
            }
        }
        assert_eq!(read(&[("OTEL_EXPORTER_OTLP_TIMEOUT", "5s")]), Ok(None), "nothing is told anyway");
    }

    #[test]
    fn what_is_wrong_is_said_without_its_secrets() {
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
        let shown = format!("{:?}", read(&[ENDPOINT, ("OTEL_EXPORTER_OTLP_HEADERS", "k=hunter2")]));
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
