/** How many calls one client has under way. */
import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { expect, test } from "vitest";
import { MOST_CALLS } from "../src/limits.ts";
import type { SandboxesOf } from "../src/sandboxes-of.ts";
import { tool } from "../src/tools/define.ts";

test("a client has a bounded number, however many a request has, and others have theirs", async () => {
  const waiting: (() => void)[] = [];
  const run = () => new Promise<string>((resolve) => waiting.push(() => resolve("done")));
  const annotations = {};
  const slow = tool("slow", { title: "Slow", description: "Waits.", input: {}, annotations, run });
  type Call = (given: object, extra: { signal: AbortSignal }) => Promise<unknown>;
  const clientOf = () => {
    const offered: Call[] = [];
    const server = { registerTool: (_name: string, _about: object, call: Call) => void offered.push(call) };
    slow(server as unknown as McpServer, {} as SandboxesOf);
    return () => (offered[0] as Call)({}, { signal: new AbortController().signal });
  };
  const [one, other] = [clientOf(), clientOf()];
  const calls = Array.from({ length: MOST_CALLS }, one);
  await expect(one()).rejects.toThrow("Too many calls of this session are under way");
  const another = other();
  for (const end of waiting) end();
  await Promise.all([...calls, another]);
  waiting.length = 0;
  const again = one();
  waiting[0]?.();
  await again;
});
