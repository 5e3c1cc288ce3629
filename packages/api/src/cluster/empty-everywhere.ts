/** Destroys what an app has on every host, before the app itself is deleted. */
import { hostSilent } from "@hibernaut/cluster";
import { type ErrorCode, HibernautError } from "@hibernaut/domain/errors";
import { within } from "@hibernaut/lib/async";
import type { FastifyRequest } from "fastify";
import type { ApiCluster } from "../deps.ts";
import { read } from "./ask-hosts.ts";
import { askerOf } from "./asker.ts";
import { sentOn } from "./headers.ts";

/** A host waits a minute for the app's machines to be destroyed. */
const EMPTY_MS = 90_000;

/**
 * Sends the request to all other hosts, and calls `here` for this one. Rejects with what any of them refuses, and with
 * `host_unreachable` while a host is away: it may have volumes of the app.
 */
export async function emptyEverywhere(
  request: FastifyRequest,
  { shared, view, client }: Pick<ApiCluster, "shared" | "view" | "client">,
  here: () => Promise<void>,
): Promise<void> {
  const others = view.hosts().filter(({ name }) => name !== shared.host);
  for (const { name, up } of others) if (up === undefined) throw hostSilent(name, "it is away, and may have volumes");
  const { method, url: path } = request;
  const headers = sentOn(request.headers, askerOf(request));
  const emptyOne = async (host: string): Promise<void> => {
    const signal = within(new AbortController().signal, EMPTY_MS, "the destruction of the app's machines");
    const response = await client.send(host, { method, path, headers, signal });
    const text = await read(response);
    // A host that has not heard of the app yet has nothing of it.
    if (response.statusCode === 200 || response.statusCode === 404) return;
    const { error, message, details } = JSON.parse(text) as {
      error: ErrorCode;
      message: string;
      details: Record<string, unknown>;
    };
    throw new HibernautError(error, message, { ...details, host });
  };
  await Promise.all([here(), ...others.map(({ name }) => emptyOne(name))]);
}
