/** What other packages may use. */

export type { BuildPlan } from "./building.ts";
export { type Finding, Findings } from "./findings.ts";
export { type ProjectPlan, planProject } from "./plan.ts";
export { asPreview } from "./preview.ts";
export type { Disk, Project } from "./project.ts";
export { COMPOSE_FILES, type ReadOptions, readProject } from "./read.ts";
export { appName, type ServicePlan, withExposed } from "./service.ts";
