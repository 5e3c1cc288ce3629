/** The client for pages that the platform itself serves: what Node alone can do is left out. */
import { ApiError } from "./error.ts";
import { MachineClient } from "./machine-client.ts";
import { MACHINE, machineParams } from "./machine-path.ts";
import { urlOf } from "./transport.ts";

export { COLD_REASONS } from "./cold-reasons.ts";
export { ApiError } from "./error.ts";
export type { EventsOptions, StreamEntry, StreamGap, StreamMissing, StreamPosition } from "./events.ts";
export { ExecChannel, type ExecExit } from "./exec-channels.ts";
export type * from "./options.ts";
export { type CallOptions, errorOf, type ListOptions, send, urlOf } from "./transport.ts";
export type * from "./types.ts";

/** How a page reaches its platform. */
export interface BrowserClientOptions {
  /** The page's own origin, such as `https://hibernaut.example.com:4280`. Requests carry its cookies. */
  origin: string;
  /** Replaces the global `fetch`, for example in tests. */
  fetch?: typeof fetch;
}

/** What to run on a terminal. */
export interface TerminalOptions {
  /** The program, looked up in PATH, and its arguments. */
  command: readonly string[];
  /** Height of the terminal in characters. */
  rows: number;
  /** Width of the terminal in characters. */
  columns: number;
}

/** A client that the page's session cookie authenticates. Has the same methods as `HibernautClient`, except for streams of Node. */
export class BrowserClient extends MachineClient {
  constructor({ origin, fetch: fetcher = fetch }: BrowserClientOptions) {
    super({ apiUrl: origin, token: "", fetch: (input, init) => reach(fetcher, origin, input, init) });
  }

  /**
   * Returns the address of a WebSocket that runs a command on a terminal in a machine. The session's cookie authenticates
   * it. Its messages begin with an {@link ExecChannel}.
   */
  terminalUrl(app: string, id: string, { command, rows, columns }: TerminalOptions): URL {
    const query = { command, rows, columns, tty: true, term: "xterm-256color" };
    const url = urlOf(this.apiUrl, { path: `${MACHINE}/exec`, params: machineParams(app, id), query });
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    return url;
  }
}

/** Says that a request is from a page of the platform: no page of another server may add a field of its own to one. */
const PAGE_HEADER = "hibernaut-page";

async function reach(
  fetcher: typeof fetch,
  origin: string,
  input: Parameters<typeof fetch>[0],
  init: RequestInit | undefined,
): Promise<Response> {
  try {
    const headers = new Headers(init?.headers);
    headers.set(PAGE_HEADER, "1");
    return await fetcher(input, { ...init, headers, credentials: "same-origin" });
  } catch (cause) {
    if (init?.signal?.aborted) throw cause;
    const message = `The platform does not answer at ${origin}. Check that it runs and that your network reaches it.`;
    throw new ApiError({ code: "unavailable", message, cause });
  }
}
