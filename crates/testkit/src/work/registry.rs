//! Local registries, each with one package `tiny`.

use anyhow::Result;

use crate::file_server::FileServer;

/// Why a registry cannot be reached by a name.
pub(super) const NO_NAME: &str = "the name of this machine has no loopback address";

/// A kind of registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Registry {
    Cargo,
    Npm,
    Pip,
    Go,
}

const CARGO: &str = r#"mkdir -p tiny-1.0.0/src crates index/ti/ny
printf '[package]\nname = "tiny"\nversion = "1.0.0"\nedition = "2021"\n' > tiny-1.0.0/Cargo.toml
echo 'pub fn two() -> i32 { 2 }' > tiny-1.0.0/src/lib.rs
tar czf crates/tiny-1.0.0.crate tiny-1.0.0
sum=$(sha256sum crates/tiny-1.0.0.crate | cut -d' ' -f1)
echo '{"dl": "http://HOST/crates/{crate}-{version}.crate"}' > index/config.json
echo "{\"name\":\"tiny\",\"vers\":\"1.0.0\",\"deps\":[],\"cksum\":\"$sum\",\"features\":{},\"yanked\":false}" > index/ti/ny/tiny
"#;
const NPM: &str = r#"mkdir -p package tiny
echo '{"name": "tiny", "version": "1.0.0", "main": "index.js"}' > package/package.json
echo 'exports.two = () => 2;' > package/index.js
tar czf tiny.tgz package
cat > tiny/index << 'END'
{"name": "tiny", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0":
{"name": "tiny", "version": "1.0.0", "main": "index.js", "dist": {"tarball": "http://HOST/tiny.tgz"}}}}
END
"#;
const PIP: &str = r#"mkdir -p simple/tiny
python3 - << 'END'
import zipfile
info = 'tiny-1.0.dist-info/'
with zipfile.ZipFile('tiny-1.0-py3-none-any.whl', 'w') as wheel:
    wheel.writestr('tiny.py', 'two = 2')
    wheel.writestr(info + 'METADATA', 'Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n')
    wheel.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
    wheel.writestr(info + 'RECORD', '')
END
echo '<a href="/tiny-1.0-py3-none-any.whl">tiny-1.0-py3-none-any.whl</a>' > simple/tiny/index
"#;
const GO: &str = r#"mkdir -p example.com/tiny/@v && cd example.com/tiny/@v
echo v1.0.0 > list
echo '{"Version": "v1.0.0", "Time": "2024-01-01T00:00:00Z"}' > v1.0.0.info
echo 'module example.com/tiny' > v1.0.0.mod
python3 - << 'END'
import zipfile
with zipfile.ZipFile('v1.0.0.zip', 'w') as archive:
    archive.writestr('example.com/tiny@v1.0.0/go.mod', 'module example.com/tiny\n')
    archive.writestr('example.com/tiny@v1.0.0/tiny.go', 'package tiny\n\nfunc Two() int { return 2 }\n')
END
"#;

/// Starts a registry. `None` if it needs a name that this machine does not have.
pub(super) fn start(registry: Registry) -> Result<Option<FileServer>> {
    let (script, server) = match registry {
        Registry::Cargo => (CARGO, Some(FileServer::start()?)),
        Registry::Npm => (NPM, Some(FileServer::start()?)),
        Registry::Pip => (PIP, Some(FileServer::start()?)),
        // Go uses no proxy for loopback addresses.
        Registry::Go => (GO, FileServer::named()?),
    };
    let Some(server) = server else { return Ok(None) };
    server.run(&script.replace("HOST", &server.host()))?;
    Ok(Some(server))
}
