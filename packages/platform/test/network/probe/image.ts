/** The image of the network's tests: Node, the probe, a shell, curl and `ip`, packed from this machine's own programs. */
import { realpath } from "node:fs/promises";
import { join } from "node:path";
import { packNodeApp } from "../../../../../scripts/lib/node-image.mjs";

const ROOT = join(import.meta.dirname, "../../../../..");
const SOURCES = ["app.ts", "try.ts"].map((name) => join(import.meta.dirname, name));

/** Packs it, unless it is there, and returns its reference. Its user is root: it changes its own addresses. */
export async function probeImage(): Promise<string> {
  const { ref } = await packNodeApp({
    out: join(ROOT, ".build/test-probe"),
    inputs: SOURCES,
    programs: {
      "bin/sh": await realpath("/bin/sh"),
      "usr/bin/ip": await realpath("/usr/sbin/ip"),
      "usr/bin/curl": "/usr/bin/curl",
    },
    config: { Env: ["PATH=/usr/local/bin:/usr/bin:/bin"], Entrypoint: ["node"], Cmd: ["/app/app.ts"], WorkingDir: "/" },
    files: async () => SOURCES.map((from) => ({ from, to: `app/${from.split("/").at(-1)}` })),
  });
  return ref;
}
