// A tool call in any state, and its values, which have the form that the tool gave them.
import type { ToolPart } from "../../api";

export type Values = Record<string, unknown>;

export const text = (values: Values | undefined, key: string): string =>
  typeof values?.[key] === "string" ? (values[key] as string) : "";

export const number = (values: Values | undefined, key: string): number | null =>
  typeof values?.[key] === "number" ? (values[key] as number) : null;

export const list = (values: Values | undefined, key: string): Values[] =>
  Array.isArray(values?.[key])
    ? (values[key] as Values[]).filter((one) => one !== null && typeof one === "object")
    : [];

/** A call in any state. */
export interface Call {
  part: ToolPart;
  name: string;
  input: Values;
  metadata: Values;
  output: string;
  error: string;
  isRunning: boolean;
  title: string;
  took: number;
}

export function callOf(part: ToolPart): Call {
  const { state: now } = part;
  return {
    part,
    name: part.tool,
    input: (now.input ?? {}) as Values,
    metadata: ((now.status === "pending" ? undefined : now.metadata) ?? {}) as Values,
    output: now.status === "completed" ? now.output : "",
    error: now.status === "error" ? now.error : "",
    isRunning: now.status === "pending" || now.status === "running",
    title: now.status === "completed" ? now.title : now.status === "running" ? (now.title ?? "") : "",
    took: now.status === "completed" || now.status === "error" ? now.time.end - now.time.start : 0,
  };
}
