/** What the MCP server needs of those who start it. */
import type { HibernautClient } from "@hibernaut/client";

/** Whose sandboxes the tools use, and how much they return. */
export interface Place {
  client: HibernautClient;
  /** The app whose machines the sandboxes are. Without one, the only app that the client's token reaches. */
  app?: string | undefined;
  /** Bytes of text that a tool returns at most. */
  outputBytes: number;
}

/** What a server says of itself. */
export interface About {
  version: string;
}
