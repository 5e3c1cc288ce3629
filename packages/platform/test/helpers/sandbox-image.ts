/** An image as sandboxes need it, with bash and a user, packed from this machine's own programs. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { packNodeApp } from "../../../../scripts/lib/node-image.mjs";
import { libraryPath } from "../../../../scripts/lib/test-tools.mjs";

const ROOT = join(import.meta.dirname, "../../../..");
const TOOLS = "cat chmod chown find head id ln ls mkdir mv realpath rm sleep stat sync touch tty".split(" ");
const PASSWD = "root:x:0:0:root:/root:/bin/bash\nuser:x:1000:1000::/home/user:/bin/bash\n";
const GROUP = "root:x:0:\nuser:x:1000:\n";

/** Packs it, unless it is there, and returns its reference. */
export async function sandboxImage(): Promise<string> {
  const programs: Record<string, string> = { "bin/bash": "/bin/bash", "bin/sh": "/bin/bash" };
  for (const tool of TOOLS) programs[`usr/bin/${tool}`] = `/usr/bin/${tool}`;
  const { ref } = await packNodeApp({
    out: join(ROOT, ".build/test-sandbox"),
    inputs: [import.meta.filename],
    libraryPath: libraryPath(),
    programs,
    writable: ["home/user"],
    config: { Env: ["PATH=/usr/local/bin:/usr/bin:/bin"], Cmd: ["/usr/bin/sleep", "infinity"], WorkingDir: "/" },
    async files(work) {
      await writeFile(join(work, "passwd"), PASSWD);
      await writeFile(join(work, "group"), GROUP);
      return [
        { from: join(work, "passwd"), to: "etc/passwd" },
        { from: join(work, "group"), to: "etc/group" },
      ];
    },
  });
  return ref;
}
