/** The small app as an image: only one static program. See `app.c` for what it does. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { chmod, mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { writeLayout } from "../../../../../scripts/lib/node-image.mjs";
import { hostFile } from "../../../../cli/src/build/base.ts";
import { directory } from "../../../../cli/src/build/entries.ts";

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

/** Reference of the image. Only the global setup packs it, so that two test files never do so at the same time. */
export const SMALL_APP = `oci:${OUT}/layout:latest`;

/** Compiles and packs the small app, unless it is there and was made from the same source. */
export async function packSmallApp(): Promise<void> {
  const inputs = [await readFile(SOURCE), await readFile(import.meta.filename)];
  const fingerprint = inputs.reduce((hash, input) => hash.update(input), createHash("sha256")).digest("hex");
  if ((await readFile(join(OUT, "fingerprint"), "utf8").catch(() => "")) === fingerprint) return;
  await mkdir(join(ROOT, ".build"), { recursive: true });
  const work = await mkdtemp(`${OUT}.tmp-`);
  try {
    // mkdtemp made it private; platforms of other users read it too.
    await chmod(work, 0o755);
    await compileStatic(SOURCE, join(work, "app"));
    await writeImage(join(work, "layout"), join(work, "app"), []);
    await writeFile(join(work, "fingerprint"), fingerprint);
    await rm(OUT, { recursive: true, force: true });
    await rename(work, OUT);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** Writes an OCI layout in which the small app starts with these arguments. */
export async function packSmallAppWith(args: string[], layout: string): Promise<void> {
  await writeImage(layout, join(OUT, "app"), args);
}

/** Compiles a C file to a program that needs nothing else. */
export async function compileStatic(source: string, program: string): Promise<void> {
  await promisify(execFile)("cc", [...FLAGS, "-o", program, source]);
}

/** Writes an OCI layout with one static program, `/app`, and starts it with these arguments. */
export async function writeImage(layout: string, program: string, args: string[]): Promise<void> {
  const directories = DIRECTORIES.map((name) => directory(name, name === "tmp" ? { mode: 0o1777 } : {}));
  await writeLayout(layout, [...directories, await hostFile(program, "app", 0o755)], { ...CONFIG, Cmd: args });
}
