"""Types of the package as a program sees them. This file is checked and not run."""

from typing import assert_type

import codewright
from codewright import types


def usage() -> None:
    with codewright.start(config={"model": "anthropic/claude-sonnet-4-5"}) as client:
        session = client.session.create(title="First")
        assert_type(session, types.Session)
        assert_type(session["id"], str)
        answer = client.session.prompt(sessionID=session["id"], parts=[{"type": "text", "text": "Hello"}])
        assert_type(codewright.text_of(answer), str)
        for event in client.turn(sessionID=session["id"], parts=[{"type": "text", "text": "Hello"}]):
            if event["type"] == "session.error":
                print(event["properties"])
        client.session.get()  # type: ignore[call-arg]
        client.permission.reply(requestID="per_1", reply="onec")  # type: ignore[arg-type]


async def usage_async() -> None:
    async with codewright.start_async() as client:
        assert_type(await client.session.list(limit=1), list[types.Session])
        async for event in client.events():
            assert_type(event, types.Event)
