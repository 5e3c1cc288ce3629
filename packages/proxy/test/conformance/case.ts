/** A case of the suite as data, and the words to write one. */
import type { Act } from "./app.ts";

/** What happens next. Text is sent by the client. */
export type Step =
  | string
  /** The client sends it byte by byte, each in its own packet. */
  | { slowly: string }
  /** The client waits until this has come, or the connection has ended. */
  | { sees: string }
  | { event: "client ends" | "app asked" | "app told" | "app closes" };

/** The client ends its direction. */
export const CLIENT_ENDS = { event: "client ends" } as const;
/** The head of a request has come to the app, or the client's connection has ended. */
export const APP_ASKED = { event: "app asked" } as const;
/** Lets the app continue, if it waits for that. */
export const APP_TOLD = { event: "app told" } as const;
/** The app closes its connections, and they are gone. */
export const APP_CLOSES = { event: "app closes" } as const;

export interface Case {
  name: string;
  client: readonly Step[];
  /** Methods of the requests whose answers the client waits for; one GET by default. */
  asks?: readonly string[];
  /** What the app does when a head has come, and when the whole request has. By default it answers {@link OK} then. */
  atHead?: Act;
  atEnd?: Act;
  /** Fields, in lower case, that the outcome shows in requests and answers. */
  look?: readonly string[];
  ours: Outcome;
  /** Which proxies do something else, and why ours is right anyway. Those not named do the same. */
  differs?: Partial<Record<ReferenceName, string>>;
}

export type ReferenceName = "nginx" | "HAProxy";

/** What the client and the app have seen. */
export interface Outcome {
  /**
   * All answers in order: `200 ok` is the app's, `refused 400` the proxy's own. `{name: value}` are fields looked
   * for, `+ name: value` trailers, `[cut]` marks what did not come to
   * its end, and `tunnel hello` what came behind a 101.
   */
  answers: string[];
  /** The requests that came to the app whole, or that it answered before that: `POST / body`. */
  seen: string[];
  /** Whether the client's connection took another request afterwards. */
  after: "open" | "closed";
  /** What another client was answered next, where that was not its own answer. */
  next?: string;
}

/** The same reason for both. */
export function both(reason: string): NonNullable<Case["differs"]> {
  return { nginx: reason, HAProxy: reason };
}

export const HOST = "Host: shop.test\r\n";
export const UPGRADE = "Connection: Upgrade\r\nUpgrade: echo\r\n";

export function get(target = "/", fields = ""): string {
  return `GET ${target} HTTP/1.1\r\n${HOST}${fields}\r\n`;
}

export function post(body: string, fields = ""): string {
  return `POST / HTTP/1.1\r\n${HOST}${fields}Content-Length: ${body.length}\r\n\r\n${body}`;
}

/** `body` with its framing. */
export function chunked(body: string, fields = ""): string {
  return `POST / HTTP/1.1\r\n${HOST}${fields}Transfer-Encoding: chunked\r\n\r\n${body}`;
}

export function chunk(data: string): string {
  return `${data.length.toString(16)}\r\n${data}\r\n`;
}

export const LAST_CHUNK = "0\r\n\r\n";

/** The head of an answer of the app. */
export function answerHead(fields: string, status = "200 OK"): string {
  return `HTTP/1.1 ${status}\r\nX-App: 1\r\n${fields}\r\n`;
}

export function answer(body: string, fields = "", status = "200 OK"): string {
  return `${answerHead(`${fields}Content-Length: ${body.length}\r\n`, status)}${body}`;
}

export const OK = answer("ok");

/** One request and one response, and the connection stays open. */
export function fine(seen: string, answered = "200 ok"): Outcome {
  return { answers: [answered], seen: [seen], after: "open" };
}

/** The app is not asked, and the connection ends. */
export function refused(status: number): Outcome {
  return { answers: [`refused ${status}`], seen: [], after: "closed" };
}
