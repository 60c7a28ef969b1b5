#!/usr/bin/env bash
# Tests the packages as they are published: packed, and installed into empty projects. `.ci/sdk` calls it.
#
#   test.sh PART…      typescript, python, plugin, conformance, examples
#
# Needs `npm ci` and `npm run build` in the directories, and setuptools, wheel and mypy in CODEWRIGHT_CHECK_PACKAGES.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
root="$(cd "$here/.." && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
# The npm client asks no registry about what it has.
export npm_config_audit=false npm_config_fund=false npm_config_update_notifier=false

# Packs a package and prints the archive.
pack() {
    (cd "$here/$1" && npm pack --silent --pack-destination "$work" | sed "s|^|$work/|")
}

stage() {
    CODEWRIGHT_STAGE_SCRIPT="$1" timeout 240 "$root/editors/test/stage.sh" "${@:2}" </dev/null
}

# An empty project with the package for TypeScript and its type checker.
project() {
    mkdir -p "$work/project"
    [ -e "$work/project/package.json" ] && return
    echo '{"name":"empty","private":true,"type":"module"}' >"$work/project/package.json"
    (cd "$work/project" && timeout 60 npm install --silent --offline --ignore-scripts "$(pack typescript)")
}

# An empty directory with the package for Python.
wheel() {
    [ -d "$work/python" ] && return
    # A copy, because setuptools writes into the sources.
    cp -r "$here/python" "$work/source"
    cmp "$root/LICENSE" "$work/source/LICENSE"
    PYTHONPATH="${CODEWRIGHT_CHECK_PACKAGES:-}" timeout 100 python3 -m pip wheel -q --no-deps --no-build-isolation \
        --disable-pip-version-check -w "$work/wheels" "$work/source" >/dev/null
    timeout 60 python3 -m pip install -q --no-deps --no-index --disable-pip-version-check --root-user-action=ignore \
        --target "$work/python" "$work"/wheels/*.whl
}

typescript() {
    project
    local files
    files="$(tar -tzf "$work"/codewright-sdk-*.tgz)"
    for needed in package/LICENSE package/README.md package/dist/index.js package/dist/gen/types.gen.d.ts; do
        grep -qx "$needed" <<<"$files" || { echo "the package lacks $needed"; return 1; }
    done
    if grep -vE '^package/(LICENSE|README.md|package.json|dist/.+\.(d\.ts|js))$' <<<"$files"; then
        echo "these files do not belong into the package" && return 1
    fi
    (cd "$here/typescript" && npm run --silent check && node test/parity.mjs)
    stage "$here/conformance/script.json" env CODEWRIGHT_SDK="$work/project/node_modules/@codewright/sdk/dist/index.js" \
        node --test --test-concurrency=1 "$here/typescript/test/http.test.mjs" "$here/typescript/test/sdk.test.mjs"
}

python() {
    wheel
    for needed in py.typed types.py _sync.pyi _async.pyi; do
        [ -e "$work/python/codewright/$needed" ] || { echo "the wheel lacks $needed"; return 1; }
    done
    if PYTHONPATH="${CODEWRIGHT_CHECK_PACKAGES:-}" python3 -m mypy --version >/dev/null 2>&1; then
        (cd "$here/python" && MYPYPATH=src PYTHONPATH="${CODEWRIGHT_CHECK_PACKAGES:-}" \
            timeout 100 python3 -m mypy --strict --cache-dir "$work/mypy" src/codewright tests/usage.py)
    else
        echo "skipped: mypy is not installed, so the types of the Python package are not checked"
    fi
    stage "$here/conformance/script.json" env PYTHONPATH="$work/python" python3 -W error -m unittest "$here/python/tests/test_http.py" "$here/python/tests/test_sdk.py"
}

plugin() {
    (cd "$here/plugin" && npm run --silent check && node --test test/*.test.mjs)
    # The template works in an empty project with the packed package.
    local archive
    archive="$(pack plugin)"
    local files
    files="$(tar -tzf "$archive")"
    for needed in LICENSE README.md dist/index.js dist/test.d.ts host/host.mjs host/LICENSES.md template/src/index.ts; do
        grep -qx "package/$needed" <<<"$files" || { echo "the package lacks $needed"; return 1; }
    done
    cp -r "$here/plugin/template" "$work/template"
    # Its other packages are those of this directory.
    cp -r "$here/plugin/node_modules" "$work/template/node_modules"
    rm -rf "$work/template/node_modules/@opencode-ai/plugin"
    mkdir -p "$work/template/node_modules/@codewright/plugin"
    tar -xzf "$archive" -C "$work/template/node_modules/@codewright/plugin" --strip-components=1
    (cd "$work/template" && npm run --silent check && npm test --silent)
}

conformance() {
    project
    wheel
    CODEWRIGHT_SDK="$work/project/node_modules/@codewright/sdk/dist/index.js" CODEWRIGHT_PYTHON="$work/python" \
        timeout 240 python3 "$here/conformance/run.py"
}

examples() {
    command -v go >/dev/null || echo "skipped: go is not installed, so the tool in Go is not run"
    project
    wheel
    stage "$root/examples/programs/script.json" env CODEWRIGHT_PROJECT="$work/project" PYTHONPATH="$work/python" \
        python3 -W error -m unittest "$root/examples/programs/test_examples.py"
}

for part in "$@"; do
    "$part"
done
