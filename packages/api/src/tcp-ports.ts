/** TCP ports that a token which is limited to apps may take: others are for programs of the host. */
import type { MachineConfig } from "@hibernaut/domain/config";
import { HibernautError } from "@hibernaut/domain/errors";
import { tlsHandlerOf } from "@hibernaut/domain/tcp-handlers";
import type { Machines } from "@hibernaut/machines";
import type { FastifyRequest } from "fastify";
import { configIn } from "./body-config.ts";

/**
 * Returns a hook that refuses other ports in the configuration of a machine. What the app's machines have already stays
 * usable, so that their configurations can change.
 *
 * @param range such as `1024-65535`. Default: any
 */
export function refusePorts(machines: Pick<Machines, "all">, range = "1-65535") {
  const [from = 0, to = 0] = range.split("-").map(Number);
  return async ({ token, params, body }: FastifyRequest): Promise<void> => {
    if (token === null || token.apps === null) return;
    const isPreview = token.previewsOf !== undefined;
    const others = portsOf(configIn(body)).filter(
      ({ port, shared }) => port < from || port > to || (isPreview && !shared),
    );
    if (others.length === 0) return;
    const { app_name: app } = params as { app_name?: string };
    const own = machines.all().flatMap(({ record }) => (record.app === app ? portsOf(record.config) : []));
    const had = new Set(own.map(({ port }) => port));
    const refused = others.find(({ port }) => !had.has(port))?.port;
    if (refused === undefined) return;
    if (isPreview && refused >= from && refused <= to) throw previewRefusal(refused);
    const message = `A token that is limited to apps cannot take the TCP port ${refused}, only ${range} (HIBERNAUT_TCP_PORTS on the platform). Choose another port, or have someone with a token for all apps create the machine.`;
    throw new HibernautError("permission_denied", message, { port: refused, ports: range });
  };
}

/** Production is not to find its own port taken by one of its previews. */
function previewRefusal(port: number): HibernautError {
  const message = `A token that is limited to previews cannot take the TCP port ${port}, because it would belong to the preview alone. Leave it out, give it a handler for TLS, or have someone with a token for all apps create the machine.`;
  return new HibernautError("permission_denied", message, { port });
}

/** Returns the ports, and whether other apps can have each of them as well. */
function portsOf(config: Partial<MachineConfig> | undefined): { port: number; shared: boolean }[] {
  const services = Array.isArray(config?.services) ? config.services : [];
  return services.flatMap(({ ports = [] }) =>
    ports.map(({ port, handlers = [] }) => ({ port, shared: tlsHandlerOf(handlers) !== undefined })),
  );
}
