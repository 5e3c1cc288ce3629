/** Asks all other hosts of the cluster the same question, for a bounded time. */
import type { IncomingMessage } from "node:http";
import type { PeerClient, View } from "@hibernaut/cluster";
import { never, within } from "@hibernaut/lib/async";
import type { FastifyRequest } from "fastify";
import { sentOn } from "./headers.ts";

/** How long a list waits for the other hosts. It names those that did not answer. */
const ANSWER_MS = 2000;
/** More than the longest list of one host. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

/** What a host said. */
export interface Answer {
  host: string;
  body: unknown;
}

export interface Answers {
  answers: Answer[];
  /** The hosts that are away, did not answer in time, or failed. Sorted. */
  missing: string[];
}

interface Question {
  /** By default, that of the request. */
  path?: string;
  method?: string;
  /** How long to wait, in milliseconds. */
  patienceMs?: number;
  /** Leave out answers that are not 200. By default, those that say that there is no such thing are left out. */
  onlyOk?: boolean;
}

export type AskHosts = (request: FastifyRequest, question?: Question) => Promise<Answers>;

interface AskDeps {
  host: string;
  view: Pick<View, "hosts">;
  client: PeerClient;
}

/** Returns a function that asks the other hosts with the rights of a request. */
export function askHosts({ host: own, view, client }: AskDeps): AskHosts {
  return async (request, { path = request.url, method = "GET", patienceMs = ANSWER_MS, onlyOk = false } = {}) => {
    const others = view.hosts().filter(({ name }) => name !== own);
    const headers = sentOn(request);
    const signal = within(never(), patienceMs, "the answer of a host");
    const answers: Answer[] = [];
    const missing = others.filter(({ up }) => up === undefined).map(({ name }) => name);
    const askOne = async (host: string): Promise<void> => {
      try {
        const response = await client.send(host, { method, path, headers, signal });
        const text = await read(response);
        const status = response.statusCode ?? 0;
        if (status === 200) answers.push({ host, body: JSON.parse(text) });
        else if (onlyOk ? hasFailed(status) : status !== 404) missing.push(host);
      } catch {
        missing.push(host);
      }
    };
    await Promise.all(others.filter(({ up }) => up !== undefined).map(({ name }) => askOne(name)));
    return { answers: answers.toSorted((a, b) => (a.host < b.host ? -1 : 1)), missing: missing.toSorted() };
  };
}

/** Whether a reply says nothing about what was asked: the host has failed, or does not let this one ask now. */
function hasFailed(status: number): boolean {
  return status >= 500 || status === 401 || status === 429;
}

/** Reads a body as text. */
export async function read(response: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of response as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > MAX_ANSWER_BYTES) throw new Error("the answer of a host is too long");
    parts.push(part);
  }
  return Buffer.concat(parts).toString();
}
