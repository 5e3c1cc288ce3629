/** What Fly's API needs of the platform: the platform's own API, which has all the rules. */

/** A request to the platform's API. */
export interface PlatformRequest {
  method: "GET" | "POST" | "PATCH" | "DELETE" | "PUT";
  /** Path and query. */
  url: string;
  headers: Record<string, string>;
  /** JSON. */
  payload?: string;
  /** The address of whoever asks. */
  remoteAddress: string;
  /** Aborted when nobody waits for the answer any more. */
  signal: AbortSignal;
}

/** Asks the platform's API within this process. */
export type AskPlatform = (request: PlatformRequest) => Promise<{ statusCode: number; payload: string }>;

export interface FlyNeeds {
  ask: AskPlatform;
  log: { info(details: object, message: string): void; warn(details: object, message: string): void };
}
