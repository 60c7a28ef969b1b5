"""Reading the parts of messages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any


def text_of(message: Mapping[str, Any]) -> str:
    """Returns the text of an answer. Text that the program added to a prompt (`synthetic`) is left out."""
    return "\n\n".join(part["text"] for part in message["parts"] if is_text(part)).strip()


def tool_calls(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the tool calls of an answer."""
    return [part for part in message["parts"] if part["type"] == "tool"]


def to_markdown(message: Mapping[str, Any]) -> str:
    """Returns a message as Markdown: its text, and each tool call as a line with its title or error."""
    blocks = []
    for part in message["parts"]:
        if is_text(part):
            blocks.append(part["text"])
        elif part["type"] == "file":
            blocks.append(f"- file: {code(part.get('filename') or part['mime'])}")
        elif part["type"] == "tool":
            state = part["state"]
            detail = state.get({"completed": "title", "error": "error"}.get(state["status"], "status"), "")
            blocks.append(f"- {code(part['tool'])}: {' '.join(detail.split())}")
    return "\n\n".join(blocks).strip() + "\n"


def is_text(part: Mapping[str, Any]) -> bool:
    return part["type"] == "text" and not part.get("synthetic") and not part.get("ignored")


def code(text: str) -> str:
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence} {text} {fence}" if len(fence) > 1 else f"`{text}`"
