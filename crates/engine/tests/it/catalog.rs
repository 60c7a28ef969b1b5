//! The events about providers and models, on which clients read them again.

use codewright_engine::Subscription;
use codewright_proto::{Fact, Signal};
use codewright_scripted::Script;

use crate::desk::{Desk, wait_for};

/// Returns the events about providers and models that were sent before all directories were closed.
async fn sent(desk: &Desk, feed: &mut Subscription) -> Vec<String> {
    desk.engine.instances().dispose_all().await;
    let here = desk.project.to_string_lossy();
    let mut sent = Vec::new();
    wait_for(feed, |published| {
        let (name, directory) = match published.notice().fact {
            Fact::Signal(Signal::CatalogUpdated { directory }) => ("catalog".to_owned(), directory),
            Fact::Signal(Signal::IntegrationUpdated { directory }) => ("integration".to_owned(), directory),
            Fact::Signal(Signal::IntegrationConnectionUpdated { directory, integration_id }) => {
                (format!("connection of {integration_id}"), directory)
            }
            Fact::Signal(Signal::GlobalDisposed {}) => return Some(()),
            Fact::Event(_) | Fact::Signal(_) => return None,
        };
        assert_eq!(directory, here);
        sent.push(name);
        None
    })
    .await;
    sent
}

#[tokio::test]
async fn clients_are_told_when_a_directory_has_read_its_models() {
    let desk = Desk::new(Script::new()).await;
    let mut feed = desk.engine.events().subscribe();
    // The directory is open.
    desk.engine.instance(&desk.project).await.unwrap();
    assert_eq!(sent(&desk, &mut feed).await, Vec::<String>::new());
    for _ in 0..2 {
        desk.engine.instance(&desk.project).await.unwrap();
    }
    assert_eq!(sent(&desk, &mut feed).await, ["integration", "catalog"]);
}

#[tokio::test]
async fn clients_are_told_when_the_user_signs_in_or_out() {
    let desk = Desk::new(Script::new()).await;
    let mut feed = desk.engine.events().subscribe();
    desk.engine.providers().set_key("groq", "k", None).await.unwrap();
    assert_eq!(sent(&desk, &mut feed).await, ["connection of groq", "integration"]);
    desk.engine.instance(&desk.project).await.unwrap();
    desk.engine.providers().remove_credential("groq").await.unwrap();
    let expected = ["integration", "catalog", "connection of groq", "integration"];
    assert_eq!(sent(&desk, &mut feed).await, expected);
    // No directory is open, so no client shows its models.
    desk.engine.providers().set_key("groq", "k", None).await.unwrap();
    assert_eq!(sent(&desk, &mut feed).await, Vec::<String>::new());
}
