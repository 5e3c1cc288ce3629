/** What Fly's API needs of the platform: the platform's own API, which has all the rules. */

import type { Grant } from "@hibernaut/domain/scopes";

/** A request to the platform's API. */
export interface PlatformRequest {
  method: "GET" | "POST" | "PATCH" | "DELETE" | "PUT";
  /** Path and query. */
  url: string;
  headers: Record<string, string>;
  /** JSON. */
  payload?: string;
  /** The address of the client. */
  remoteAddress: string;
  /** Aborted when the client is gone. */
  signal: AbortSignal;
}

/** Asks the platform's API within this process. The reply is its own: it must not be changed. */
export type AskPlatform = (request: PlatformRequest) => Promise<{ statusCode: number; reply: unknown }>;

export interface FlyNeeds {
  ask: AskPlatform;
  /** What a token of the platform may do. Undefined for any other text, and for one that has ended. */
  grantOf(token: string): Grant | undefined;
  log: { info(details: object, message: string): void; warn(details: object, message: string): void };
}
