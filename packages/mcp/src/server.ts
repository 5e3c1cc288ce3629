/** The MCP server: one for each client. */
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { About, Place } from "./contract.ts";
import { SandboxesOf } from "./sandboxes-of.ts";
import { insideTools } from "./tools/inside.ts";
import { lifeTools } from "./tools/life.ts";

const INSTRUCTIONS =
  "Sandboxes are Linux virtual machines on the user's own server. Make one with create_sandbox, and use its id with the other tools. Sandboxes that are paused keep everything, and wake when they are used. Kill those that nobody needs any more.";

/** Returns a server that is not connected yet. */
export function buildServer(place: Place, { version }: About): McpServer {
  const server = new McpServer({ name: "hibernaut", version }, { instructions: INSTRUCTIONS });
  const sandboxes = new SandboxesOf(place);
  for (const offer of [...lifeTools, ...insideTools]) offer(server, sandboxes);
  return server;
}
