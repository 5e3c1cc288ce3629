/** Builds the image of a static site: Node, a small server of ours, the files. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { ROOT } from "../../bin/newer-node.js";
import { addBase } from "./base.ts";
import { readContext, warnOfSize } from "./context.ts";
import { complete, textFile } from "./entries.ts";
import { type Job, type Made, settingsFor } from "./job.ts";
import { writeLayer } from "./layer.ts";
import { appEntries, NODE_BASE } from "./node.ts";

/** The server, where this program is installed and in images. */
const SERVER = join(ROOT, "packages/cli/bin/static-server.mjs");
const IN_IMAGE = "usr/local/lib/hibernaut/static-server.mjs";

/** Builds it from the directory that has the index.html. */
export async function buildStatic({ folder, place, ignore, port, report, signal }: Job): Promise<Made> {
  const base = await report.progress(
    `Packing Node ${process.version.slice(1)}`,
    addBase(place.bases, place.blobs, { parts: NODE_BASE, signal }),
  );
  const pages = folder.pages ?? ".";
  // The rules are written for the whole directory.
  const below = Object.assign((path: string) => ignore(pages === "." ? path : `${pages}/${path}`), {
    hasExceptions: ignore.hasExceptions,
  });
  const { entries, bytes } = await readContext(join(folder.path, pages), below, { signal });
  warnOfSize(report, bytes);
  const server = complete([textFile(IN_IMAGE, await readFile(SERVER, "utf8"))]);
  const layers = await report.progress(
    "Packing the site",
    Promise.all([server, appEntries(entries)].map((list) => writeLayer(place.blobs, list, signal))),
  );
  return { layers: [base, ...layers], settings: settingsFor(["node", `/${IN_IMAGE}`, "/app"], { port }) };
}
