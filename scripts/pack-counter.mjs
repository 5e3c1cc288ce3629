#!/usr/bin/env node
/**
 * Packs examples/counter into an OCI layout. Needs the Node that the setup brings.
 * To run it alone: `node scripts/pack-counter.mjs [--force] [--out DIR] [--node FILE]`.
 */
import { join } from "node:path";
import { ROOT } from "./lib/node.mjs";
import { packFromCommandLine, packNodeApp } from "./lib/node-image.mjs";

const SERVER = join(ROOT, "examples/counter/server.mjs");

const COUNTER = {
  out: join(ROOT, ".build/counter"),
  inputs: [SERVER],
  config: {
    User: "app",
    ExposedPorts: { "8080/tcp": {} },
    Env: ["PATH=/usr/local/bin:/usr/bin:/bin", "PORT=8080"],
    Entrypoint: ["node"],
    Cmd: ["/app/server.mjs"],
    WorkingDir: "/app",
  },
  files: async () => [{ from: SERVER, to: "app/server.mjs" }],
};

/** @param {import("./lib/node-image.mjs").PackOptions} [options] */
export const packCounter = (options) => packNodeApp(COUNTER, options);

await packFromCommandLine(import.meta.url, packCounter);
