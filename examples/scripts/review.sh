#!/usr/bin/env bash
# Reviews the current branch against a base branch. Exits with 1 if the review has findings, with 2 if it failed.
#
#   review.sh [BASE]
set -euo pipefail
base=${1:-main}

answer=$(
    git diff "$base...HEAD" |
        codewright run --format json --agent plan \
            "Review this diff. If there are no findings, reply with the single line: no findings" |
        jq -rs 'if any(.type == "error") then halt_error else map(select(.type == "text")) | last | .part.text end'
) || { echo "the review failed" >&2; exit 2; }

echo "$answer"
grep -qi '^no findings' <<<"$answer"
