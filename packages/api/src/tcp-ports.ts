/** TCP ports that a token which is limited to apps may take: others are for programs of the host. */
import type { MachineConfig } from "@hibernaut/domain/config";
import { HibernautError } from "@hibernaut/domain/errors";
import type { Machines } from "@hibernaut/machines";
import type { FastifyRequest } from "fastify";
import { configIn } from "./body-config.ts";

/**
 * Returns a hook that refuses other ports in the configuration of a machine. What the app's machines have already stays
 * usable, so that their configurations can change.
 *
 * @param range such as `1024-65535`
 */
export function refusePorts(machines: Pick<Machines, "all">, range: string) {
  const [from = 0, to = 0] = range.split("-").map(Number);
  return async ({ token, params, body }: FastifyRequest): Promise<void> => {
    if (token === null || token.apps === null) return;
    const others = portsOf(configIn(body)).filter((port) => port < from || port > to);
    if (others.length === 0) return;
    const { app_name: app } = params as { app_name?: string };
    const had = new Set(machines.all().flatMap(({ record }) => (record.app === app ? portsOf(record.config) : [])));
    const refused = others.find((port) => !had.has(port));
    if (refused === undefined) return;
    const message = `A token that is limited to apps cannot take the TCP port ${refused}, only ${range} (HIBERNAUT_TCP_PORTS on the platform). Choose another port, or have someone with a token for all apps create the machine.`;
    throw new HibernautError("permission_denied", message, { port: refused, ports: range });
  };
}

function portsOf(config: Partial<MachineConfig> | undefined): number[] {
  const services = Array.isArray(config?.services) ? config.services : [];
  return services.flatMap(({ ports = [] }) => ports.map(({ port }) => port));
}
