"""Evaluates a prompt on tasks: how many answers are right, and what they cost.

    evaluate.py PROMPT.txt TASKS.json [--model provider/model] [--minimum 0.8]

TASKS.json is a list of `{"input": "…", "expect": "a regular expression"}`. `{input}` in the prompt is replaced. Every task
has a session of its own, in an empty directory and without tools. Exit with 1 below the minimum.
"""

import argparse
import asyncio
import json
import re
import sys
import tempfile
from pathlib import Path

import codewright

AT_ONCE = 4


async def run(client, limit, prompt, task, model):
    async with limit:
        session = await client.session.create(title="Evaluation")
        text = prompt.replace("{input}", task["input"])
        try:
            answer = await client.session.prompt(
                sessionID=session["id"], model=model, tools={"*": False}, parts=[{"type": "text", "text": text}]
            )
        except codewright.CodewrightError as error:
            return {"ok": False, "text": str(error), "cost": 0.0}
        info, text = answer["info"], codewright.text_of(answer)
        return {"ok": re.search(task["expect"], text) is not None, "text": text, "cost": info["cost"]}


async def main():
    parser = argparse.ArgumentParser(description="Evaluate a prompt on tasks")
    parser.add_argument("prompt", type=Path)
    parser.add_argument("tasks", type=Path)
    parser.add_argument("--model", help="provider/model")
    parser.add_argument("--minimum", type=float, default=0.8, help="the share of right answers that is needed")
    options = parser.parse_args()
    prompt, tasks = options.prompt.read_text(), json.loads(options.tasks.read_text())
    model = None
    if options.model is not None:
        provider, _, name = options.model.partition("/")
        model = {"providerID": provider, "modelID": name}
    with tempfile.TemporaryDirectory() as directory:
        async with codewright.start_async(directory=directory) as client:
            limit = asyncio.Semaphore(AT_ONCE)
            results = await asyncio.gather(*(run(client, limit, prompt, task, model) for task in tasks))
    for task, result in zip(tasks, results):
        shown = " ".join(result["text"].split())[:60]
        print(f"{'ok  ' if result['ok'] else 'FAIL'}  {task['input'][:30]:30}  {shown}")
    share = sum(result["ok"] for result in results) / len(results)
    print(f"{share:.0%} of {len(results)} for ${sum(result['cost'] for result in results):.4f}")
    return 0 if share >= options.minimum else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
