/** A disk of texts, for tests. */
import {
  type Disk,
  type Finding,
  Findings,
  type ProjectPlan,
  planProject,
  type ReadOptions,
  readProject,
} from "../src/index.ts";

/** Absolute paths, and what is there. A path that ends with a slash is a directory. */
export type Files = Readonly<Record<string, string>>;

export function diskOf(files: Files, links: Files = {}): Disk {
  return {
    real: (path) => links[path] ?? path,
    text: (path) => files[path],
    kind: (path) =>
      path in files ? "file" : Object.keys(files).some((name) => name.startsWith(`${path}/`)) ? "directory" : undefined,
    base64: (path) => {
      const text = files[path];
      if (text === undefined) throw Object.assign(new Error("there is no such file"), { code: "ENOENT" });
      return Buffer.from(text).toString("base64");
    },
  };
}

/** Plans a project whose compose file is `/srv/shop/compose.yaml`. */
export function planOf(
  compose: string,
  files: Files = {},
  options: Partial<ReadOptions> = {},
  links: Files = {},
): { plan: ProjectPlan | undefined; findings: readonly Finding[] } {
  const disk = diskOf({ "/srv/shop/compose.yaml": compose, ...files }, links);
  const findings = new Findings();
  const project = readProject({ directory: "/srv/shop", environment: {}, ...options }, disk, findings);
  return { plan: project && planProject(project, disk, findings), findings: findings.list };
}

/** The findings as lines, without those that are only good to know. */
export function troubles({ findings }: { findings: readonly Finding[] }): string[] {
  return findings.flatMap(({ severity, path, message }) =>
    severity === "note" ? [] : [`${severity}: ${path}: ${message}`],
  );
}

/** The plan of one service. Throws if there is none. */
export function serviceIn({ plan, findings }: ReturnType<typeof planOf>, name: string) {
  const found = plan?.apps.find(({ service }) => service === name);
  if (found === undefined) throw new Error(`There is no ${name}: ${JSON.stringify(findings)}`);
  return found;
}
