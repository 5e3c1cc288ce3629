/** What may be secret in a configuration: variables, contents of files, headers of checks. The machine has them, and they are kept nowhere else. Pure. */
import { type FlyCheck, type FlyConfig } from "./schema.ts";
import { serviceCheckName } from "./service.ts";
import type { FlyWire } from "./to-fly.ts";

type Checks = Readonly<Record<string, FlyCheck>>;

/** What was sent, without them. */
export function withoutSecrets({ env: _, ...sent }: FlyConfig): FlyConfig {
  const { files, checks, services } = sent;
  return {
    ...sent,
    ...(files && { files: files.map(({ raw_value: _content, ...file }) => file) }),
    ...(checks && { checks: withoutHeaders(checks) }),
    ...(services && {
      services: services.map((service) => ({
        ...service,
        ...(service.checks && { checks: service.checks.map(({ headers: _headers, ...check }) => check) }),
      })),
    }),
  };
}

/** Checks without their headers. */
export function withoutHeaders(checks: Checks): Checks {
  return Object.fromEntries(Object.entries(checks).map(([name, { headers: _, ...check }]) => [name, check]));
}

/** Services and checks as they were sent, with the headers that the machine's checks have. */
export function withHeaders({ services, checks }: FlyConfig, now: Checks): FlyWire {
  const headersOf = (name: string) => {
    const headers = now[name]?.headers;
    return headers === undefined ? {} : { headers };
  };
  return {
    ...(checks && {
      checks: Object.fromEntries(
        Object.entries(checks).map(([name, check]) => [name, { ...check, ...headersOf(name) }]),
      ),
    }),
    ...(services && {
      services: services.map((service) => ({
        ...service,
        ...(service.checks && {
          checks: service.checks.map((check, at) => ({
            ...check,
            ...headersOf(serviceCheckName(check, at, service.internal_port)),
          })),
        }),
      })),
    }),
  };
}
