// Types of the package as a program sees them. This file is compiled and not run.
import {
  type Event, type Session, answerPermissions, createCodewright, createCodewrightClient, defineTool, events, serveTools, textOf, turn, unwrap,
} from "../dist/index.js";

export async function usage(): Promise<void> {
  const { client, server } = await createCodewright({ config: { model: "anthropic/claude-sonnet-4-5" } });
  const session: Session = await unwrap(client.session.create({ title: "First" }));
  const result = await client.session.get({ sessionID: session.id });
  if (result.error !== undefined) {
    // @ts-expect-error: there is no data beside an error.
    result.data.id;
    return;
  }
  const title: string = result.data.title;
  const thrown = await client.session.get({ sessionID: session.id }, { throwOnError: true });
  const id: string = thrown.data.id;
  // @ts-expect-error: the parameter is missing.
  await client.session.get({});
  // @ts-expect-error: the reply is misspelt.
  await client.permission.reply({ requestID: id, reply: "onec" });
  for await (const event of turn(client, { sessionID: id, parts: [{ type: "text", text: title }] })) {
    if (event.type === "message.part.updated" && event.properties.part.type === "text") event.properties.part.text.trim();
  }
  for await (const event of events(client)) satisfiesEvent(event);
  for await (const event of (await client.event.subscribe()).stream) satisfiesEvent(event);
  await answerPermissions(client, (request) => (request.permission === "bash" ? "reject" : "once"));
  const add = defineTool<{ a: number }>({ description: "Adds", parameters: {}, execute: ({ a }) => a + 1 });
  await using _tools = await serveTools(client, { name: "numbers", tools: { add } });
  const text: string = textOf(await unwrap(client.session.prompt({ sessionID: id, parts: [] })));
  createCodewrightClient({ baseUrl: server.url, password: text });
  await server.close();
}

function satisfiesEvent(event: Event): string {
  return event.type;
}
