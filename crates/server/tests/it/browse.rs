//! The routes for files and version control.

use codewright_testkit::Script;
use serde_json::{Value, json};

use crate::bench::{Bench, ask, quick};

fn names(listed: &Value) -> Vec<&str> {
    listed.as_array().unwrap().iter().map(|node| node["path"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn files_are_listed_and_read_in_the_recorded_schemas() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(quick());
    let own = bench.project.directory().to_str().unwrap();
    bench.project.write(".gitignore", "secret\n").unwrap();
    bench.project.write(".ignore", "secret\n").unwrap();
    bench.project.write("secret", "s").unwrap();
    bench.project.write("src/util.py", "def add(a, b):\n    return a + b\n\n").unwrap();
    bench.project.write("img.png", b"\x89PNG\r\n\x1a\n\0").unwrap();
    bench.project.write("blob", b"\0\x01\x02").unwrap();
    let (status, listed) = ask(&router, "GET", "/file?path=.", "").await;
    assert_eq!(status, 200);
    let expected = ["src/", ".gitignore", ".ignore", "blob", "img.png", "opencode.json", "secret"];
    assert_eq!(names(&listed), expected);
    assert_eq!(
        listed[0],
        json!({
            "name": "src", "path": "src/", "absolute": format!("{own}/src"), "type": "directory", "ignored": false
        })
    );
    assert_eq!(listed[6]["ignored"], true);
    assert_eq!(names(&ask(&router, "GET", "/file?path=src", "").await.1), ["src/util.py"]);
    let text = json!({"type": "text", "content": "def add(a, b):\n    return a + b"});
    assert_eq!(ask(&router, "GET", "/file/content?path=src/util.py", "").await, (200, text));
    bench.project.write("drawn.svg", "<svg/>\n").unwrap();
    let drawn = json!({"type": "text", "content": "<svg/>"});
    assert_eq!(ask(&router, "GET", "/file/content?path=drawn.svg", "").await, (200, drawn));
    let nothing = json!({"type": "text", "content": ""});
    assert_eq!(ask(&router, "GET", "/file/content?path=nope.py", "").await, (200, nothing));
    let picture = json!({
        "type": "binary", "content": "iVBORw0KGgoA", "encoding": "base64", "mimeType": "image/png"
    });
    assert_eq!(ask(&router, "GET", "/file/content?path=img.png", "").await, (200, picture));
    let (_, blob) = ask(&router, "GET", "/file/content?path=blob", "").await;
    assert_eq!((&blob["content"], &blob["mimeType"]), (&json!("AAEC"), &json!("application/octet-stream")));
    let (_, listed) = ask(&router, "GET", "/api/fs/list?path=src", "").await;
    assert_eq!(listed["data"], json!([{"path": "src/util.py", "type": "file"}]));
    assert_eq!(listed["location"]["directory"], own);
}

#[tokio::test]
async fn files_outside_the_worktree_are_never_accessible() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(quick());
    let outside = bench.project.home().join("private");
    std::fs::create_dir_all(&outside).unwrap();
    std::fs::write(outside.join("key"), "hunter2").unwrap();
    std::os::unix::fs::symlink(&outside, bench.project.path("link")).unwrap();
    let absolute = outside.display().to_string();
    for path in [
        "..",
        "../",
        "../home/private/key",
        "a/../../home/private/key",
        "link",
        "link/key",
        &absolute,
        "/etc/passwd",
        "%00",
        "..%2f..%2fetc/passwd",
    ] {
        for route in ["/file?path=", "/file/content?path=", "/api/fs/list?path=", "/api/fs/read/"] {
            let (status, reply) = ask(&router, "GET", &format!("{route}{path}"), "").await;
            assert!(matches!(status, 400 | 404), "{route}{path}: {status} {reply}");
            assert!(!reply.to_string().contains("hunter2"), "{route}{path}: {reply}");
        }
    }
    let (_, found) = ask(&router, "GET", "/find?pattern=hunter2", "").await;
    assert_eq!(found, json!([]));
    assert_eq!(ask(&router, "GET", "/find/file?query=key", "").await.1, json!([]));
}

#[tokio::test]
async fn file_names_and_lines_are_found() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(quick());
    bench.project.write("src/util.py", "import os\ndef add(a, b): return add\n").unwrap();
    for at in 0..60 {
        bench.project.write(format!("many/file{at}.txt"), "x").unwrap();
    }
    let find = async |query: &str| ask(&router, "GET", &format!("/find/file?query={query}"), "").await;
    assert_eq!(find("util").await, (200, json!(["src/util.py"])));
    assert_eq!(find("src&type=directory").await.1, json!(["src/"]));
    assert_eq!(find("src&dirs=false").await.1, json!(["src/util.py"]));
    assert_eq!(find("zzzz").await.1, json!([]));
    assert_eq!(find("file").await.1.as_array().unwrap().len(), 10);
    assert_eq!(find("file&limit=3").await.1.as_array().unwrap().len(), 3);
    for bad in ["x&limit=0", "x&limit=201", "x&limit=y", "x&type=zzz"] {
        assert_eq!(find(bad).await.0, 400, "{bad}");
    }
    let (_, v2) = ask(&router, "GET", "/api/fs/find?query=file", "").await;
    assert_eq!(v2["data"].as_array().unwrap().len(), 50);
    assert_eq!(v2["data"][0]["type"], "file");
    let (status, lines) = ask(&router, "GET", "/find?pattern=add", "").await;
    let submatch = |start: u32| json!({"match": {"text": "add"}, "start": start, "end": start + 3});
    let expected = json!([{
        "path": {"text": "src/util.py"},
        "lines": {"text": "def add(a, b): return add\n"},
        "line_number": 2,
        "absolute_offset": 10,
        "submatches": [submatch(4), submatch(22)],
    }]);
    assert_eq!((status, lines), (200, expected));
    assert_eq!(ask(&router, "GET", "/find?pattern=(", "").await.0, 400);
    let missing = json!({"name": "BadRequest", "data": {"message": "Missing key\n  at [\"pattern\"]", "kind": "Query"}});
    assert_eq!(ask(&router, "GET", "/find", "").await, (400, missing));
    assert_eq!(ask(&router, "GET", "/find/symbol?query=add", "").await, (200, json!([])));
}

