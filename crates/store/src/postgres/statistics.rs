//! Sums up the usage of sessions.
//!
//! Answers are parsed here. PostgreSQL's own JSON functions refuse texts with `\u0000`, which outputs of commands have.

use std::collections::HashMap;

use serde::Deserialize;
use tokio_postgres::Row;

use super::fault::Fault;
use super::link::Link;
use super::query::unsigned;
use crate::inspect::{MAX_KINDS, ModelUsage, Tokens, Usage, tokens};
use crate::list::unreadable;
use crate::sql::to_column;

/// How many answers are read at a time.
const PAGE: usize = 500;

const SESSIONS: &str =
    "SELECT tokens_input, tokens_output, tokens_reasoning, tokens_cache_read, tokens_cache_write, cost,
    time_created, time_updated FROM session
    WHERE time_updated >= $1 AND ($2::text IS NULL OR project_id = $2)";
const MESSAGES: &str = "SELECT count(*) FROM message JOIN session ON session.id = session_id
    WHERE session.time_updated >= $1 AND ($2::text IS NULL OR project_id = $2)";
const ANSWERS: &str = "SELECT message.id, message.data FROM message JOIN session ON session.id = session_id
    WHERE session.time_updated >= $1 AND ($2::text IS NULL OR project_id = $2) AND message.id > $3
    ORDER BY message.id LIMIT $4";
/// The names of tools, as the text of a JSON string. The row of a call begins with these fields, because a part is
/// written in the order of its type.
const TOOLS: &str = r#"SELECT (regexp_match(left(part.data, 4096),
        '^\{"type":"tool","callID":"(?:[^"\\]|\\.)*","tool":("(?:[^"\\]|\\.)*")'))[1], count(*)
    FROM part JOIN session ON session.id = session_id
    WHERE session.time_updated >= $1 AND ($2::text IS NULL OR project_id = $2)
        AND left(part.data, 14) = '{"type":"tool"'
    GROUP BY 1 ORDER BY 2 DESC, min(part.id) LIMIT $3"#;

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
    for row in link.rows(SESSIONS, &[&since, &project]).await? {
        let tokens = tokens([0, 1, 2, 3, 4].map(|at| unsigned(&row, at)));
        usage.add_session(tokens, row.get(5), [unsigned(&row, 6), unsigned(&row, 7)]);
    }
    usage.each.sort_unstable();
    usage.messages = link.row(MESSAGES, &[&since, &project]).await?.map_or(0, |row| unsigned(&row, 0));
    usage.models = models(link, since, project).await?;
    let tool = |row: &Row| {
        let name = row.get::<_, Option<&str>>(0).and_then(|json| serde_json::from_str(json).ok());
        (name.unwrap_or_default(), unsigned(row, 1))
    };
    let limit = i64::from(MAX_KINDS);
    usage.tools = link.rows(TOOLS, &[&since, &project, &limit]).await?.iter().map(tool).collect();
    Ok(usage)
}

async fn models(link: &mut Link, since: i64, project: Option<&str>) -> Result<Vec<ModelUsage>, Fault> {
    let mut found: HashMap<String, ModelUsage> = HashMap::new();
    let mut after = String::new();
    loop {
        let rows = link.rows(ANSWERS, &[&since, &project, &after, &(PAGE as i64)]).await?;
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
