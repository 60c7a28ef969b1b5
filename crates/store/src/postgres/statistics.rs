//! Sums up the usage of sessions.

use std::collections::HashMap;

use serde::Deserialize;
use tokio_postgres::Row;

use super::fault::Fault;
use super::link::Link;
use super::query::unsigned;
use crate::inspect::{MAX_KINDS, ModelUsage, Tokens, Usage, tokens};
use crate::list::unreadable;
use crate::sql::{self, to_column};

/// The maximum number of sessions, or of messages, that are read at a time.
const PAGE: usize = 500;

/// The fields of a message that count.
#[derive(Deserialize)]
struct Answer {
    role: String,
    #[serde(rename = "providerID", default)]
    provider: String,
    #[serde(rename = "modelID", default)]
    model: String,
    #[serde(default)]
    tokens: Counts,
    #[serde(default)]
    cost: f64,
}

#[derive(Deserialize, Default)]
struct Counts {
    #[serde(default)]
    input: f64,
    #[serde(default)]
    output: f64,
    #[serde(default)]
    reasoning: f64,
    #[serde(default)]
    cache: Cache,
}

#[derive(Deserialize, Default)]
struct Cache {
    #[serde(default)]
    read: f64,
    #[serde(default)]
    write: f64,
}

/// Sums up the usage of the sessions that changed since a time, of one project or all.
pub(super) async fn sum_up(link: &mut Link, since: u64, project: Option<&str>) -> Result<Usage, Fault> {
    let since = to_column(since);
    let mut usage = Usage { first: u64::MAX, ..Usage::default() };
    let mut after = String::new();
    loop {
        let rows = link.rows(sql::STATISTICS_SESSIONS, &[&since, &project, &after, &(PAGE as i64)]).await?;
        for row in &rows {
            let tokens = tokens([0, 1, 2, 3, 4].map(|at| unsigned(row, at)));
            usage.add_session(tokens, row.get(5), [unsigned(row, 6), unsigned(row, 7)]);
        }
        match rows.last() {
            Some(last) if rows.len() == PAGE => after = last.get(8),
            _ => break,
        }
    }
    usage.each.sort_unstable();
    usage.messages =
        link.row(sql::STATISTICS_MESSAGES, &[&since, &project]).await?.map_or(0, |row| unsigned(&row, 0));
    usage.models = models(link, since, project).await?;
    let tool = |row: &Row| {
        let name = row.get::<_, Option<&str>>(0).and_then(|json| serde_json::from_str(json).ok());
        (name.unwrap_or_default(), unsigned(row, 1))
    };
    let limit = i64::from(MAX_KINDS);
    usage.tools = link
        .rows(sql::STATISTICS_TOOLS_POSTGRES, &[&since, &project, &limit])
        .await?
        .iter()
        .map(tool)
        .collect();
    Ok(usage)
}

async fn models(link: &mut Link, since: i64, project: Option<&str>) -> Result<Vec<ModelUsage>, Fault> {
    let mut found: HashMap<String, ModelUsage> = HashMap::new();
    let mut after = String::new();
    loop {
        let rows =
            link.rows(sql::STATISTICS_MODELS_POSTGRES, &[&since, &project, &after, &(PAGE as i64)]).await?;
        for row in &rows {
            let answer: Answer =
                serde_json::from_str(row.get(1)).map_err(unreadable("message", row.get(0)))?;
            let model = format!("{}/{}", answer.provider, answer.model);
            if answer.role != "assistant"
                || (found.len() >= MAX_KINDS as usize && !found.contains_key(&model))
            {
                continue;
            }
            let Counts { input, output, reasoning, cache } = answer.tokens;
            let more = tokens([input, output, reasoning, cache.read, cache.write].map(|count| count as u64));
            let name = model.clone();
            let all = found.entry(model).or_insert_with(|| ModelUsage {
                model: name,
                messages: 0,
                tokens: Tokens::default(),
                cost: 0.0,
            });
            all.messages += 1;
            all.tokens = all.tokens.and(more);
            all.cost += answer.cost;
        }
        match rows.last() {
            Some(last) if rows.len() == PAGE => after = last.get(0),
            _ => break,
        }
    }
    let mut models: Vec<_> = found.into_values().collect();
    models.sort_by(|one, other| other.messages.cmp(&one.messages).then_with(|| one.model.cmp(&other.model)));
    Ok(models)
}
