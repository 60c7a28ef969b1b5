// @vitest-environment happy-dom
import { expect, test } from "vitest";
import type { Event } from "../src/api";
import { foreignServer } from "../src/api/server";
import { address } from "../src/api/client";
import { Frames } from "../src/api/stream";
import { format, parse } from "../src/app/router";
import { coalesce, overlap } from "../src/state/transcript";
import { adjusted, contrast, parseTheme } from "../src/state/themes";
import { PALETTES } from "../src/state/palettes.gen";
import { ago, count, dayGroup, duration, money } from "../src/text/format";
import { filter, score } from "../src/ui/fuzzy";
import { completionAt } from "../src/views/session/completion-at";

const delta = (partID: string, text: string): Event => ({
  id: "evt_1",
  type: "message.part.delta",
  properties: { sessionID: "ses_1", messageID: "msg_1", partID, field: "text", delta: text },
});

test("deltas of a part are joined, and the order of other events stays", () => {
  const idle: Event = { id: "evt_2", type: "session.idle", properties: { sessionID: "ses_1" } };
  const part: Event = {
    id: "evt_3",
    type: "message.part.updated",
    properties: {
      sessionID: "ses_1",
      time: 1,
      part: { id: "prt_a", messageID: "msg_1", sessionID: "ses_1", type: "text", text: "all" },
    },
  };
  const joined = coalesce([
    delta("prt_a", "a"),
    delta("prt_b", "x"),
    delta("prt_a", "b"),
    part,
    delta("prt_a", "c"),
    idle,
  ]);
  expect(joined.map((event) => (event.type === "message.part.delta" ? event.properties.delta : event.type))).toEqual([
    "ab",
    "x",
    "message.part.updated",
    "c",
    "session.idle",
  ]);
});

test("joining changes no event of its input", () => {
  const first = delta("prt_a", "a");
  coalesce([first, delta("prt_a", "b")]);
  expect(first.type === "message.part.delta" && first.properties.delta).toBe("a");
});

test("the overlap of a text and its deltas is the longest one", () => {
  for (const [text, added, expected] of [
    ["abc", "cde", 1],
    ["abcabc", "abcd", 3],
    ["abc", "xyz", 0],
    ["", "abc", 0],
    ["abc", "", 0],
    ["abc", "abc", 3],
  ] as const) {
    expect(overlap(text, added), `${text} ${added}`).toBe(expected);
  }
});

test("a stream is cut into frames wherever its pieces end", () => {
  const text = 'id: 1\ndata: {"a":1}\n\n: comment\n\ndata: one\ndata: two\n\n';
  for (let at = 0; at <= text.length; at += 1) {
    const frames = new Frames();
    expect([...frames.push(text.slice(0, at)), ...frames.push(text.slice(at))], `${at}`).toEqual([
      '{"a":1}',
      "one\ntwo",
    ]);
  }
});

test("addresses of views are read back", () => {
  for (const route of [
    { name: "home" },
    { name: "new", directory: "/a b/ü" },
    { name: "session", id: "ses_1", panel: "changes", message: "msg_1" },
    { name: "session", id: "ses_1", panel: null, message: null },
    { name: "settings", page: "providers" },
    { name: "shortcuts" },
    { name: "gallery" },
  ] as const)
    expect(parse(format(route))).toEqual(route);
  for (const odd of ["#/session/../x", "#/session/%E0%A4%A", "#/nothing", "#", "", "#/session/<b>"])
    expect(parse(odd)).toEqual({ name: "home" });
});

test("only plain addresses of servers are used", () => {
  const named = (server: string) =>
    foreignServer(new URL(`http://localhost/?server=${encodeURIComponent(server)}`))?.href ?? null;
  expect(named("localhost:5000")).toBe("http://localhost:5000/");
  expect(named("https://code.example/path")).toBe("https://code.example/path/");
  for (const bad of ["javascript:x", "ftp://a", "http://user:secret@a", "http://", ""])
    expect(named(bad), bad).toBeNull();
});

test("parts of a path are encoded", () => {
  expect(
    address("GET /session/{sessionID}", {
      path: { sessionID: "a/../b?c" },
      query: { directory: "/a&b", limit: undefined },
    }).href,
  ).toMatch(/\/session\/a%2F\.\.%2Fb%3Fc\?directory=%2Fa%26b$/);
});

test("all palettes are readable", () => {
  for (const [name, { dark, light }] of Object.entries(PALETTES)) {
    for (const palette of [adjusted(dark), adjusted(light)]) {
      for (const at of [4, 5, 6, 7, 8, 9, 10, 11, 12])
        expect(contrast(palette[at] ?? palette[2], palette[2]), `${name} ${at}`).toBeGreaterThanOrEqual(4.5);
    }
  }
});

test("a theme file is resolved through its definitions", () => {
  const theme = parseTheme({
    defs: { ink: "#123456", deep: "ink" },
    theme: { text: { dark: "#ffffff", light: "deep" }, background: "#000000" },
  });
  expect([theme?.light[5], theme?.dark[5], theme?.dark[0]]).toEqual(["#123456", "#ffffff", "#000000"]);
  for (const bad of [
    null,
    1,
    {},
    { theme: null },
    { theme: { text: "loop" }, defs: { loop: "loop" } },
    { theme: { text: "url(x)" } },
  ])
    expect(parseTheme(bad)).toBeNull();
});

test("times and numbers are short", () => {
  const now = 1_000_000_000_000;
  expect([
    ago(now - 5_000, now),
    ago(now + 9e9, now),
    ago(now - 3 * 3_600_000, now),
    ago(now - 2 * 86_400_000, now),
  ]).toEqual(["now", "now", "3h", "2d"]);
  expect([duration(900), duration(80_000), duration(3_700_000)]).toEqual(["1s", "1m 20s", "1h 1m"]);
  expect([count(999), count(1_500), count(250_000), count(2_000_000)]).toEqual(["999", "1.5k", "250k", "2.0M"]);
  expect([money(0), money(0.001), money(1.234)]).toEqual(["$0", "<$0.01", "$1.23"]);
  expect([dayGroup(now, now), dayGroup(now - 20 * 86_400_000, now)]).toEqual(["today", "earlier"]);
});

test("the search prefers beginnings of words", () => {
  const names = ["src/summary.rs", "src/sum.rs", "docs/assume.md"];
  expect(filter(names, "sum", (name) => name)[0]).toBe("src/sum.rs");
  expect(filter(names, "", (name) => name)).toEqual(names);
  expect(score("abc", "x")).toBeNull();
  expect(score("new session", "ns")).not.toBeNull();
});

test("completion begins after an at sign or with a slash", () => {
  expect(completionAt("look @src", 9)).toEqual({ kind: "@", query: "src", start: 5, end: 9 });
  expect(completionAt("/mod", 4)).toEqual({ kind: "/", query: "mod", start: 0, end: 4 });
  for (const [text, at] of [
    ["a@b", 3],
    ["say /x", 6],
    ["look @a b", 9],
    ["/a b", 4],
  ] as const)
    expect(completionAt(text, at), text).toBeNull();
});
