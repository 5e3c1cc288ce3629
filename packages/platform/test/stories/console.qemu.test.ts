/**
 * A guest that prints to its serial console forever.
 *
 * @module-tag again
 */
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { MOST_CONSOLE_BYTES } from "../../../machines/src/console-log.ts";
import { Place } from "../helpers/served.ts";
import { shellImage } from "../helpers/shell-image.ts";

const place = Place.forTests();

test("does not fill the disk, and when it crashes, the last lines still say why", async () => {
  const config = {
    ...{ image: await shellImage(), init: { cmd: ["-c", "exec sleep 3600"] }, services: [] },
    restart: { policy: "no" as const },
  };
  const { machine_id: id } = await place.machine(config);
  const exec = (script: string) => place.client.runExec(place.app, id, { command: ["sh", "-c", script] });
  const log = join(place.dataDir, "machines", id, "console.log");
  const size = async () => (await stat(log)).size;
  expect((await exec("(yes a line of noise > /dev/ttyS0 2> /dev/null &) ; echo started")).stdout).toBe("started\n");

  const seen: number[] = [];
  await vi.waitFor(async () => expect(seen[seen.push(await size()) - 1]).toBeGreaterThan(MOST_CONSOLE_BYTES), {
    timeout: 90_000,
    interval: 50,
  });
  await vi.waitFor(async () => expect(await size()).toBeLessThan(MOST_CONSOLE_BYTES / 2), {
    timeout: 20_000,
    interval: 50,
  });
  const cut = await size();
  await vi.waitFor(async () => expect(await size(), "it prints on, at the end of what is left").toBeGreaterThan(cut), {
    timeout: 20_000,
  });

  await exec("echo c > /proc/sysrq-trigger").catch(() => {}); // it ends with its machine
  await place.reach(id, "failed");
  expect((await place.get(id)).state_reason).toMatch(/kernel has crashed.*Kernel panic - not syncing: sysrq/);
});
