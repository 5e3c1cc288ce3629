/** Defines tools, and tells clients that their work is still in progress. */
import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { RequestHandlerExtra } from "@modelcontextprotocol/sdk/shared/protocol.js";
import type { ServerNotification, ServerRequest, ToolAnnotations } from "@modelcontextprotocol/sdk/types.js";
import { type ZodRawShape, type ZodType, z } from "zod";
import { type Answer, answer } from "../answer.ts";
import { MOST_CALLS, PROGRESS_MS } from "../limits.ts";
import type { SandboxesOf } from "../sandboxes-of.ts";

type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>;

/** What a tool works with. */
interface ToolContext {
  sandboxes: SandboxesOf;
  /** Aborted when the client gives up. */
  signal: AbortSignal;
}

interface Definition<Shape extends ZodRawShape> {
  title: string;
  description: string;
  input: Shape;
  annotations: ToolAnnotations;
  /** What it throws is the tool's error, and its message is what the model reads. */
  run(
    input: { [Key in keyof Shape]: Shape[Key] extends ZodType<infer Value> ? Value : never },
    context: ToolContext,
  ): Promise<string>;
}

/** A tool that is ready to be offered by a server. */
export type Tool = (server: McpServer, sandboxes: SandboxesOf) => void;

/** Defines a tool. Unknown arguments are refused: a misspelt limit must not mean none. */
export function tool<const Shape extends ZodRawShape>(name: string, definition: Definition<Shape>): Tool {
  const { title, description, input, annotations, run } = definition;
  return (server, sandboxes) => {
    const inputSchema: ZodType = z.strictObject(input);
    server.registerTool(name, { title, description, inputSchema, annotations }, async (given, extra) =>
      counted(sandboxes, () =>
        whileWorking(extra, async () => answer(await run(given as never, { sandboxes, signal: extra.signal }))),
      ),
    );
  };
}

/** How many calls each client has under way: one request may have many, and its end is not theirs. */
const underWay = new WeakMap<SandboxesOf, number>();

/** Refuses the work when its client has too much under way. */
async function counted(client: SandboxesOf, work: () => Promise<Answer>): Promise<Answer> {
  const calls = underWay.get(client) ?? 0;
  if (calls >= MOST_CALLS) throw new Error("Too many calls of this session are under way. Wait for one to end.");
  underWay.set(client, calls + 1);
  try {
    return await work();
  } finally {
    underWay.set(client, (underWay.get(client) ?? 1) - 1);
  }
}

/** Sends signs of life to a client that asked for them. */
async function whileWorking(extra: Extra, work: () => Promise<Answer>): Promise<Answer> {
  // oxlint-disable-next-line no-underscore-dangle -- the protocol names it so
  const token = extra._meta?.progressToken;
  if (token === undefined) return work();
  let progress = 0;
  const beat = setInterval(() => {
    progress += 1;
    const told = extra.sendNotification({
      method: "notifications/progress",
      params: { progressToken: token, progress, message: "still working" },
    });
    told.catch(() => {}); // Its client is gone, or does not listen.
  }, PROGRESS_MS);
  try {
    return await work();
  } finally {
    clearInterval(beat);
  }
}

/** The argument that names a sandbox. */
export const sandbox = z.string().min(1).max(80).describe("Id or name of the sandbox, as create_sandbox returned it.");
