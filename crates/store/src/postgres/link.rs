//! A connection to the database.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::BytesMut;
use futures_util::future::{join, join3};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_postgres::types::{Format, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{AsyncMessage, Client, Row, Statement};

use super::address::Address;
use super::fault::Fault;
use crate::sql::Value;

/// How long opening a connection may take, for all its hosts.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);

/// How many requests are sent before the first response is awaited.
const MAX_IN_FLIGHT: usize = 256;

/// The limits that the server enforces for every connection. A transaction that does nothing is ended, because the
/// lock that it may have would stop every other process: one that was paused or whose machine is gone.
const SETUP: &str = "SET statement_timeout = '30s'; SET lock_timeout = '15s'; \
    SET idle_in_transaction_session_timeout = '5s'; SET client_min_messages = error; SET jit = off; \
    SET default_transaction_isolation = 'read committed'";

const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

/// A statement with its parameters.
pub(super) type Request<'a> = (&'static str, Vec<&'a (dyn ToSql + Sync)>);

/// An open connection with its prepared statements. Their number is that of the statements in the program.
pub(super) struct Link {
    client: Client,
    statements: HashMap<&'static str, Statement>,
}

impl Link {
    /// Opens a connection, which is driven on the store's thread. `heard` is notified of other processes' appends.
    pub(super) async fn open(
        address: &Address,
        driver: &Handle,
        heard: Option<(String, Arc<Notify>)>,
    ) -> Result<Self, Fault> {
        let (config, tls, on) = (address.config.clone(), address.tls.clone(), driver.clone());
        let opening = driver.spawn(async move {
            let (client, mut connection) = config.connect(tls).await?;
            on.spawn(async move {
                while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
                    if let (AsyncMessage::Notification(notice), Some((own, heard))) = (&message, &heard)
                        && notice.payload() != own
                    {
                        heard.notify_one();
                    }
                }
            });
            client.batch_execute(SETUP).await?;
            Ok::<_, tokio_postgres::Error>(client)
        });
        let abort = opening.abort_handle();
        match timeout(OPEN_TIMEOUT, opening).await {
            Ok(Ok(opened)) => Ok(Self { client: opened?, statements: HashMap::new() }),
            // The store's thread has ended.
            Ok(Err(_)) => Err(crate::Error::Closed.into()),
            Err(_) => {
                abort.abort();
                Err(Fault::Silent)
            }
        }
    }

    /// Whether the connection is known to be lost.
    pub(super) fn is_lost(&self) -> bool {
        self.client.is_closed()
    }

    /// Runs statements without parameters, such as `BEGIN`.
    pub(super) async fn batch(&self, sql: &str) -> Result<(), Fault> {
        Ok(self.client.batch_execute(sql).await?)
    }

    pub(super) async fn prepare(&mut self, sql: &'static str) -> Result<(), Fault> {
        if !self.statements.contains_key(sql) {
            let statement = self.client.prepare(sql).await?;
            self.statements.insert(sql, statement);
        }
        Ok(())
    }

    /// The rows of a query.
    pub(super) async fn rows(
        &mut self,
        sql: &'static str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Fault> {
        self.prepare(sql).await?;
        Ok(self.client.query(&self.statements[sql], values).await?)
    }

    /// The row of a query that has at most one.
    pub(super) async fn row(
        &mut self,
        sql: &'static str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Option<Row>, Fault> {
        Ok(self.rows(sql, values).await?.into_iter().next())
    }

    /// Runs a statement. Returns how many rows it changed or found.
    pub(super) async fn run(
        &mut self,
        sql: &'static str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, Fault> {
        self.prepare(sql).await?;
        Ok(self.client.execute(&self.statements[sql], values).await?)
    }

    /// Runs a statement with the parameters of a change.
    pub(super) async fn change(&mut self, sql: &'static str, values: &[Value<'_>]) -> Result<u64, Fault> {
        self.prepare(sql).await?;
        Ok(self.client.execute_raw(&self.statements[sql], values).await?)
    }

    /// Begins a transaction, and returns the rows of its first statements. All are sent before the first response.
    pub(super) async fn begin(&mut self, requests: &[Request<'_>]) -> Result<Vec<Vec<Row>>, Fault> {
        for (sql, _) in requests {
            self.prepare(sql).await?;
        }
        let (begun, rows) = join(self.client.batch_execute(BEGIN), self.send(requests)).await;
        begun?;
        Ok(rows?)
    }

    /// Runs a whole transaction, and returns the rows of its statements. All are sent before the first response, so its
    /// locks are held only while the database works. If one fails, nothing is changed.
    pub(super) async fn transaction(&mut self, requests: &[Request<'_>]) -> Result<Vec<Vec<Row>>, Fault> {
        for (sql, _) in requests {
            self.prepare(sql).await?;
        }
        let begin = self.client.batch_execute(BEGIN);
        let commit = self.client.batch_execute("COMMIT");
        let (begun, rows, committed) = join3(begin, self.send(requests), commit).await;
        begun?;
        let rows = rows?;
        committed?;
        Ok(rows)
    }

    /// Sends queries, each before the responses of the others, in their order.
    async fn send(&self, requests: &[Request<'_>]) -> Result<Vec<Vec<Row>>, tokio_postgres::Error> {
        let sent = requests.iter().map(|(sql, values)| self.client.query(&self.statements[sql], values));
        in_order(sent).await.into_iter().collect()
    }

    /// Runs statements, each sent before the responses of the others. Returns how many rows each changed or found.
    /// After one has failed, the transaction is over.
    pub(super) async fn changes(&mut self, requests: &[Request<'_>]) -> Result<Vec<u64>, Fault> {
        for (sql, _) in requests {
            self.prepare(sql).await?;
        }
        let mut counts = Vec::with_capacity(requests.len());
        for chunk in requests.chunks(MAX_IN_FLIGHT) {
            let sent = chunk.iter().map(|(sql, values)| self.client.execute(&self.statements[sql], values));
            for count in in_order(sent).await {
                counts.push(count?);
            }
        }
        Ok(counts)
    }
}

/// Sends requests in their order, because statements depend on those before them. Returns their responses.
async fn in_order<T>(requests: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut sent: Vec<_> = requests.map(|request| (Box::pin(request), None)).collect();
    // The first poll sends the request.
    poll_fn(|context| {
        for (request, response) in &mut sent {
            if let Poll::Ready(ready) = Pin::new(request).poll(context) {
                *response = Some(ready);
            }
        }
        Poll::Ready(())
    })
    .await;
    let mut responses = Vec::with_capacity(sent.len());
    for (request, response) in sent {
        responses.push(match response {
            Some(response) => response,
            None => request.await,
        });
    }
    responses
}

/// The parameters of a change. PostgreSQL texts cannot contain NUL.
impl ToSql for Value<'_> {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Null => return Ok(IsNull::Yes),
            Self::Int(number) => return number.to_sql(kind, out),
            Self::Real(number) => return number.to_sql(kind, out),
            Self::Text(text) if text.contains('\0') => {
                out.extend_from_slice(text.replace('\0', "\u{fffd}").as_bytes());
            }
            Self::Text(text) => out.extend_from_slice(text.as_bytes()),
            Self::Json(json) => out.extend_from_slice(json),
        }
        Ok(IsNull::No)
    }

    fn accepts(kind: &Type) -> bool {
        matches!(*kind, Type::TEXT | Type::INT8 | Type::FLOAT8)
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Binary
    }

    to_sql_checked!();
}

/// A text of a list.
#[derive(Debug)]
pub(super) struct Text<'a>(pub(super) &'a [u8]);

impl ToSql for Text<'_> {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.extend_from_slice(self.0);
        Ok(IsNull::No)
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::TEXT
    }

    to_sql_checked!();
}
