/**
 * @module-tag again
 */
// From a real registry over a slow line to a machine that runs: command line and platform die by `kill -9` in between.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { openBadLine } from "../../../images/test/bad-line.ts";
import { temporaryFolder } from "../../../images/test/fixtures.ts";
import { startRegistry } from "../../../images/test/real-registry.ts";
import { askUntilAnswered, COUNTER_IMAGE, dataFolder } from "../helpers/qemu-world.ts";
import { NOTHING_LEFT, Place } from "../helpers/served.ts";

const CLI = join(import.meta.dirname, "../../../cli/bin/hibernaut.js");
const MB = 1024 * 1024;

test("a pull that kill -9 cut twice is finished, and the machine runs", async () => {
  await using temporary = await temporaryFolder();
  const registry = await startRegistry(temporary.path);
  onTestFinished(() => registry.stop());
  await registry.push(COUNTER_IMAGE.replace(/^oci:/, ""), "counter:1");
  const line = await openBadLine(registry.host, ({ url }) => (url?.includes("/blobs/") ? { slowMs: 3 } : {}));
  onTestFinished(() => line.close());
  const ref = `${line.host}/counter:1`;
  const bytes = () => [...line.blobBytes().values()].reduce((total, count) => total + count, 0);
  const place = await Place.open({}, await dataFolder());
  const cli = async (...args: string[]) => {
    const env = { ...process.env, HIBERNAUT_API_URL: place.client.apiUrl, HIBERNAUT_API_TOKEN: await place.token() };
    return spawn(process.execPath, [CLI, ...args], { env, stdio: ["ignore", "ignore", "pipe"] });
  };

  const first = await cli("machine", "run", ref, "--app", place.app);
  await expect.poll(bytes, { timeout: 30_000, interval: 10 }).toBeGreaterThan(5 * MB);
  first.kill("SIGKILL");
  // The platform hears that nobody waits, and stops.
  await expect.poll(() => line.underWay(), { timeout: 10_000 }).toBe(0);
  expect(await place.client.listMachines(place.app)).toEqual([]);
  const afterFirst = bytes();

  const second = await cli("images", "pull", ref);
  await expect.poll(bytes, { timeout: 30_000, interval: 10 }).toBeGreaterThan(afterFirst + 5 * MB);
  await place.served.kill();
  await once(second, "exit");
  await place.served.start();
  expect(await place.client.listImages()).toEqual([]);

  const before = bytes();
  const third = await cli("machine", "run", ref, "--app", place.app, "--port", "8080", "--json");
  const [code] = (await once(third, "exit")) as [number];
  expect(code).toBe(0);
  const [machine] = await place.client.listMachines(place.app);
  expect(machine).toMatchObject({ state: "running", config: { image: ref } });
  expect(await askUntilAnswered(machine?.private_address ?? "")).toMatchObject({ count: expect.any(Number) });
  const [layer] = [...line.blobBytes().values()].toSorted((a, b) => b - a);
  expect(bytes() - before).toBeLessThan((layer ?? 0) - 9 * MB);
  expect(await place.client.listImages()).toMatchObject([{ ref, in_use: true }]);
  expect(await place.client.pruneImages()).toMatchObject({ deleted: [] });
  expect(await place.close()).toEqual(NOTHING_LEFT);
});
