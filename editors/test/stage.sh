#!/usr/bin/env bash
# Runs a command on a stage: a project with its own home directory, whose configuration names a scripted model.
#
#   stage.sh COMMAND…
#
# The command gets CODEWRIGHT_BIN (the program) and CODEWRIGHT_STAGE (the project, a git repository). Exits with 77 if a
# program is missing. CODEWRIGHT_BIN and CODEWRIGHT_XTASK name other builds than those of `cargo build`, and
# CODEWRIGHT_STAGE_SCRIPT another script of the model.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
root="$(cd "$here/../.." && pwd)"
target="${CARGO_TARGET_DIR:-$root/target}/debug"
program="${CODEWRIGHT_BIN:-$target/codewright}"
xtask="${CODEWRIGHT_XTASK:-$target/xtask}"
for needed in "$program" "$xtask"; do
    if [ ! -x "$needed" ]; then
        echo "skipped: $needed is missing; build it, or set CODEWRIGHT_BIN and CODEWRIGHT_XTASK"
        exit 77
    fi
done

stage="$(mktemp -d)"
stage="$(cd "$stage" && pwd -P)"
model=
end() {
    if [ -n "$model" ]; then
        kill "$model" 2>/dev/null || true
        wait "$model" 2>/dev/null || true
    fi
    rm -rf "$stage"
}
trap end EXIT

"$xtask" scripted --port 0 --script "${CODEWRIGHT_STAGE_SCRIPT:-$here/script.json}" >"$stage/model.txt" 2>&1 &
model=$!
url=
for _ in $(seq 300); do
    url="$(grep -oE 'http://127\.0\.0\.1:[0-9]+' "$stage/model.txt" | head -n 1 || true)"
    [ -n "$url" ] && break
    kill -0 "$model" 2>/dev/null || break
    sleep 0.1
done
if [ -z "$url" ]; then
    echo "the scripted model did not start:" && cat "$stage/model.txt"
    exit 1
fi

home="$stage/home"
project="$stage/project"
mkdir -p "$home/.config/opencode" "$home/.run" "$project/src"
chmod 700 "$home/.run"
cat >"$home/.config/opencode/opencode.json" <<JSON
{
  "model": "mock/plain-model",
  "permission": { "bash": "ask" },
  "provider": {
    "mock": {
      "npm": "@ai-sdk/openai-compatible",
      "name": "Mock",
      "options": { "baseURL": "$url/v1", "apiKey": "sk-mock" },
      "models": {
        "plain-model": {
          "name": "Plain",
          "limit": { "context": 200000, "output": 32000 },
          "cost": { "input": 3, "output": 15 }
        },
        "other-model": { "name": "Other", "limit": { "context": 100000, "output": 32000 } }
      }
    }
  }
}
JSON
printf 'def add(a, b):\n    return a + b\n\n\ndef minus(a, b):\n    return a - b\n' >"$project/src/util.py"
export HOME="$home" XDG_CONFIG_HOME="$home/.config" XDG_DATA_HOME="$home/.local/share"
export XDG_STATE_HOME="$home/.local/state" XDG_CACHE_HOME="$home/.cache" XDG_RUNTIME_DIR="$home/.run"
export CODEWRIGHT_TRUST=all CODEWRIGHT_SANDBOX_OUTER=1 GIT_CONFIG_NOSYSTEM=1
unset OPENCODE_CONFIG OPENCODE_CONFIG_CONTENT CODEWRIGHT_CONFIG CODEWRIGHT_CONFIG_CONTENT
unset OPENCODE_SERVER_PASSWORD CODEWRIGHT_EDITOR
git -C "$project" init --quiet --initial-branch=main
git -C "$project" -c user.name=Tester -c user.email=tester@localhost add --all
git -C "$project" -c user.name=Tester -c user.email=tester@localhost commit --quiet --message=First
export CODEWRIGHT_BIN="$program" CODEWRIGHT_STAGE="$project" CODEWRIGHT_SCRIPT_MODEL="$url"
"$@"
