/** Builds of templates, as clients of sandboxes ask for them. Times are RFC 3339 in UTC. */

/** `waiting`: it is announced, or its turn has not come. */
type BuildStatus = "waiting" | "building" | "ready" | "error";

/** From the least to the most important. */
export const BUILD_LOG_LEVELS = ["debug", "info", "warn", "error"] as const;
export type BuildLogLevel = (typeof BUILD_LOG_LEVELS)[number];

export interface BuildLogEntry {
  timestamp: string;
  level: BuildLogLevel;
  message: string;
  /** `base`, the number of a step from 1 on, or `finalize`. */
  step: string;
}

/** Why a build has failed, and in which step. Absent step: in none. */
export interface BuildFault {
  message: string;
  step?: string;
}

/** A build of a template of an app. */
export interface BuildRecord {
  /** A UUID. */
  id: string;
  app: string;
  /** The name of what is built, without a tag. */
  name: string;
  /** Those that lead to the template once it is ready. */
  tags: string[];
  /** As the client asked. Absent: as the parent has it. */
  cpus?: number;
  memoryMb?: number;
  status: BuildStatus;
  /** Null unless it has failed. */
  fault: BuildFault | null;
  createdAt: string;
  /** Null until its client has sent what it consists of. */
  startedAt: string | null;
  /** Null until it is ready or has failed. */
  finishedAt: string | null;
}

/** A name that leads to a template. An app has each pair of name and tag once. */
export interface TemplateTag {
  app: string;
  name: string;
  tag: string;
  /** The build that made the template. */
  build: string;
  /** The template's id. */
  template: string;
  assignedAt: string;
}
