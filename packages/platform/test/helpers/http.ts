/** Requests over HTTP and HTTPS that choose what `fetch` does not let a test choose: their connection, and any field. */
import { request as overHttp, type RequestOptions } from "node:http";
import { request as overHttps } from "node:https";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { slowed } from "./slow.ts";

export interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
}

export interface Sent extends RequestOptions {
  body?: string;
  /** Of TLS: whom to trust, and whom to ask for. */
  ca?: string;
  servername?: string;
}

/** On a connection of its own unless an agent is given. Rejects when the answer is cut, or late by `timeout` ms. */
export function request(url: string, { body = "", agent = false, ...options }: Sent = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const send: typeof overHttp = url.startsWith("https:") ? overHttps : overHttp;
    const sent = send(url, { ...options, agent }, (response) => {
      const { statusCode: status = 0, headers } = response;
      text(response).then((said) => resolve({ status, headers, text: said }), reject);
    });
    sent.on("timeout", () => sent.destroy(new Error(`no answer from ${url} in ${options.timeout} ms`)));
    sent.on("error", reject);
    sent.end(body);
  });
}

/** Asks until there is an answer: the emulated network accepts before the guest does, so the first tries may be reset. */
export async function patiently<T>(ask: () => Promise<T>, deadlineMs = slowed(30_000)): Promise<T> {
  const end = performance.now() + deadlineMs;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (performance.now() > end) throw error;
      await delay(10);
    }
  }
}
