/** The image of the network's tests: Node, the probe, a shell, curl and `ip`, packed from this machine's own programs. */
import { realpath } from "node:fs/promises";
import { join } from "node:path";
import { build } from "esbuild";
import { packNodeApp } from "../../../../scripts/lib/node-image.mjs";

const ROOT = join(import.meta.dirname, "../../../..");
const APP = join(import.meta.dirname, "app.ts");

/** Packs it, unless it is there, and returns its reference. Its user is root: it changes its own addresses. */
export async function probeImage(): Promise<string> {
  const { ref } = await packNodeApp({
    out: join(ROOT, ".build/test-probe"),
    inputs: [APP, join(import.meta.dirname, "try.ts"), import.meta.filename],
    programs: {
      "bin/sh": await realpath("/bin/sh"),
      "usr/bin/ip": await realpath("/usr/sbin/ip"),
      "usr/bin/curl": "/usr/bin/curl",
    },
    config: { Env: ["PATH=/usr/local/bin:/usr/bin:/bin"], Entrypoint: ["node"], Cmd: ["/app.mjs"], WorkingDir: "/" },
    files: async (work) => {
      // Node takes seconds to load what strips types, under emulation.
      const outfile = join(work, "app.mjs");
      await build({ entryPoints: [APP], outfile, bundle: true, platform: "node", format: "esm", target: "node24" });
      return [{ from: outfile, to: "app.mjs" }];
    },
  });
  return ref;
}
