/** Prints what one machine takes in a host's copy of the directory, in bytes. Run it with `--expose-gc`. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { KEYS } from "@hibernaut/cluster/keys";
import { LocalDirectory } from "../../packages/cluster/src/local/directory.ts";
import { DirectoryView } from "../../packages/cluster/src/view.ts";

const machines = Number(process.argv[2]);
const BATCH = 100;
const route = {
  name: "drowsy-marmot-4821",
  lastBoot: { kind: "resume", at: "2026-01-01T00:00:00.000Z" },
  healthy: true,
  reason: null,
  crash: null,
  unreachable: null,
  cordoned: false,
  resting: false,
  policy: { port: 8080, autostop: "suspend", softLimit: 20, hardLimit: null, idleMs: 60_000 },
};

const folder = mkdtempSync(join(tmpdir(), "hibernaut-scale-"));
const directory = new LocalDirectory(join(folder, "directory.db"));
try {
  let revision = 0;
  for (let first = 0; first < machines; first += BATCH) {
    const changes = Array.from({ length: BATCH }, (_, index) => {
      const id = (first + index).toString(16).padStart(14, "0");
      const app = `app-${(first + index) % 500}`;
      const owner = {
        app,
        name: `m${first + index}`,
        host: `host-${(first + index) % 100}`,
        epoch: 1,
        address: "10.1.2.3",
      };
      return [
        { key: `${KEYS.machines}${id}`, value: JSON.stringify(owner) },
        { key: `${KEYS.names}${app}/m${first + index}`, value: JSON.stringify(id) },
        { key: `${KEYS.states}${id}`, value: JSON.stringify({ epoch: 1, state: "suspended", load: 0, route }) },
      ];
    });
    revision = (await directory.transact([], changes.flat())) ?? 0;
  }
  const before = used();
  const view = new DirectoryView({ directory });
  view.start();
  await view.reached(revision);
  process.stdout.write(JSON.stringify({ machines, view_bytes: Math.round((used() - before) / machines) }));
  await view.close();
} finally {
  await directory.close();
  rmSync(folder, { recursive: true, force: true });
}

function used() {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}
