/** Requests through the proxy of a served platform. */
import { Agent, request as send } from "node:http";
import { slowed } from "./slow.ts";

export interface ProxiedAnswer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
}

/** How to reach an app: the proxy's address, and the app's name under the default suffix. */
export interface Target {
  proxyUrl: string;
  app: string;
  /** Instead of `<app>.localhost`. */
  host?: string;
}

/** One request on a connection of its own unless an agent is given. Rejects when it is cut or answered late. */
export function ask(
  { proxyUrl, app, host = `${app}.localhost` }: Target,
  path = "/",
  {
    method = "GET",
    body = "",
    timeoutMs = slowed(60_000),
    agent = new Agent(),
    headers = {},
  }: { method?: string; body?: string; timeoutMs?: number; agent?: Agent; headers?: Record<string, string> } = {},
): Promise<ProxiedAnswer> {
  return new Promise((resolve, reject) => {
    const sent = send(
      `${proxyUrl}${path}`,
      { method, agent, headers: { ...headers, host }, timeout: timeoutMs },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (chunk: string) => {
          text += chunk;
        });
        response.on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
        response.on("error", reject);
        response.on("aborted", () => reject(new Error("the answer was cut")));
      },
    );
    sent.on("timeout", () => sent.destroy(new Error(`no answer to ${path} in ${timeoutMs} ms`)));
    sent.on("error", reject);
    sent.end(body);
  });
}

/** `Hibernaut-Wake: resume; dur=212` in parts. */
export function wakeOf({ headers }: ProxiedAnswer): { kind: string; ms: number } {
  const match = /^(running|warm|resume|cold); dur=(\d+)$/.exec(String(headers["hibernaut-wake"]));
  if (!match) throw new Error(`no wake header: ${JSON.stringify(headers)}`);
  return { kind: match[1] ?? "", ms: Number(match[2]) };
}
