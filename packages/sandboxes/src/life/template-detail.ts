/** A template with its builds, as clients list them. Pure. */
import type { BuildRecord, TemplateTag } from "@hibernaut/domain/build";
import { guestSize, type MachineConfig } from "@hibernaut/domain/config";
import type { TemplateView } from "@hibernaut/machines";
import { INSIDE_VERSION } from "./view.ts";

/** What is known of one name, or of one template that no build has made. */
export interface KnownTemplate {
  /** What clients call it. */
  id: string;
  name: string;
  /** Those that are remembered, oldest first. */
  builds: readonly BuildRecord[];
  /** Of the name. */
  tags: readonly TemplateTag[];
  /** That the tags lead to, or the one itself. */
  templates: readonly TemplateView[];
}

interface BuildWire {
  buildID: string;
  status: BuildRecord["status"];
  createdAt: string;
  updatedAt: string;
  finishedAt?: string;
  cpuCount: number;
  memoryMB: number;
  diskSizeMB: number;
  envdVersion: string;
}

/** Returns the builds, newest first. A template of which no build is remembered is one by itself, as of when it was made. */
export function buildsOf({ builds, tags, templates }: KnownTemplate): BuildWire[] {
  const viewOf = (id: string) => templates.find(({ template }) => template.id === id);
  const remembered = builds.map((build) => {
    const made = tags.find((tag) => tag.build === build.id);
    const size = sizeOf(made && viewOf(made.template)?.template.machine.config);
    const { finishedAt, createdAt, startedAt } = build;
    return {
      ...{ buildID: build.id, status: build.status, createdAt, updatedAt: finishedAt ?? startedAt ?? createdAt },
      ...(finishedAt !== null && { finishedAt }),
      ...{ cpuCount: build.cpus ?? size.cpuCount, memoryMB: build.memoryMb ?? size.memoryMB },
      ...INSIDE,
    };
  });
  const known = new Set(builds.map(({ id }) => id));
  const others = templates.flatMap(({ template: { id, createdAt, machine } }) => {
    const buildID = tags.find((tag) => tag.template === id)?.build ?? id;
    if (known.has(buildID)) return [];
    const times = { createdAt, updatedAt: createdAt, finishedAt: createdAt };
    return [{ buildID, status: "ready" as const, ...times, ...sizeOf(machine.config), ...INSIDE }];
  });
  return [...remembered, ...others].toSorted((one, other) => (one.createdAt < other.createdAt ? 1 : -1));
}

/** Returns what clients are told of the template itself. */
export function templateDetail({ id, name, tags, templates }: KnownTemplate, builds: readonly BuildWire[]) {
  const times = [...builds.map(({ createdAt }) => createdAt), ...tags.map(({ assignedAt }) => assignedAt)].toSorted();
  return {
    ...{ templateID: id, public: false, aliases: [name], names: [name] },
    ...{ createdAt: times.at(0) ?? "", updatedAt: times.at(-1) ?? "", lastSpawnedAt: null },
    spawnCount: templates.reduce((sum, { machines }) => sum + machines.length, 0),
  };
}

const INSIDE = { diskSizeMB: 0, envdVersion: INSIDE_VERSION };

function sizeOf(config: MachineConfig | undefined): { cpuCount: number; memoryMB: number } {
  const { cpus, memoryMb } = guestSize(config ?? { image: "" });
  return { cpuCount: Math.max(1, Math.ceil(cpus)), memoryMB: memoryMb };
}
