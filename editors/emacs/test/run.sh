#!/usr/bin/env bash
# Compiles the package without warnings, and runs its tests with `emacs`, or with the program in EMACS. On the stage of
# `editors/test/stage.sh`, all of them.
set -euo pipefail
package="$(cd "$(dirname "$0")/.." && pwd)"
emacs="${EMACS:-emacs}"
build="$(mktemp -d)"
trap 'rm -rf "$build"' EXIT
cp "$package"/*.el "$package"/test/codewright-test.el "$build"
cd "$build"
"$emacs" -Q --batch -L . --eval '(setq byte-compile-error-on-warn t)' -f batch-byte-compile codewright*.el </dev/null
"$emacs" -Q --batch -L . -l codewright-test.elc -f ert-run-tests-batch-and-exit </dev/null 2>&1
