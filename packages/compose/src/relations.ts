/** What a service is called, and which others it needs. Pure. */
import type { Findings } from "./findings.ts";
import { isMapping, type Mapping, textOf, textsOf, type Value } from "./values.ts";

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
const NAME = /^[a-z0-9_](?:[a-z0-9_.-]{0,250}[a-z0-9_])?$/;

/** Returns the names that others of the project have for a service. */
export function aliasesOf(service: string, definition: Mapping, path: string, findings: Findings): string[] {
  const { container_name: container, hostname, networks } = definition;
  const inNetworks = isMapping(networks)
    ? Object.values(networks).flatMap((one) => (isMapping(one) ? textsOf(one.aliases) : []))
    : [];
  const wanted = [service, textOf(container), textOf(hostname), ...inNetworks].flatMap((name) =>
    name ? name.toLowerCase() : [],
  );
  const [good, bad] = [wanted.filter((name) => NAME.test(name)), wanted.filter((name) => !NAME.test(name))];
  for (const name of bad) findings.warn(path, `\`${name}\` cannot be a name in the network.`);
  return [...new Set(good)];
}

/** Reads `depends_on`, in either form. */
export function dependenciesOf(value: Value | undefined, path: string, findings: Findings): Dependency[] {
  if (!isMapping(value)) return textsOf(value).map((service) => ({ service, condition: "started", required: true }));
  return Object.entries(value).map(([service, one]) => {
    const { condition, required } = isMapping(one) ? one : {};
    const known = CONDITIONS[textOf(condition) ?? "service_started"];
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
