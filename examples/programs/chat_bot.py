"""A bot for chats: each conversation has its own session, and messages of different conversations run at the same time.

    chat_bot.py < messages

This program reads lines `{"chat": "room 1", "text": "Hello"}` and prints lines `{"chat": "room 1", "text": "…"}`. Replace
`receive` and `send` with the library of your chat. Nobody can answer permission requests here, so they are rejected.
"""

import asyncio
import json
import sys

import codewright

PERMISSIONS = {"permission": {"edit": "deny", "bash": "deny"}}
MAX_CHATS = 100
MAX_TEXT = 4000


async def receive():
    """Yields messages from standard input."""
    while line := await asyncio.to_thread(sys.stdin.readline):
        if line.strip():
            yield json.loads(line)


def send(chat, text):
    print(json.dumps({"chat": chat, "text": text[:MAX_TEXT]}, ensure_ascii=False), flush=True)


class Bot:
    def __init__(self, client):
        self.client = client
        self.sessions = {}
        self.locks = {}

    async def answer(self, chat, text):
        # The messages of a conversation are answered one after the other.
        async with self.locks.setdefault(chat, asyncio.Lock()):
            try:
                if chat not in self.sessions:
                    if len(self.sessions) >= MAX_CHATS:
                        return send(chat, "I am in too many conversations. Try again later.")
                    self.sessions[chat] = (await self.client.session.create(title=f"Chat {chat}"))["id"]
                if text.strip() == "/reset":
                    await self.client.session.delete(sessionID=self.sessions.pop(chat))
                    return send(chat, "Forgotten.")
                answer = await self.client.session.prompt(sessionID=self.sessions[chat], parts=[{"type": "text", "text": text}])
                error = answer["info"].get("error")
                send(chat, f"That failed: {error['data'].get('message', error['name'])}" if error else codewright.text_of(answer))
            except codewright.CodewrightError as error:
                send(chat, f"That failed: {error}")


async def main():
    async with codewright.start_async(config=PERMISSIONS) as client:
        bot = Bot(client)
        rejecting = asyncio.create_task(client.answer_permissions(lambda request: "reject"))
        async with asyncio.TaskGroup() as answers:
            async for message in receive():
                answers.create_task(bot.answer(message["chat"], message["text"]))
        rejecting.cancel()


if __name__ == "__main__":
    asyncio.run(main())
