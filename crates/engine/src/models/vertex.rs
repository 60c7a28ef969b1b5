//! Google's Vertex AI: a project, a place, and credentials that are not a key.
//!
//! Everything is found when the provider is set up, so that what is missing is
//! said before anything is sent; tokens are fetched when the first request is.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use codewright_config::{Env, ProviderConfig, env};
use codewright_llm::{Auth, Endpoint, GoogleCredentials, Model};
use codewright_proto::Clock;
use serde_json::{Value, json};

/// Bytes a credentials file may have.
const FILE_LIMIT_BYTES: u64 = 256 * 1024;
/// Where `gcloud` keeps what a user signed in with, below its configuration.
const SIGNED_IN: &str = "application_default_credentials.json";

/// Whose models are asked on Vertex AI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Maker {
    Google,
    Anthropic,
}

/// Where Vertex AI is and how it is asked.
#[derive(Debug)]
pub(super) struct Vertex {
    maker: Maker,
    /// The address of the maker's models, unless the configuration gives one.
    base_url: Result<String, String>,
    auth: Shown,
}

#[derive(Debug)]
enum Shown {
    /// A key for the whole world, which needs no project.
    Key(String),
    Credentials(GoogleCredentials),
}

impl Maker {
    /// The maker whose models a library asks for on Vertex AI, if it is one for that.
    pub(super) fn of_npm(npm: &str) -> Option<Self> {
        let name = match npm.rfind('@') {
            Some(at) if at > 0 => &npm[..at],
            _ => npm,
        };
        match name {
            "@ai-sdk/google-vertex" => Some(Self::Google),
            "@ai-sdk/google-vertex/anthropic" => Some(Self::Anthropic),
            _ => None,
        }
    }
}

impl Vertex {
    /// Finds project, place and credentials for the provider named `id`.
    pub(super) fn find(
        id: &str,
        maker: Maker,
        written: &ProviderConfig,
        env: &Env,
        clock: &Clock,
    ) -> Result<Self, String> {
        let option = |name: &str| written.options.rest.get(name).and_then(Value::as_str);
        let option = |name: &str| option(name).filter(|text| !text.is_empty());
        let first = |names: &[&'static str]| names.iter().find_map(|name| env.filled(name));
        let key = written.options.api_key.as_deref().filter(|key| !key.is_empty());
        let key = key.or_else(|| env.filled(env::GOOGLE_VERTEX_API_KEY)).filter(|_| maker == Maker::Google);
        if let Some(key) = key {
            let base_url = Ok("https://aiplatform.googleapis.com/v1/publishers/google".to_owned());
            return Ok(Self { maker, base_url, auth: Shown::Key(key.to_owned()) });
        }
        let location = option("location").or_else(|| first(env::GOOGLE_LOCATIONS));
        let location = location.unwrap_or(match maker {
            Maker::Google => "us-central1",
            Maker::Anthropic => "global",
        });
        let project = option("project").or_else(|| first(env::GOOGLE_PROJECTS)).ok_or_else(|| {
            format!(
                "provider `{id}` has no project: set `provider.{id}.options.project` in opencode.json, or {}",
                env::GOOGLE_PROJECTS.join(" or ")
            )
        });
        let base_url = project.and_then(|project| {
            for (what, text) in [("project", project), ("location", location)] {
                if !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte)) {
                    return Err(format!("provider `{id}`: `{text}` is no {what} of Google's"));
                }
            }
            Ok(address(maker, project, location))
        });
        let credentials = credentials(id, written, env, clock)?;
        Ok(Self { maker, base_url, auth: Shown::Credentials(credentials) })
    }

    /// The address of the maker's models.
    pub(super) fn base_url(&self) -> Result<String, String> {
        self.base_url.clone()
    }

    /// Lets `model` be asked here.
    pub(super) fn reach(self, model: &mut Model) {
        match self.auth {
            Shown::Key(key) => {
                model.api_key = Some(key.into());
                model.auth = Auth::Header("x-goog-api-key");
            }
            Shown::Credentials(credentials) => {
                model.api_key = None;
                model.auth = Auth::Google(credentials);
            }
        }
        match self.maker {
            Maker::Google => {}
            Maker::Anthropic => model.endpoint = Endpoint::Vertex,
        }
    }
}

fn address(maker: Maker, project: &str, location: &str) -> String {
    let host = match location {
        "global" => "aiplatform.googleapis.com".to_owned(),
        // These are several regions at once.
        "us" | "eu" => format!("aiplatform.{location}.rep.googleapis.com"),
        region => format!("{region}-aiplatform.googleapis.com"),
    };
    let (version, publisher) = match maker {
        Maker::Google => ("v1beta1", "google"),
        Maker::Anthropic => ("v1", "anthropic/models"),
    };
    format!("https://{host}/{version}/projects/{project}/locations/{location}/publishers/{publisher}")
}

