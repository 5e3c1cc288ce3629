/**
 * Makes `first-release.tar.gz`, the data directory that version 0.1 leaves behind, with the code of version 0.1 and its
 * fake hypervisor. It was run once and is kept to show where the file comes from:
 *
 *   node packages/platform/test/upgrade/make-fixture.ts
 */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { FirstRelease } from "../helpers/first-release.ts";
import { openTempFolder } from "../helpers/temp.ts";

/** Runs inside of version 0.1. Its argument is the directory to copy the data directory to. */
const MAKE = `
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newWorld, SMALL, startPlatform } from "./helpers/fake-world.ts";
import { BundleStore } from "../src/guest/bundles.ts";

const to = process.argv[2];
const world = await newWorld();
const machines = await startPlatform(world);
machines.createApp("shop");
machines.setSecrets("shop", { TOKEN: "hunter2" });
const reach = (id, state) => machines.wait("shop", id, [state], { timeoutMs: 10_000 });
const make = async (name, config) => {
  const { record } = await machines.create("shop", { name, config: { ...SMALL, ...config } });
  await reach(record.id, "running");
  return record.id;
};
const sleeper = await make("sleeper", { env: { COLOR: "blue" } });
const keeper = await make("keeper", { mounts: [{ volume: "data", path: "/data" }] });
const answer = world.host.guest(sleeper).request();
machines.suspend("shop", sleeper);
await reach(sleeper, "suspended");
machines.stop("shop", keeper);
await reach(keeper, "stopped");
const { version, bundleVersion, snapshot, config } = machines.get("shop", sleeper).record;
await machines.close();
world.store.close();
const built = join(to, "../built");
mkdirSync(built);
for (const [name, text] of [["vmlinuz", "kernel"], ["initrd", "initramfs"]]) writeFileSync(join(built, name), text);
const bundle = { version: bundleVersion, kernel: "6.1.0", agent: "", built_from: { kernel: [], agent_version: "0.1.0+0", inputs: "" } };
writeFileSync(join(built, "bundle.json"), JSON.stringify(bundle, null, 2) + "\\n");
await BundleStore.open(world.folder, built);
const expected = { sleeper, keeper, answer, version, bundleVersion, generation: snapshot.generation, config };
writeFileSync(join(world.folder, "expected.json"), JSON.stringify(expected, null, 2) + "\\n");
// Hard links stay links, and holes stay holes.
execFileSync("cp", ["-a", "--sparse=always", world.folder, to]);
await world.dispose();
process.exit(0);
`;

const release = await FirstRelease.open();
const work = await openTempFolder("fixture");
try {
  const data = join(work.path, "data");
  console.log(await release.run(MAKE, [data]));
  const file = join(import.meta.dirname, "first-release.tar.gz");
  // S: the memory and the volume are files of their full size with next to nothing in them.
  execFileSync("tar", ["-C", data, "--owner=0", "--group=0", "-czSf", file, "."]);
  console.log(execFileSync("tar", ["-tvzf", file], { encoding: "utf8" }));
} finally {
  await work.dispose();
  await release.dispose();
}
