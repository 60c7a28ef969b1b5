//! The script that runs plugins belongs to its sources. This is checked without Node.

use std::fs;
use std::io::Read as _;

use flate2::read::DeflateDecoder;
use ring::digest;

use crate::root;

#[test]
fn the_built_plugin_host_belongs_to_its_sources() {
    let host = root().join("plugin-host");
    let mut names: Vec<String> = crate::files(&host.join("src"), "ts")
        .into_iter()
        .map(|path| path.strip_prefix(&host).unwrap().display().to_string())
        .chain(["build.mjs".to_owned(), "package-lock.json".to_owned()])
        .collect();
    names.sort();
    let mut all = digest::Context::new(&digest::SHA256);
    for name in &names {
        all.update(format!("{name}\0").as_bytes());
        all.update(&fs::read(host.join(name)).unwrap());
        all.update(&[0]);
    }
    let expected: String = all.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    for name in ["host.mjs", "zod.cjs", "typescript.cjs", "bun.cjs"] {
        let script = fs::read_to_string(host.join("dist").join(name)).unwrap();
        let written = script.lines().find_map(|line| line.strip_prefix("// Sources: ")).unwrap_or_default();
        assert_eq!(written, expected, "run `npm ci && npm run build` in plugin-host");
        let mut unpacked = String::new();
        let compressed = fs::File::open(host.join("dist").join(format!("{name}.deflate"))).unwrap();
        DeflateDecoder::new(compressed).read_to_string(&mut unpacked).unwrap();
        assert!(unpacked == script, "run `npm ci && npm run build` in plugin-host");
    }
}
