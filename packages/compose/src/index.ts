/** What other packages may use. */
export { type Finding, Findings } from "./findings.ts";
export { type ProjectPlan, planProject } from "./plan.ts";
export type { Disk, Project } from "./project.ts";
export { COMPOSE_FILES, findComposeFiles, projectName, type ReadOptions, readProject } from "./read.ts";
export { type BuildPlan, type Dependency, type ServicePlan, withExposed } from "./service.ts";
