/** Schedules from the command line and from an app file. */
import { expect, test } from "vitest";
import { freshCli } from "./helpers.ts";

const cli = freshCli();

test("a schedule is set with its time zone, shown with the next run, and removed", async () => {
  const zone = ["--schedule-timezone", "Europe/Berlin"];
  const ran = await cli.hibernaut(["machine", "run", "app:1", "--port", "8080", "--schedule", "0 3 * * *", ...zone]);
  expect(ran.code).toBe(0);
  expect((await cli.hibernaut("machine status")).stdout).toMatch(
    /^schedule +0 3 \* \* \* \(Europe\/Berlin\), next run \d{4}-\d\d-\d\d 0[12]:00:00 \+00:00$/m,
  );
  const off = await cli.hibernaut("machine update --schedule off");
  expect(off.code).toBe(0);
  const { document } = await cli.json("machine status");
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
  const { code, stderr } = await cli.deploy('app = "shop"\n[build]\nimage = "app:1"\n[schedule]\nwhen = "hourly"\n');
  expect({ code, stderr }).toMatchObject({ code: 0 });
  const { document } = await cli.json("machine status");
  expect(document).toMatchObject({ state: "stopped", config: { schedule: "hourly" }, next_run: expect.any(String) });
});