#[tokio::test]
async fn branches_and_diffs_are_returned() {
    let bench = Bench::git().await;
    let router = bench.router(quick());
    let commit = ["-c", "commit.gpgsign=false", "commit", "--quiet", "-am", "Second"];
    let read = async |path: &str| {
        let (status, json) = ask(&router, "GET", path, "").await;
        assert_eq!(status, 200, "{path}: {json}");
        json
    };
    assert_eq!(read("/vcs").await, json!({"branch": "main", "default_branch": "main"}));
    let start = read("/vcs/status").await;
    assert_eq!(start, json!([]), "the configuration is excluded");
    bench.project.run_git(&["checkout", "--quiet", "-b", "feature"]).unwrap();
    bench.project.write("on branch.txt", "one\n").unwrap();
    bench.project.run_git(&["add", "."]).unwrap();
    bench.project.run_git(&commit).unwrap();
    bench.project.write("README.md", "# Project\nmore\n").unwrap();
    bench.project.write("new/ä.bin", b"\0\x01").unwrap();
    let before = std::fs::read(bench.project.path(".git/index")).unwrap();
    assert_eq!(read("/vcs").await, json!({"branch": "feature", "default_branch": "main"}));
    let changed = |file: &str, additions: u32, status: &str| json!({"file": file, "additions": additions, "deletions": 0, "status": status});
    let expected = json!([changed("README.md", 1, "modified"), changed("new/ä.bin", 0, "added")]);
    assert_eq!(read("/vcs/status").await, expected);
    let older = json!([
        {"path": "README.md", "added": 1, "removed": 0, "status": "modified"},
        {"path": "new/ä.bin", "added": 0, "removed": 0, "status": "added"},
    ]);
    assert_eq!(read("/file/status").await, older);
    let diff = read("/vcs/diff?mode=git&context=0").await;
    let patch = diff[0]["patch"].as_str().unwrap();
    assert!(patch.starts_with("diff --git a/README.md b/README.md\nindex "), "{patch}");
    assert!(patch.ends_with("\n@@ -1,0 +2 @@\n+more\n"), "{patch}");
    assert!(diff[1]["patch"].as_str().unwrap().contains("new file mode 100644\nindex 0000000.."), "{diff}");
    let branch = read("/vcs/diff?mode=branch").await;
    let files: Vec<_> = branch.as_array().unwrap().iter().map(|file| &file["file"]).collect();
    assert_eq!(files, ["README.md", "new/ä.bin", "on branch.txt"]);
    assert_eq!(ask(&router, "GET", "/vcs/diff", "").await.0, 400);
    assert_eq!(ask(&router, "GET", "/vcs/diff?mode=zzz", "").await.0, 400);
    assert_eq!(std::fs::read(bench.project.path(".git/index")).unwrap(), before, "the index is unchanged");

    let patch = "--- a/README.md\n+++ b/README.md\n@@ -1,2 +1,2 @@\n # Project\n-more\n+less\n";
    let body = json!({"patch": patch}).to_string();
    assert_eq!(ask(&router, "POST", "/vcs/apply", &body).await, (200, json!({"applied": true})));
    assert_eq!(bench.project.read("README.md").unwrap(), "# Project\nless\n");
    let error = json!({
        "name": "VcsApplyError", "data": {"message": "Patch can't be applied", "reason": "not-clean"}
    });
    assert_eq!(ask(&router, "POST", "/vcs/apply", &body).await, (400, error));
    let outside = json!({"patch": "--- /dev/null\n+++ b/../evil\n@@ -0,0 +1 @@\n+x\n"}).to_string();
    assert_eq!(ask(&router, "POST", "/vcs/apply", &outside).await.0, 400);
}

