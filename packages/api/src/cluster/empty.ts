/** Destroys what an app has on every host, before the app itself is deleted. */
import { hostSilent, isBeingDeleted } from "@hibernaut/cluster";
import { type ErrorCode, HibernautError } from "@hibernaut/domain/errors";
import { never, within } from "@hibernaut/lib/async";
import type { FastifyRequest } from "fastify";
import type { ApiCluster, ApiDeps } from "../deps.ts";
import { read } from "./ask-hosts.ts";
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
  const headers = sentOn(request);
  const emptyOne = async (host: string): Promise<void> => {
    const signal = within(never(), EMPTY_MS, "the destruction of the app's machines");
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

interface EmptyDeps extends Pick<ApiDeps, "apps" | "volumes"> {
  cluster: Pick<ApiCluster, "shared" | "view">;
}

/**
 * Destroys what this host has. Rejects with `unavailable` while it does not know of the deletion, because volumes, which are
 * in no directory, could still be added, and with `aborted` when one was being made; otherwise like `Apps.empty`.
 */
export async function emptyHere(
  name: string,
  { force }: { force: boolean },
  { apps, volumes, cluster: { shared, view } }: EmptyDeps,
): Promise<void> {
  await shared.catchUp();
  apps.get(name);
  if (!isBeingDeleted(view, name))
    throw new HibernautError(
      "unavailable",
      `Host ${shared.host} has not heard yet that app ${name} is being deleted, so nothing was destroyed there. See \`hibernaut cluster status\`, and try again.`,
      { host: shared.host },
    );
  await apps.empty(name, { force });
  const left = volumes.list(name).map(({ id }) => id);
  if (left.length === 0) return;
  const message = `App ${name} got a new volume on host ${shared.host} while it was being deleted. Try again.`;
  throw new HibernautError("aborted", message, { volumes: left });
}
