/** The check of a request that names a host. */
import { HibernautError } from "@hibernaut/domain/errors";
import type { ApiDeps } from "./deps.ts";

/** Throws `invalid_argument` when a host is named and there is only this one. */
export function requireCluster({ cluster }: Pick<ApiDeps, "cluster">, host: string | undefined): void {
  if (host === undefined || cluster !== undefined) return;
  const message = "This platform is a host alone, not a cluster, so there is no host to choose. Leave `host` out.";
  throw new HibernautError("invalid_argument", message, { field: "host" });
}
