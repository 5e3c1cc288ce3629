/** Fly's API over a platform on a fake host. Everything is gone when the test is over. */
import type { ConnectionBudget } from "@hibernaut/connections";
import { onTestFinished } from "vitest";
import { verifyToken } from "../../api/src/tokens.ts";
import { askWithin } from "../../api/src/within.ts";
import { startApi, type TestApi } from "../../api/test/helpers.ts";
import { budgetOf } from "../../platform/test/helpers/connections.ts";
import { openFly } from "../src/index.ts";

export interface Answer<T = Record<string, unknown>> {
  status: number;
  body: T;
  headers: Headers;
}

export interface TestFly {
  /** The platform's own API. */
  platform: TestApi;
  url: string;
  /** Asks with full access, unless a token is given. */
  call<T = Record<string, unknown>>(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<Answer<T>>;
}

/** `limits`: of connections and requests. `changes` replace parts of the platform behind it. */
export async function startFly(
  limits: Partial<ConnectionBudget["limits"]> = {},
  changes: Parameters<typeof startApi>[0] = {},
): Promise<TestFly> {
  const platform = await startApi(changes);
  const { url, close } = await openFly({
    at: { host: "127.0.0.1", port: 0 },
    connections: budgetOf(limits),
    ask: (request) => askWithin(platform.api, request),
    grantOf: (token) => verifyToken(platform.tokens, token),
    log: { info() {}, warn: ({ err }: { err?: Error }, message) => console.log(message, err) },
  });
  onTestFinished(async () => {
    await close();
    await platform.close();
  });
  return {
    platform,
    url,
    async call(method, path, body, headers = {}) {
      const response = await fetch(`${url}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${platform.token}`,
          ...(body !== undefined && { "content-type": "application/json" }),
          ...headers,
        },
        ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
      });
      const text = await response.text();
      return {
        status: response.status,
        body: (text === "" ? {} : JSON.parse(text)) as never,
        headers: response.headers,
      };
    },
  };
}
