//! Writing the todo list.

use serde_json::{Value, json};

use crate::project::Project;

#[tokio::test]
async fn the_list_is_returned_as_text_and_as_metadata() {
    let project = Project::new();
    let todo =
        |content: &str, status: &str| json!({"content": content, "status": status, "priority": "high"});
    let cases = [
        (json!([]), "0 todos"),
        (json!([todo("A", "in_progress"), todo("B", "pending")]), "2 todos"),
        // Unknown states are kept.
        (json!([todo("A", "completed"), todo("B", "bogus"), todo("C", "cancelled")]), "2 todos"),
    ];
    for (todos, title) in cases {
        let output = project.call("todowrite", json!({"todos": todos})).await.expect(title);
        assert_eq!(output.title, title);
        assert_eq!(output.output, serde_json::to_string_pretty(&todos).expect("JSON"));
        let expected = json!({"todos": todos, "truncated": false});
        assert_eq!(Value::from(output.metadata).to_string(), expected.to_string());
    }
}

#[tokio::test]
async fn a_list_that_is_too_long_is_rejected() {
    let project = Project::new();
    let todo = json!({"content": "x", "status": "pending", "priority": "low"});
    let error = project.error("todowrite", json!({"todos": vec![todo; 501]})).await;
    assert_eq!(error, "The list has 501 items; at most 500 are kept");
    let error = project.error("todowrite", json!({"todos": [{"content": "x"}]})).await;
    assert!(error.contains("SchemaError(Missing key\n  at [\"todos\"][0][\"status\"])"), "{error}");
}

#[tokio::test]
async fn the_list_needs_permission() {
    let project = Project::new();
    let asks = project.asks("todowrite", json!({"todos": []})).await.expect("asks");
    assert_eq!((asks.len(), asks[0].permission.as_str()), (1, "todowrite"));
    assert_eq!((&asks[0].patterns, &asks[0].always), (&vec!["*".to_owned()], &vec!["*".to_owned()]));
}
