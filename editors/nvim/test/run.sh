#!/usr/bin/env bash
# Runs the tests of the plugin with `nvim`, or with the program in NVIM. On the stage of `editors/test/stage.sh`, all of
# them.
set -euo pipefail
plugin="$(cd "$(dirname "$0")/.." && pwd)"
export PLUGIN="$plugin"
exec "${NVIM:-nvim}" --headless -u NONE -i NONE -n --cmd "set runtimepath^=$plugin" -c "runtime plugin/codewright.lua" \
    -c "luafile $plugin/test/run.lua" </dev/null 2>&1
