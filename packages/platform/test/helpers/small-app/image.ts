/** The small app as an image: one static program and nothing else. See `app.c` for what it does. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { chmod, mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { writeLayout } from "../../../../../scripts/lib/node-image.mjs";

const ROOT = join(import.meta.dirname, "../../../../..");
const SOURCE = join(import.meta.dirname, "app.c");
const OUT = join(ROOT, ".build/test-small-app");
const FLAGS = "-std=c11 -O2 -static -pthread -Wall -Wextra -Wpedantic -Werror".split(" ");
const CONFIG = {
  User: "1000:1000",
  ExposedPorts: { "8080/tcp": {} },
  Env: ["PATH=/usr/local/bin:/usr/bin:/bin"],
  Entrypoint: ["/app"],
  WorkingDir: "/",
};
/** Mount points, and where apps may write. */
const DIRECTORIES = ["dev", "proc", "run", "sys", "tmp"];

/** Its reference. Only the tests' global set-up packs it, so that no two tests do at once. */
export const SMALL_APP = `oci:${OUT}:latest`;

/** Compiles and packs it, unless it is there and made from the same source. */
export async function packSmallApp(): Promise<void> {
  const inputs = [await readFile(SOURCE), await readFile(import.meta.filename)];
  const fingerprint = inputs.reduce((hash, input) => hash.update(input), createHash("sha256")).digest("hex");
  if ((await readFile(join(OUT, ".fingerprint"), "utf8").catch(() => "")) === fingerprint) return;
  await mkdir(join(ROOT, ".build"), { recursive: true });
  const work = await mkdtemp(`${OUT}.tmp-`);
  try {
    const root = join(work, "root");
    for (const name of ["", ...DIRECTORIES]) {
      await mkdir(join(root, name));
      await chmod(join(root, name), name === "tmp" ? 0o1777 : 0o755);
    }
    await promisify(execFile)("cc", [...FLAGS, "-o", join(root, "app"), SOURCE]);
    await writeLayout(join(work, "layout"), root, CONFIG);
    await writeFile(join(work, "layout/.fingerprint"), fingerprint);
    await chmod(join(work, "layout"), 0o755);
    await rm(OUT, { recursive: true, force: true });
    await rename(join(work, "layout"), OUT);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}
