//! The container image: an archive in the layout of the Open Container Initiative, made without a container engine.
//!
//! `podman load`, `skopeo copy oci-archive:…` and `docker load` read it. The image has one layer with the static program,
//! which has the certificates of browsers in it, and nothing else: projects that need a compiler copy the program into their
//! own image.

use anyhow::Result;
use serde_json::{Value, json};

use super::archive::{Entry, gzip, tar};
use super::contents::Contents;
use super::target::Target;
use super::{Release, digest};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
/// The path of the program in the image.
const PROGRAM: &str = "usr/bin/codewright";

/// Writes the image of a system with a static program.
pub(super) fn write(release: &Release, target: &Target, contents: &Contents) -> Result<()> {
    let Some((processor, _)) = target.linux.filter(|_| target.triple.ends_with("-musl")) else {
        return Ok(());
    };
    let name = format!("codewright-{}-{processor}.oci.tar", release.version);
    release.write(&name, &archive(release, processor, &layer(contents))?)?;
    Ok(())
}

/// The files of the layer.
pub(super) fn layer(contents: &Contents) -> Vec<Entry> {
    vec![
        Entry::directory("etc", 0o755),
        Entry::file(
            "etc/passwd",
            "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
        ),
        Entry::file("etc/group", "root:x:0:\nnobody:x:65534:\n"),
        Entry::directory("root", 0o700),
        Entry::directory("tmp", 0o1777),
        Entry::directory("usr", 0o755),
        Entry::directory("usr/bin", 0o755),
        Entry::program(PROGRAM, contents.program.clone()),
        Entry::directory("usr/share", 0o755),
        Entry::directory("usr/share/doc", 0o755),
        Entry::file("usr/share/doc/codewright", [&*contents.licence, b"\n", &contents.licences].concat()),
        // Any user of the container can have its project there.
        Entry::directory("work", 0o1777),
    ]
}

/// The archive with the layer, its description and the index.
pub(super) fn archive(release: &Release, processor: &str, layer: &[Entry]) -> Result<Vec<u8>> {
    let plain = tar(layer, release.time)?;
    let compressed = gzip(&plain)?;
    let config = json!({
        "architecture": processor,
        "os": "linux",
        "created": release.date,
        "config": {
            "Entrypoint": [format!("/{PROGRAM}")],
            // The container is the sandbox.
            "Env": ["HOME=/root", "PATH=/usr/bin:/bin", "CODEWRIGHT_SANDBOX_OUTER=1"],
            "WorkingDir": "/work",
            "Labels": {
                "org.opencontainers.image.version": release.version,
                "org.opencontainers.image.revision": release.commit,
                "org.opencontainers.image.licenses": "MIT",
            },
        },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{}", digest(&plain))] },
        "history": [{ "created": release.date, "created_by": "cargo xtask dist" }],
    });
    let config = serde_json::to_vec(&config)?;
    let manifest = serde_json::to_vec(&json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": descriptor(CONFIG, &config),
        "layers": [descriptor(LAYER, &compressed)],
    }))?;
    let mut described = descriptor(MANIFEST, &manifest);
    described["platform"] = json!({ "architecture": processor, "os": "linux" });
    described["annotations"] = json!({ "org.opencontainers.image.ref.name": release.version });
    let index =
        serde_json::to_vec(&json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [described] }))?;
    let blob = |bytes: Vec<u8>| Entry::file(format!("blobs/sha256/{}", digest(&bytes)), bytes);
    let files = [
        Entry::file("oci-layout", r#"{"imageLayoutVersion":"1.0.0"}"#),
        Entry::file("index.json", index),
        blob(config),
        blob(manifest),
        blob(compressed),
    ];
    tar(&files, release.time)
}

fn descriptor(kind: &str, bytes: &[u8]) -> Value {
    json!({ "mediaType": kind, "digest": format!("sha256:{}", digest(bytes)), "size": bytes.len() })
}
