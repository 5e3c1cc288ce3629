/** Rules about which images to trust (containers-policy.json): skopeo keeps them, so registries they speak of are left to it. */
import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";

/** Where skopeo looks for rules. The first one that is there counts. */
export function policyFiles(): string[] {
  return [join(homedir(), ".config/containers/policy.json"), "/etc/containers/policy.json"];
}

interface Policy {
  default?: unknown;
  transports?: { docker?: Record<string, unknown> };
}

/** Whether there are rules for images of registries, other than to accept them all, which is what Debian installs. */
export async function registriesHaveRules(files = policyFiles()): Promise<boolean> {
  for (const file of files) {
    const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) =>
      // A file we may not read may hold rules: skopeo will say so.
      error.code === "ENOENT" || error.code === "ENOTDIR" ? undefined : "",
    );
    if (text !== undefined) return restricts(text);
  }
  return false;
}

function restricts(text: string): boolean {
  try {
    const { default: fallback, transports } = JSON.parse(text) as Policy;
    return ![fallback, ...Object.values(transports?.docker ?? {})].every(acceptsAnything);
  } catch {
    return true;
  }
}

function acceptsAnything(requirements: unknown): boolean {
  const list = Array.isArray(requirements) ? (requirements as ({ type?: unknown } | null)[]) : [];
  return list.length > 0 && list.every((requirement) => requirement?.type === "insecureAcceptAnything");
}
