/** Schedules from the command line and from an app file. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { SERVICE, startCli, type TestCli } from "./helpers.ts";

// Each test starts several processes, and the host may be busy.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

let cli: TestCli;
beforeEach(async () => {
  cli = await startCli();
});
afterEach(() => cli.close());

test("a schedule is set with its time zone, shown with the next run, and removed", async () => {
  const zone = ["--schedule-timezone", "Europe/Berlin"];
  const ran = await cli.hibernaut(["machine", "run", "app:1", ...SERVICE, "--schedule", "0 3 * * *", ...zone]);
  expect(ran.code).toBe(0);
  expect((await cli.hibernaut(["machine", "status"])).stdout).toMatch(
    /^schedule +0 3 \* \* \* \(Europe\/Berlin\), next run \d{4}-\d\d-\d\d 0[12]:00:00 \+00:00$/m,
  );
  const off = await cli.hibernaut(["machine", "update", "--schedule", "off"]);
  expect(off.code).toBe(0);
  const { document } = await cli.json(["machine", "status"]);
  expect(document).toMatchObject({ next_run: null, wake_at: null });
  expect(Object.keys(document.config)).not.toContain("schedule_timezone");
});

test("a schedule that cannot be used is refused with what to use", async () => {
  const run = (...options: string[]) => cli.hibernaut(["machine", "run", "app:1", ...options]);
  expect((await run("--schedule", "0 0 30 2 *")).stderr).toMatch(/never runs: none of its months has such a day/);
  expect((await run("--schedule", "daily", "--schedule-timezone", "Mars")).stderr).toMatch(/not a known time zone/);
});

test("a deploy of a job on a schedule succeeds when the job has run and exited", async () => {
  const { platform, world } = cli.server;
  // The job is done as soon as it runs.
  platform.machines.subscribe("waiting", ({ id, state }) => {
    if (state === "running") world.host.guest(id)?.exit(0);
  });
  const file = join(await tempFolder("schedule"), "hibernaut.toml");
  await writeFile(file, 'app = "shop"\n[build]\nimage = "app:1"\n[schedule]\nwhen = "hourly"\n');
  const { code, stderr } = await cli.hibernaut(["deploy", "--config", file]);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  const { document } = await cli.json(["machine", "status"]);
  expect(document).toMatchObject({ state: "stopped", config: { schedule: "hourly" }, next_run: expect.any(String) });
});
