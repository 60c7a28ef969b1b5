//! Reading files and directories.

use serde_json::{Value, json};

use crate::project::{Project, is_outside};

fn lines(count: usize) -> String {
    (1..=count).map(|n| format!("line {n}\n")).collect()
}

fn fixture() -> Project {
    let project = Project::new();
    project.file("t/big.txt", lines(3000));
    project.file("t/long.txt", format!("{}\nshort\n", "a".repeat(2500)));
    project.file("t/empty.txt", "");
    project.file("t/nonl.txt", "no newline at end");
    project.file("t/crlf.txt", "a\r\nb\r\nc\r\n");
    project.file("t/latin.txt", b"caf\xe9\n");
    project.file("t/bom.txt", "\u{feff}hello\nworld\n");
    project.file("t/zeros.txt", b"a\0b");
    project.file("t/utf16.txt", b"\xff\xfeh\0i\0");
    project.file("t/arch.zip", b"PK\x03\x04\x14\0\0\0");
    project.file("t/a.pdf", "%PDF-1.4\n%fake\n");
    project.file("t/pic.svg", "<svg xmlns='http://www.w3.org/2000/svg'></svg>");
    project.file("t/img.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    project
}

/// The numbered lines and the footer of a file, as in the output.
#[tokio::test]
async fn a_window_of_a_file_has_a_footer() {
    let project = fixture();
    let cases = [
        (
            json!({"filePath": "$P/t/big.txt", "offset": 2995, "limit": 3}),
            "2995: line 2995\n2996: line 2996\n2997: line 2997",
            "(Showing lines 2995-2997 of 3000. Use offset=2998 to continue.)",
        ),
        (
            json!({"filePath": "$P/t/big.txt", "offset": 2999}),
            "2999: line 2999\n3000: line 3000",
            "(End of file - total 3000 lines)",
        ),
        (
            json!({"filePath": "$P/t/big.txt", "offset": 0, "limit": 1}),
            "1: line 1",
            "(Showing lines 1-1 of 3000. Use offset=2 to continue.)",
        ),
        (
            json!({"filePath": "$P/t/big.txt", "limit": 0}),
            "",
            "(Showing lines 1-0 of 3000. Use offset=1 to continue.)",
        ),
        (json!({"filePath": "$P/t/empty.txt"}), "", "(End of file - total 0 lines)"),
        (json!({"filePath": "t/nonl.txt"}), "1: no newline at end", "(End of file - total 1 lines)"),
        (json!({"filePath": "$P/t/crlf.txt"}), "1: a\n2: b\n3: c", "(End of file - total 3 lines)"),
        (json!({"filePath": "$P/t/latin.txt"}), "1: caf\u{fffd}", "(End of file - total 1 lines)"),
        (json!({"filePath": "$P/t/bom.txt"}), "1: hello\n2: world", "(End of file - total 2 lines)"),
        (
            json!({"filePath": "$P/t/pic.svg"}),
            "1: <svg xmlns='http://www.w3.org/2000/svg'></svg>",
            "(End of file - total 1 lines)",
        ),
    ];
    for (input, body, footer) in cases {
        let title = input["filePath"].as_str().expect("a path").trim_start_matches("$P/").to_owned();
        let output = project.call("read", input).await.expect(&title);
        let expected =
            format!("<path>$P/{title}</path>\n<type>file</type>\n<content>\n{body}\n\n{footer}\n</content>");
        assert_eq!(project.plain(&output.output), expected);
        assert_eq!(output.title, title);
    }
}

#[tokio::test]
async fn the_metadata_describes_the_output() {
    let project = fixture();
    let output = project.call("read", json!({"filePath": "t/big.txt", "limit": 2})).await.expect("read");
    let expected = json!({
        "preview": "line 1\nline 2", "truncated": true, "loaded": [],
        "display": {
            "type": "file", "path": project.at("$P/t/big.txt"), "text": "line 1\nline 2",
            "lineStart": 1, "lineEnd": 2, "totalLines": 3000, "truncated": true,
        },
    });
    assert_eq!(Value::from(output.metadata).to_string(), expected.to_string());
    let output = project.call("read", json!({"filePath": "t/empty.txt"})).await.expect("read");
    let display = &output.metadata["display"];
    assert_eq!(
        (&display["lineStart"], &display["lineEnd"], &display["totalLines"]),
        (&json!(1), &json!(0), &json!(0))
    );
}

#[tokio::test]
async fn two_thousand_lines_or_fifty_kilobytes_are_the_default() {
    let project = fixture();
    let output = project.call("read", json!({"filePath": "t/big.txt"})).await.expect("read");
    assert!(output.output.ends_with(
        "\n2000: line 2000\n\n(Showing lines 1-2000 of 3000. Use offset=2001 to continue.)\n</content>"
    ));
    assert_eq!(output.metadata["preview"].as_str().expect("text").lines().count(), 20);
    let huge: String = (1..=1000).map(|n| format!("{} {n}\n", "x".repeat(100))).collect();
    project.file("t/huge.txt", huge);
    let output = project.call("read", json!({"filePath": "t/huge.txt"})).await.expect("read");
    assert!(output.output.ends_with(
        "\n\n(Output capped at 50 KB. Showing lines 1-488. Use offset=489 to continue.)\n</content>"
    ));
    assert_eq!(output.metadata["display"]["text"].as_str().map(str::len), Some(51_131));
    assert_eq!(output.metadata["display"]["totalLines"], 489);
}

#[tokio::test]
async fn a_long_line_is_truncated() {
    let project = fixture();
    let output = project.call("read", json!({"filePath": "t/long.txt"})).await.expect("read");
    let cut = format!("1: {}... (line truncated to 2000 chars)\n2: short\n", "a".repeat(2000));
    assert!(output.output.contains(&cut));
    assert_eq!(output.metadata["truncated"], false);
}

#[tokio::test]
async fn unreadable_files_are_errors() {
    let project = fixture();
    let cases = [
        (
            json!({"filePath": "$P/t/big.txt", "offset": 5000}),
            "Offset 5000 is out of range for this file (3000 lines)",
        ),
        (json!({"filePath": "$P/t/zeros.txt"}), "Cannot read binary file: $P/t/zeros.txt"),
        (json!({"filePath": "$P/t/utf16.txt"}), "Cannot read binary file: $P/t/utf16.txt"),
        (json!({"filePath": "$P/t/arch.zip"}), "Cannot read binary file: $P/t/arch.zip"),
        (
            json!({"filePath": "$P/t/big.tx"}),
            "File not found: $P/t/big.tx\n\nDid you mean one of these?\n$P/t/big.txt",
        ),
        (json!({"filePath": "$P/t/nothinglike"}), "File not found: $P/t/nothinglike"),
        (json!({"filePath": "$P/no/where"}), "File not found: $P/no/where"),
        (json!({"filePath": "/dev/zero"}), "Not a regular file: /dev/zero"),
    ];
    for (input, expected) in cases {
        assert_eq!(project.error("read", input).await, expected);
    }
}

#[tokio::test]
async fn pictures_and_documents_are_attached() {
    let project = fixture();
    let output = project.call("read", json!({"filePath": "t/a.pdf"})).await.expect("read");
    assert_eq!(output.output, "PDF read successfully");
    assert_eq!(output.attachments[0].url, "data:application/pdf;base64,JVBERi0xLjQKJWZha2UK");
    let expected = json!({"preview": "PDF read successfully", "truncated": false, "loaded": []});
    assert_eq!(Value::from(output.metadata), expected);
    let output = project.call("read", json!({"filePath": "t/img.png"})).await.expect("read");
    assert_eq!((output.output.as_str(), output.title.as_str()), ("Image read successfully", "t/img.png"));
    assert_eq!(output.attachments[0].mime, "image/png");
}

#[tokio::test]
async fn a_directory_is_listed() {
    let project = Project::new();
    project.file("d/.hidden", "");
    project.file("d/B.txt", "");
    project.file("d/a.txt", "");
    project.file("d/sub/x", "");
    let output = project.call("read", json!({"filePath": "d"})).await.expect("read");
    let expected = "<path>$P/d</path>\n<type>directory</type>\n<entries>\n.hidden\na.txt\nB.txt\nsub/\n\n(4 entries)\n</entries>";
    assert_eq!(project.plain(&output.output), expected);
    let output = project.call("read", json!({"filePath": "d", "offset": 2, "limit": 2})).await.expect("read");
    assert!(output.output.contains(
        "a.txt\nB.txt\n\n(Showing 2 of 4 entries. Use 'offset' parameter to read beyond entry 4)\n"
    ));
    let display = json!({
        "type": "directory", "path": project.at("$P/d"), "entries": ["a.txt", "B.txt"],
        "offset": 2, "totalEntries": 4, "truncated": true,
    });
    assert_eq!(output.metadata["display"].to_string(), display.to_string());
}

#[tokio::test]
async fn the_target_of_a_link_needs_permission() {
    let project = fixture();
    let asks = project.asks("read", json!({"filePath": "t/big.txt"})).await.expect("asks");
    assert_eq!(
        (asks.len(), asks[0].permission.as_str(), &asks[0].patterns[..]),
        (1, "read", &["t/big.txt".to_owned()][..])
    );
    assert_eq!(asks[0].always, ["*"]);
    project.file(".env", "SECRET=1");
    std::os::unix::fs::symlink(project.root.join(".env"), project.root.join("notes")).expect("linked");
    let asks = project.asks("read", json!({"filePath": "notes"})).await.expect("asks");
    assert_eq!(asks[0].patterns, ["notes", ".env"]);
}

#[tokio::test]
async fn directories_outside_need_permission() {
    let project = Project::new();
    let outside = project.root.parent().expect("a parent").join("outside");
    std::fs::create_dir(&outside).expect("made");
    std::fs::write(outside.join("x.txt"), "x").expect("written");
    std::os::unix::fs::symlink(&outside, project.root.join("link")).expect("linked");
    std::os::unix::fs::symlink(outside.join("later"), project.root.join("dangling")).expect("linked");
    for path in ["../outside/x.txt", "link/x.txt", "link/new/../x.txt", "dangling", "link"] {
        let asks = project.asks("read", json!({"filePath": path})).await.expect("asks");
        assert!(is_outside(&asks[0], &outside), "{path}: {asks:?}");
        assert_eq!(asks[0].always, asks[0].patterns);
        assert_eq!(asks[0].metadata["parentDir"], outside.to_str().expect("UTF-8"));
        assert_eq!(asks[1].permission, "read");
    }
}

#[tokio::test]
async fn instructions_near_a_file_are_added_once_the_nearest_first() {
    let project = Project::new();
    project.file("AGENTS.md", "root");
    project.file("a/CLAUDE.md", "outer\n");
    project.file("a/b/AGENTS.md", "near");
    project.file("a/b/CLAUDE.md", "beside");
    project.file("a/b/x.txt", "x\n");
    project.file("a/y.txt", "y\n");
    let output = project.call("read", json!({"filePath": "a/b/x.txt"})).await.expect("read");
    let expected = "</content>\n\n<system-reminder>\nInstructions from: $P/a/b/AGENTS.md\nnear\n\nInstructions from: \
                    $P/a/CLAUDE.md\nouter\n</system-reminder>";
    assert!(project.plain(&output.output).ends_with(expected), "{}", output.output);
    let loaded = [project.at("$P/a/b/AGENTS.md"), project.at("$P/a/CLAUDE.md")];
    assert_eq!(output.metadata["loaded"], json!(loaded));
    for path in ["a/b/x.txt", "a/y.txt", "a/b/AGENTS.md", "AGENTS.md"] {
        let output = project.call("read", json!({"filePath": path})).await.expect("read");
        assert!(!output.output.contains("system-reminder"), "{path}: {}", output.output);
        assert_eq!(output.metadata["loaded"], json!([]));
    }
}

#[cfg(unix)]
#[tokio::test]
async fn instructions_outside_the_project_or_without_text_are_ignored() {
    let project = Project::new();
    let outside = project.root.parent().expect("a parent").join("secret.md");
    std::fs::write(&outside, "secret").expect("written");
    for folder in ["link", "large", "bytes", "empty"] {
        project.file(&format!("{folder}/x.txt"), "x");
    }
    std::os::unix::fs::symlink(&outside, project.root.join("link/AGENTS.md")).expect("linked");
    project.file("large/AGENTS.md", "x".repeat(70_000));
    project.file("bytes/AGENTS.md", [0xff, 0xfe]);
    project.file("empty/AGENTS.md", " \n");
    for folder in ["link", "large", "bytes", "empty"] {
        let output =
            project.call("read", json!({"filePath": format!("{folder}/x.txt")})).await.expect("read");
        assert_eq!(output.metadata["loaded"], json!([]), "{folder}");
    }
}
