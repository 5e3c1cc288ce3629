/** A case of the suite as data, and the words to write one. */
import type { ConnectionOptions } from "node:tls";

/** What the client does next. */
export type Step = Buffer | string | { slowly: Buffer } | { event: "client ends" };

/** The client ends its direction. */
export const CLIENT_ENDS = { event: "client ends" } as const;

/** How the proxy in the middle is set up. */
export type Mode =
  /** Passes TLS on to the app of the hostname. */
  | "passthrough"
  /** Ends TLS, with the certificate of the hostname. */
  | "terminate"
  /** Believes a balancer in front, and tells the app by version 1 what it believes. */
  | "balanced"
  /** Tells the app about the client by version 1, or by version 2. */
  | "tells v1"
  | "tells v2";

export interface Case {
  name: string;
  /** What a client without TLS sends, or how a real client of TLS connects. */
  client: readonly Step[] | ConnectionOptions;
  /** How many bytes the app waits for; by default those of the client. A client of TLS sends `hello`. */
  expects?: number;
  /**
   * What comes of it: `a: hello` is what the app got, `[all]` if that is all that was sent. `alert 112` is what the
   * client is told instead, and `closed` if it is told nothing.
   */
  ours: string;
  /** Why HAProxy does something else, and ours is right anyway. Without it, HAProxy does the same. */
  differs?: string;
}

/** What a client of TLS sends. */
export const HELLO = "hello";
