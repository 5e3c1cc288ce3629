/**
 * What runs in a machine: an app gets signals, is seen among the processes, and takes its machine with it.
 *
 * @module-tag again
 */
import { expect, test } from "vitest";
import { Place } from "../helpers/served.ts";
import { shellImage } from "../helpers/shell-image.ts";

const place = Place.forTests();
/** Until Node runs in an emulated machine, with others on the same CPUs. In milliseconds. */
const STARTS_MS = 120_000;

/** Says which signals it gets, and listens inside the machine only. */
const APP = `
  for (const name of ["SIGHUP", "SIGUSR2"]) process.on(name, () => console.log("got " + name));
  require("node:http").createServer().listen(7070, "127.0.0.1", () => console.log("listening"));`;

test("an app gets signals, is listed with where it listens, and ends its machine with auto_destroy", async () => {
  const { app, client } = place;
  const init = { exec: ["node", "-e", APP] };
  await client.createVolume(app, { name: "data", size_gb: 1 });
  const end = { auto_destroy: true, restart: { policy: "no" as const } };
  const mounts = [{ volume: "data", path: "/data" }];
  const { machine_id: id } = await place.machine({ image: await shellImage(), init, services: [], mounts, ...end });
  const printed = () => Array.fromAsync(client.readLogs(app, { machine: [id] }), ({ text }) => text);
  await expect.poll(printed, { timeout: STARTS_MS }).toContain("listening");

  await client.signalMachine(app, id, "SIGHUP");
  await client.signalMachine(app, id, "SIGUSR2");
  await expect.poll(printed, { timeout: STARTS_MS }).toEqual(expect.arrayContaining(["got SIGHUP", "got SIGUSR2"]));
  const [last] = await client.listMachineEvents(app, id, { limit: 1 });
  expect(last).toMatchObject({ type: "signal_sent", details: { signal: "SIGUSR2" } });

  const processes = await client.listProcesses(app, id, { sort_by: "rss", order: "desc" });
  const [biggest] = processes;
  expect(biggest).toMatchObject({
    command: expect.stringMatching(/^node -e /),
    directory: "/",
    listen_sockets: [{ proto: "tcp", address: "127.0.0.1:7070" }],
  });
  expect(biggest?.rss).toBeGreaterThan(10 * 1024 * 1024);
  expect(processes.map(({ command }) => command)).toContain("/init");
  expect(processes.map(({ command }) => command).join()).not.toMatch(/kthreadd|kworker/);

  await client.signalMachine(app, id, "SIGKILL");
  await place.reach(id, "destroyed");
  const history = await client.listMachineEvents(app, id);
  expect(history.find(({ type }) => type === "app_ended")).toMatchObject({ details: { signal: 9 } });
  expect(history.find(({ type }) => type === "halted")).toMatchObject({ to: "destroying" });
  expect(await client.listVolumes(app)).toMatchObject([{ name: "data", attached_machine_id: null }]);
});
