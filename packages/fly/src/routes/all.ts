/** All routes below `/v1`. */
import { actionRoutes } from "./actions.ts";
import { appRoutes } from "./apps.ts";
import { leaseRoutes, metadataRoutes } from "./leases.ts";
import { machineRoutes } from "./machines.ts";
import { certificateRoutes, regionRoute } from "./platform.ts";
import { refusedRoutes } from "./refused.ts";
import { secretRoutes } from "./secrets.ts";
import type { Routes } from "./table.ts";
import { volumeRoutes } from "./volumes.ts";

const GROUPS = [
  ...[appRoutes, machineRoutes, actionRoutes, leaseRoutes, metadataRoutes],
  ...[volumeRoutes, secretRoutes, certificateRoutes, regionRoute, refusedRoutes],
];

/** Registers each. */
export function allRoutes(route: Routes): void {
  for (const group of GROUPS) group(route);
}
