/** What a service is called, and which others it needs. Pure. */
import { aliasesOf } from "@hibernaut/domain/app-network";
import { messageOf } from "@hibernaut/lib/text";
import type { Findings } from "./findings.ts";
import { isMapping, type Mapping, own, textOf, textsOf, type Value } from "./values.ts";

/** Another service that has to be up first. */
export interface Dependency {
  service: string;
  condition: "started" | "healthy" | "completed";
  /** Otherwise it may be missing, or fail. */
  required: boolean;
}

const CONDITIONS: Readonly<Record<string, Dependency["condition"]>> = {
  service_started: "started",
  service_healthy: "healthy",
  service_completed_successfully: "completed",
};

/** Returns the names that others of the project have for a service. */
export function namesOf(service: string, definition: Mapping, path: string, findings: Findings): string[] {
  const { container_name: container, hostname, networks } = definition;
  const inNetworks = isMapping(networks)
    ? Object.values(networks).flatMap((one) => (isMapping(one) ? textsOf(one.aliases) : []))
    : [];
  const wanted = [service, textOf(container), textOf(hostname), ...inNetworks].flatMap((name) =>
    name ? name.toLowerCase() : [],
  );
  // The platform would refuse them with half of the apps made.
  try {
    return aliasesOf(wanted);
  } catch (error) {
    return findings.error(path, messageOf(error)) ?? [];
  }
}

/** Reads `depends_on`, in either form. */
export function dependenciesOf(value: Value | undefined, path: string, findings: Findings): Dependency[] {
  if (!isMapping(value)) return textsOf(value).map((service) => ({ service, condition: "started", required: true }));
  return Object.entries(value).map(([service, one]) => {
    const { condition, required } = isMapping(one) ? one : {};
    const known = own(CONDITIONS, textOf(condition) ?? "service_started");
    if (known === undefined)
      findings.error(`${path}.depends_on.${service}`, `There is no condition ${String(condition)}.`);
    return { service, condition: known ?? "started", required: required !== false };
  });
}

/** `links: ["db:database"]` gives another service another name. */
export function linksOf(value: Value | undefined): [service: string, alias: string][] {
  return textsOf(value).flatMap((link): [string, string][] => {
    const [to = "", alias] = link.split(":");
    return alias === undefined ? [] : [[to, alias]];
  });
}
