/** Rules about trusted images (containers-policy.json). skopeo enforces them, so with rules it has to fetch the images. */
import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { isAbsent } from "@hibernaut/lib/absence";

/** Lists the files in which skopeo looks for rules. The first one that exists counts. */
export function policyFiles(): string[] {
  return [join(homedir(), ".config/containers/policy.json"), "/etc/containers/policy.json"];
}

interface Policy {
  default?: unknown;
  transports?: { docker?: Record<string, unknown> };
}

/** Whether there are rules for registries other than to accept every image, which is what Debian installs. */
export async function registriesHaveRules(files = policyFiles()): Promise<boolean> {
  for (const file of files) {
    const text = await readFile(file, "utf8").catch((error: unknown) =>
      // A file that we may not read may contain rules; skopeo will report it.
      isAbsent(error) ? undefined : "",
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
