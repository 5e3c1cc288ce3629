/** `hibernaut usage`: tables for people, values for spreadsheets. */
import { Usage } from "@hibernaut/metering";
import { beforeAll, expect, test } from "vitest";
import { newWorld, runningMachine, startPlatform } from "../../platform/test/helpers/fake-world.ts";
import { csv } from "../src/commands/usage.ts";
import { startCli, useCli } from "./helpers.ts";

const cli = useCli();
let id: string;

beforeAll(async () => {
  const { machines, apps } = cli.server.platform;
  apps.create("blog");
  const { record } = await machines.create("shop", { name: "web", config: { image: "x" } });
  id = record.id;
  await machines.wait("shop", id, ["running"], { timeoutMs: 5000 });
  await machines.create("blog", { name: "post", config: { image: "x" }, skipLaunch: true });
});

test("shows one line per app, the sum, and what sleeping saved", async () => {
  const { code, stdout } = await cli.hibernaut("usage");
  expect(code).toBe(0);
  // HIBERNAUT_APP is set: it does not narrow what is asked of all.
  expect(stdout).toMatch(/^APP +RUNNING +SUSPENDED +STOPPED +STORAGE +WAKES +PROXIED\nblog +0 s +0 s +\d+ s /);
  expect(stdout).toMatch(/^shop +\d+ s +0 s +0 s +0\.00 GB-months +0 +0\.0 MB$/m);
  expect(stdout).toMatch(/^total +\d+ s/m);
  expect(stdout).toMatch(
    /\n\nFrom \d{4}-\d\d-\d\d to .* UTC\. Machines used no CPU and memory for \d+% of the time\.\n$/,
  );
});

test("shows machines and days of one app", async () => {
  const { stdout } = await cli.hibernaut("usage --app shop --by machine");
  expect(stdout).toMatch(new RegExp(`^APP +MACHINE +NAME .*\nshop +${id} +web +\\d+ s`));
  const { document } = await cli.json("usage --by day --since 2d");
  expect(document.usage).toHaveLength(3);
  expect(document.usage.at(-1).day).toBe(new Date().toISOString().slice(0, 10));
});

test("writes comma-separated values", async () => {
  const { stdout } = await cli.hibernaut("usage --by machine --csv");
  const [head = "", first = "", second = "", rest] = stdout.split("\n");
  expect(head).toMatch(/^app_name,machine_id,machine_name,day,running_seconds,.*,saved_by_sleeping$/);
  for (const line of [first, second]) expect(line.split(",")).toHaveLength(head.split(",").length);
  expect(first).toMatch(/^blog,[0-9a-f]{14},post,,0,0,/);
  expect(second).toMatch(new RegExp(`^shop,${id},web,,\\d`));
  expect(rest).toBe("");
  expect(csv(["a", "b"], [{ a: 'x,"y"', b: null }])).toBe('a,b\n"x,""y""",');
});

test("refuses what makes no sense", async () => {
  expect(await cli.hibernaut("usage --csv --json")).toMatchObject({ code: 2 });
  expect((await cli.hibernaut("usage --by week")).stderr).toMatch(/week/);
  const turned = await cli.hibernaut("usage --since 1d --until 2d");
  expect(turned).toMatchObject({ code: 2, stderr: expect.stringContaining("must be before") });
  expect(await cli.json("usage --app nothing")).toMatchObject({ code: 1, document: { error: "not_found" } });
});

test("shows cost and what running the whole time would have cost, if there are prices", {
  timeout: 60_000,
}, async () => {
  let now = Date.now();
  const world = await newWorld({ now: () => now });
  const platform = await startPlatform(world);
  const prices = { currency: "EUR", cpu_second: 0.001, memory_gb_second: 0, storage_gb_month: 0 };
  const priced = await startCli({ usage: new Usage({ store: world.store.usage, prices, now: () => now }) });
  try {
    const machine = await runningMachine(platform);
    now += 1000_000;
    platform.machines.suspend("shop", machine);
    await platform.machines.wait("shop", machine, ["suspended"], { timeoutMs: 5000 });
    now += 99_000_000;
    const { stdout } = await priced.hibernaut("usage");
    expect(stdout).toMatch(/ COST +SAVED\nshop +17 min +27\.5 h .* €1\.00 +€99\.00\n/);
    expect(stdout).toContain("Cost €1.00; running the whole time, it would have been €100.00.");
  } finally {
    await priced.close();
    await platform.close();
    await world.dispose();
  }
});
