/** A receiver of webhooks: a real HTTP server that does what a test says, and keeps what it was sent. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { onTestFinished, vi } from "vitest";
import { slowed } from "../../../platform/test/helpers/slow.ts";

export interface Received {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string;
  type: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- what a test expects of it differs from test to test
  data: any;
}

/** Waits until the check passes: soon, unless the host is busy. */
export function soon<T>(check: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(check, { timeout: slowed(50_000), interval: 5 });
}

/** Answers a request that was read. */
export type Answer = (response: ServerResponse, received: Received, request: IncomingMessage) => void;

/** Answers with a status. */
export function withStatus(status: number, headers: Record<string, string> = {}): Answer {
  return (response) => void response.writeHead(status, headers).end();
}

/** Opens a receiver, and closes it when the test has finished. */
export async function openReceiver(tls?: { cert: string; key: string }): Promise<Receiver> {
  const receiver = await Receiver.open(tls);
  onTestFinished(() => receiver.close());
  return receiver;
}

export class Receiver {
  /** Everything that arrived, whatever the answer was. */
  readonly received: Received[] = [];
  /** What was answered with a status from 200 to 299, completely. */
  readonly accepted: Received[] = [];
  answer: Answer = withStatus(200);
  readonly #server: Server;

  private constructor(tls: { cert: string; key: string } | undefined) {
    const handle = (request: IncomingMessage, response: ServerResponse) => void this.#handle(request, response);
    this.#server = tls === undefined ? createServer(handle) : createTlsServer(tls, handle);
  }

  static async open(tls?: { cert: string; key: string }): Promise<Receiver> {
    const receiver = new Receiver(tls);
    receiver.#server.listen(0, "127.0.0.1");
    await once(receiver.#server, "listening");
    return receiver;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/hook`;
  }

  /** Waits until as many requests have arrived. */
  async has(count: number): Promise<Received[]> {
    await soon(() => {
      if (this.received.length < count) throw new Error(`${this.received.length} of ${count} requests arrived`);
    });
    return this.received;
  }

  /** Waits until as many were accepted. */
  async took(count: number): Promise<Received[]> {
    await soon(() => {
      if (this.accepted.length < count) throw new Error(`${this.accepted.length} of ${count} were accepted`);
    });
    return this.accepted;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "", url: path = "", headers } = request;
    let body: string;
    try {
      body = await text(request);
    } catch {
      // The platform gave the attempt up.
      return;
    }
    const { type, data } = JSON.parse(body) as Received;
    const received = { method, path, headers: headers as Record<string, string>, body, type, data };
    this.received.push(received);
    response.on("finish", () => {
      if (response.statusCode >= 200 && response.statusCode < 300) this.accepted.push(received);
    });
    this.answer(response, received, request);
  }
}
