#!/usr/bin/env bash
# Reviews the current branch against a base branch. Exits with 1 if the review has findings, with 2 if it failed.
#
#   review.sh [BASE]
set -euo pipefail
base=${1:-main}

# The exit code of `run` is 0 if the model answered. Standard output is the answer.
answer=$(
    git diff "$base...HEAD" |
        codewright run --agent plan "Review this diff. If there are no findings, reply with the single line: no findings"
) || { echo "the review failed" >&2; exit 2; }

echo "$answer"
grep -qi '^no findings' <<<"$answer"