#[tokio::test]
async fn of_changes_that_exceed_the_limit_those_that_fit_are_returned() {
    let bench = Bench::git().await;
    let router = bench.router(quick());
    bench.project.write("large.txt", "0123456789abcde\n".repeat(17 * 65536)).unwrap();
    for small in ["a.txt", "z.txt"] {
        bench.project.write(small, "small\n").unwrap();
    }
    let (status, listed) = ask(&router, "GET", "/vcs/status", "").await;
    assert_eq!((status, &listed[1]["additions"]), (200, &json!(17 * 65536)), "{listed}");
    for path in ["/vcs/diff?mode=git", "/vcs/diff?mode=branch"] {
        let (status, reply) = ask(&router, "GET", path, "").await;
        assert_eq!(status, 200, "{path}: {reply}");
        let reply: Vec<_> = reply
            .as_array()
            .unwrap()
            .iter()
            .map(|file| {
                let patch = file["patch"].as_str().map(|patch| patch.ends_with("+small\n"));
                (file["file"].as_str().unwrap(), file["additions"].as_u64().unwrap(), patch)
            })
            .collect();
        let expected = [("a.txt", 1, Some(true)), ("large.txt", 17 * 65536, None), ("z.txt", 1, Some(true))];
        assert_eq!(reply, expected, "{path}");
    }
    let (status, error) = ask(&router, "GET", "/vcs/diff/raw", "").await;
    let message = error["data"]["message"].as_str().unwrap_or_default();
    assert!(status == 400 && message.contains("too large") && message.contains("16 MiB"), "{error}");
}

#[tokio::test]
async fn without_a_repository_the_replies_are_empty() {
    let bench = Bench::new(Script::new()).await;
    let router = bench.router(quick());
    let none = json!({"branch": null, "default_branch": null});
    assert_eq!(ask(&router, "GET", "/vcs", "").await, (200, none));
    for path in ["/vcs/status", "/vcs/diff?mode=git", "/file/status"] {
        assert_eq!(ask(&router, "GET", path, "").await, (200, json!([])), "{path}");
    }
    assert_eq!(ask(&router, "POST", "/vcs/apply", r#"{"patch":"x"}"#).await.0, 400);
    let (status, project) = ask(&router, "POST", "/project/git/init", "").await;
    assert_eq!((status, &project["vcs"]), (200, &json!("git")));
    let (_, status) = ask(&router, "GET", "/vcs/status", "").await;
    assert_eq!(status[0]["file"], "opencode.json", "in a repository without commits all files are new");
    assert_eq!(ask(&router, "POST", "/project/git/init", "").await.0, 200, "repeating it is no error");
}
