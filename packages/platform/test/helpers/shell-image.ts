/** An image with a shell, curl and a few tools in addition to Node, packed from this machine's own programs. */
import { realpath } from "node:fs/promises";
import { join } from "node:path";
import { packNodeApp } from "../../../../scripts/lib/node-image.mjs";
import { findTool, libraryPath } from "../../../../scripts/lib/test-tools.mjs";

const ROOT = join(import.meta.dirname, "../../../..");
const TOOLS = "cat chmod date dd env head id ls mkdir sha256sum sleep stty tty wc yes".split(" ");

/** Packs it, unless it is there, and returns its reference. Its command is `/bin/sh`, its user is root. */
export async function shellImage(): Promise<string> {
  const programs: Record<string, string> = {
    "bin/sh": await realpath("/bin/sh"),
    "usr/bin/curl": findTool("curl"),
  };
  for (const tool of TOOLS) programs[`usr/bin/${tool}`] = `/usr/bin/${tool}`;
  const { ref } = await packNodeApp({
    out: join(ROOT, ".build/test-shell"),
    inputs: [import.meta.filename],
    libraryPath: libraryPath(),
    programs,
    config: { Env: ["PATH=/usr/local/bin:/usr/bin:/bin"], Entrypoint: ["/bin/sh"], WorkingDir: "/" },
    files: async () => [],
  });
  return ref;
}