/// What the configuration names, else the variable, else what `gcloud` keeps, else the machine.
fn credentials(
    id: &str,
    written: &ProviderConfig,
    env: &Env,
    clock: &Clock,
) -> Result<GoogleCredentials, String> {
    let problem = |text: String| format!("provider `{id}`: {text}");
    let read = |text: &str, name: &str| {
        GoogleCredentials::from_file(text, name, clock.clone()).map_err(|error| problem(error.to_string()))
    };
    let given = written.options.rest.get("googleAuthOptions");
    if let Some(Value::Object(inline)) = given.and_then(|given| given.get("credentials")) {
        let mut inline = inline.clone();
        inline.entry("type").or_insert_with(|| json!("service_account"));
        let name = format!("provider.{id}.options.googleAuthOptions.credentials");
        return read(&Value::Object(inline).to_string(), &name);
    }
    let named = given.and_then(|given| given.get("keyFilename").or_else(|| given.get("keyFile")));
    let named = named.and_then(Value::as_str).map(|path| (path, "googleAuthOptions.keyFilename"));
    let variable = env.filled(env::GOOGLE_APPLICATION_CREDENTIALS);
    let variable = variable.map(|path| (path, env::GOOGLE_APPLICATION_CREDENTIALS));
    if let Some((path, from)) = named.or(variable) {
        let text = text_of(Path::new(path))
            .map_err(|why| problem(format!("{from} names `{path}`, which cannot be read: {why}")))?;
        return read(&text, path);
    }
    let kept = env.filled(env::CLOUDSDK_CONFIG).map(PathBuf::from);
    let kept = kept.or_else(|| Some(Path::new(env.filled(env::HOME)?).join(".config/gcloud")));
    if let Some(path) = kept.map(|folder| folder.join(SIGNED_IN)).filter(|path| path.is_file()) {
        let name = path.display().to_string();
        let text = text_of(&path).map_err(|why| problem(format!("`{name}` cannot be read: {why}")))?;
        return read(&text, &name);
    }
    Ok(GoogleCredentials::of_machine(env.filled(env::GCE_METADATA_HOST), clock.clone()))
}

fn text_of(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(FILE_LIMIT_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use codewright_config::ProviderOptions;

    use super::*;

    fn written(options: Value) -> ProviderConfig {
        let rest = options.as_object().unwrap().clone();
        ProviderConfig {
            options: ProviderOptions { rest, ..ProviderOptions::default() },
            ..ProviderConfig::default()
        }
    }

    fn find(maker: Maker, options: Value, variables: &[(&str, &str)]) -> Result<Vertex, String> {
        let env = Env::from_pairs(variables.iter().copied());
        Vertex::find("v", maker, &written(options), &env, &Clock::stepping(0, 0))
    }

    #[test]
    fn project_and_place_make_the_address() {
        let long = "https://europe-west1-aiplatform.googleapis.com/v1beta1/projects/p/locations/europe-west1/publishers/google";
        for (maker, options, variables, expected) in [
            (Maker::Google, json!({"project": "p", "location": "europe-west1"}), vec![], long),
            (
                Maker::Google,
                json!({}),
                vec![("GOOGLE_CLOUD_PROJECT", "p"), ("GOOGLE_CLOUD_LOCATION", "europe-west1")],
                long,
            ),
            (Maker::Google, json!({}), vec![("GCP_PROJECT", "p"), ("VERTEX_LOCATION", "europe-west1")], long),
            (
                Maker::Google,
                json!({"project": "p"}),
                vec![("GCLOUD_PROJECT", "other")],
                "https://us-central1-aiplatform.googleapis.com/v1beta1/projects/p/locations/us-central1/publishers/google",
            ),
            (
                Maker::Anthropic,
                json!({"project": "p"}),
                vec![],
                "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/anthropic/models",
            ),
            (
                Maker::Anthropic,
                json!({"project": "p", "location": "eu"}),
                vec![],
                "https://aiplatform.eu.rep.googleapis.com/v1/projects/p/locations/eu/publishers/anthropic/models",
            ),
        ] {
            assert_eq!(find(maker, options, &variables).unwrap().base_url().unwrap(), expected);
        }
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let error = find(Maker::Google, json!({}), &[]).unwrap().base_url().unwrap_err();
        assert!(
            error.contains("`provider.v.options.project`") && error.contains("GOOGLE_CLOUD_PROJECT"),
            "{error}"
        );
        let error = find(Maker::Google, json!({"project": "a/../b"}), &[]).unwrap().base_url().unwrap_err();
        assert_eq!(error, "provider `v`: `a/../b` is no project of Google's");
        let missing = [("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere/key.json")];
        let error = find(Maker::Google, json!({"project": "p"}), &missing).unwrap_err();
        assert!(
            error.starts_with(
                "provider `v`: GOOGLE_APPLICATION_CREDENTIALS names `/nowhere/key.json`, which cannot be read:"
            ),
            "{error}"
        );
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(SIGNED_IN);
        std::fs::write(&path, r#"{"type":"external_account"}"#).unwrap();
        let kept = [("CLOUDSDK_CONFIG", folder.path().to_str().unwrap())];
        let error = find(Maker::Google, json!({"project": "p"}), &kept).unwrap_err();
        assert!(
            error.contains(&format!("`{}`", path.display())) && error.contains("external_account"),
            "{error}"
        );
    }

    #[test]
    fn a_model_is_asked_with_what_was_found() {
        let mut model = Model::new("v", "m", codewright_llm::Protocol::Gemini, "https://h");
        model.api_key = Some("a project, not a key".into());
        find(Maker::Google, json!({"project": "p"}), &[]).unwrap().reach(&mut model);
        assert!(matches!(model.auth, Auth::Google(_)) && model.api_key.is_none());
        let vertex = find(Maker::Google, json!({}), &[("GOOGLE_VERTEX_API_KEY", "k")]).unwrap();
        assert_eq!(vertex.base_url().unwrap(), "https://aiplatform.googleapis.com/v1/publishers/google");
        vertex.reach(&mut model);
        assert_eq!((model.auth, model.api_key.unwrap().expose()), (Auth::Header("x-goog-api-key"), "k"));
    }
}
