/** Requests through the proxy of a served platform. */
import { type Answer, request, type Sent } from "./http.ts";
import type { CounterAnswer } from "./qemu-world.ts";
import { slowed } from "./slow.ts";

/** How to reach an app: the proxy's address, and the app's name under the default suffix. */
export interface Target {
  proxyUrl: string;
  app: string;
  /** Instead of `<app>.localhost`. */
  host?: string;
}

interface Asked extends Pick<Sent, "method" | "body" | "agent"> {
  headers?: Record<string, string>;
  timeoutMs?: number;
}

/** One request on a connection of its own unless an agent is given. Rejects when it is cut or answered late. */
export function ask(
  { proxyUrl, app, host = `${app}.localhost` }: Target,
  path = "/",
  { timeoutMs = slowed(60_000), headers, ...options }: Asked = {},
): Promise<Answer> {
  return request(`${proxyUrl}${path}`, { ...options, headers: { ...headers, host }, timeout: timeoutMs });
}

/** What the small app and the counter say at `/`. */
export function counterOf({ text }: Answer): CounterAnswer {
  return JSON.parse(text) as CounterAnswer;
}

/** `Hibernaut-Wake: resume; dur=212` in parts. */
export function wakeOf({ headers }: Answer): { kind: string; ms: number } {
  const match = /^(running|warm|resume|cold); dur=(\d+)$/.exec(String(headers["hibernaut-wake"]));
  if (!match) throw new Error(`no wake header: ${JSON.stringify(headers)}`);
  return { kind: match[1] ?? "", ms: Number(match[2]) };
}
