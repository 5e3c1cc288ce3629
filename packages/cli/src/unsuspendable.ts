/** Machines that should be suspended when they are idle, and cannot be. */
import type { Machine, ServiceConfig } from "@hibernaut/client";

/** The service by which the proxy decides: the first that speaks HTTP, otherwise the first. */
function decidingService({ config: { services = [] } }: Pick<Machine, "config">): ServiceConfig | undefined {
  return services.find(({ protocol }) => protocol === "http") ?? services[0];
}

/**
 * Says what an idle machine does instead of a suspend, and why: `is stopped with its files kept, because ...`. Undefined
 * for a machine that is suspended, or that is not meant to be.
 */
export function insteadOfSuspend(machine: Pick<Machine, "config" | "suspend">): string | undefined {
  const service = decidingService(machine);
  if (service?.autostop !== "suspend" || machine.suspend.eligible) return undefined;
  const does = service.autostop_fallback === "off" ? "keeps running" : "is stopped with its files kept";
  return `${does}, because it cannot be suspended: ${machine.suspend.reasons.join("; ")}`;
}
