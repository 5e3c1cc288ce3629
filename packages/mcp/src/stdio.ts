/** Serves one client over standard input and output. */
import type { Readable, Writable } from "node:stream";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import type { About, Place } from "./contract.ts";
import { buildServer } from "./server.ts";

interface Ends {
  stdin: Readable;
  stdout: Writable;
}

/** Resolves when the client has ended its output, or the signal is aborted. Work that is under way is aborted then. */
export async function serveStdio(
  place: Place,
  about: About,
  { stdin, stdout }: Ends,
  signal: AbortSignal,
): Promise<void> {
  const server = buildServer(place, about);
  const over = new Promise<void>((resolve) => {
    const end = () => resolve();
    stdin.once("end", end).once("close", end);
    if (signal.aborted) end();
    else signal.addEventListener("abort", end, { once: true });
  });
  await server.connect(new StdioServerTransport(stdin, stdout));
  await over;
  await server.close();
}
