/** Builds the image of a Go app: a shell and certificates, and the program. */

import { stat } from "node:fs/promises";
import { join } from "node:path";
import { addBase } from "./base.ts";
import { APP_USER, MODES } from "./entries.ts";
import { type Job, type Made, settingsFor } from "./job.ts";
import { writeLayer } from "./layer.ts";
import { appEntries } from "./node.ts";
import { runTool } from "./run-tool.ts";

/**
 * A program that needs nothing of its host: without C, with the time zones in it, and without paths and times of the
 * build, so that the same sources give the same program.
 */
const BUILD = ["build", "-trimpath", "-buildvcs=false", "-tags=timetzdata"];

/** Builds the main package of the directory. Go keeps its own cache and changes nothing in the directory. */
export async function buildGo({ folder, place, port, fresh, report, signal }: Job): Promise<Made> {
  const out = join(place.work, "program");
  const args = [...BUILD, ...(fresh ? ["-a"] : []), "-o", out, "."];
  const env = { CGO_ENABLED: "0", GOOS: "linux", GOARCH: "amd64" };
  const options = { cwd: folder.path, env, log: place.log, signal, what: "`go build`" };
  await report.progress("Running go build", runTool("go", args, options));
  const base = await addBase(place.bases, place.blobs, { parts: { name: "plain", programs: {} }, signal });
  const { size } = await stat(out);
  const program = { kind: "file", path: "app/app", mode: MODES.program, owner: APP_USER, size, from: out } as const;
  const layer = await report.progress("Packing the app", writeLayer(place.blobs, appEntries([program]), signal));
  return { layers: [base, layer], settings: settingsFor(["/app/app"], { port }) };
}
