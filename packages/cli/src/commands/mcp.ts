/** `hibernaut mcp`: sandboxes as tools of the Model Context Protocol. */

import { command } from "../command.ts";
import { isAppNamed } from "../config.ts";
import type { Context } from "../context.ts";
import { CliError, UsageError } from "../failure.ts";
import { interruptible } from "../interrupting.ts";
import { readAddress } from "../listen-address.ts";

declare const HIBERNAUT_VERSION: string;

/** What an operator may choose for the output of a tool, in KB. The platform returns no more than 1 MiB of a command's output. */
const OUTPUT_KB = { minimum: 1, maximum: 1024 } as const;
/** What it is otherwise, in KB: some 16,000 tokens of a model. */
const DEFAULT_OUTPUT_KB = 64;
const BYTES_PER_KB = 1024;

export const mcp = command({
  name: "mcp",
  summary: "Offer sandboxes to agents as tools (Model Context Protocol)",
  description:
    "Serves one client over standard input and output, with the rights of this command's own token, until the client goes. With --http, serves many clients, each with the rights of the API token that it sends as a bearer, until it is interrupted. Tools use the sandboxes of one app, and no other machine of it.",
  options: [
    {
      flags: "-a, --app <name>",
      description: "the app whose machines the sandboxes are (default: the only one that the token reaches)",
      names: "app",
    },
    { flags: "--http <host:port>", description: "serve over HTTP at this address, such as 127.0.0.1:7075" },
    {
      flags: "--allow-host <name>",
      description: "with --http, another name at which clients reach it, such as that of a proxy; may repeat",
      repeats: true,
    },
    {
      flags: "--max-output <kb>",
      description: `how much text a tool returns at most, in KB (default: ${DEFAULT_OUTPUT_KB})`,
      ...OUTPUT_KB,
    },
  ],
  examples: ["hibernaut mcp --app agents", "hibernaut mcp --http 127.0.0.1:7075"],
  async run(context, _args, { http, allowHost, maxOutput = DEFAULT_OUTPUT_KB }) {
    if (http === undefined && allowHost !== undefined)
      throw new UsageError("--allow-host is for --http. Add --http, or leave it out.");
    const app = isAppNamed(context.namedApp, process.env, process.cwd()) ? context.app : undefined;
    const common = { app, outputBytes: maxOutput * BYTES_PER_KB, version: HIBERNAUT_VERSION };
    using stop = interruptible("The MCP server has ended.");
    if (http !== undefined)
      await overHttp(context, { ...common, at: readAddress(http), hosts: allowHost }, stop.signal);
    else {
      const { serveStdio } = await import("@hibernaut/mcp");
      const place = { ...common, client: await context.client() };
      await serveStdio(place, common, process, stop.signal);
    }
    // A pipe that is still open would keep this process alive.
    process.stdin.destroy();
    return { document: undefined, text: "" };
  },
});

interface HttpChoice {
  app: string | undefined;
  outputBytes: number;
  version: string;
  at: { host: string; port: number };
  hosts: readonly string[] | undefined;
}

/** Serves until the signal is aborted. */
async function overHttp(context: Context, choice: HttpChoice, signal: AbortSignal): Promise<void> {
  const [{ serveHttp }, clientOf] = await Promise.all([import("@hibernaut/mcp"), context.clientsOf()]);
  const onFault = (error: unknown) =>
    context.warn(`A request failed: ${error instanceof Error ? error.message : "unknown"}`);
  const { url, close } = await serveHttp({ ...choice, clientOf, onFault }).catch((error: NodeJS.ErrnoException) => {
    if (error.syscall !== "listen" && error.syscall !== "getaddrinfo") throw error;
    const { host, port } = choice.at;
    throw new CliError(
      "unavailable",
      `The MCP server cannot listen at ${host}:${port} (${error.code}). Choose another.`,
    );
  });
  process.stdout.write(context.json ? `${JSON.stringify({ url })}\n` : `MCP answers at ${url}. Stop it with Ctrl-C.\n`);
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
  await close();
}
