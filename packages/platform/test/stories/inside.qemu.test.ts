/**
 * What an app finds inside its machine, and how its end is told.
 *
 * @module-tag again
 */
import { expect, test } from "vitest";
import { Notes } from "../helpers/notebook.ts";
import { COUNTER_IMAGE } from "../helpers/qemu-world.ts";
import { Place } from "../helpers/served.ts";

const place = Place.forTests({ HIBERNAUT_REGION: "attic", HIBERNAUT_NETWORK: "user" });

/** Serves what a program inside the guest can see; runs as the image's user. */
const LOOK = `
const { readFileSync, writeFileSync, statSync } = require("fs");
const { execFileSync, spawn } = require("child_process");
const read = (path) => readFileSync(path, "utf8");
// An orphan: its parent ends before it does, so that only PID 1 can reap it.
spawn(process.execPath, ["-e", "require('child_process').spawn(process.execPath, ['-e', 'setTimeout(() => {}, 100)'], { detached: true, stdio: 'ignore' }).unref()"]);
const look = () => ({
  env: process.env, uid: process.getuid(), gid: process.getgid(), cwd: process.cwd(), argv: process.argv,
  hostname: require("os").hostname(), mounts: read("/proc/mounts"), resolv: read("/etc/resolv.conf"), hosts: read("/etc/hosts"),
  pid1: read("/proc/1/comm").trim(), memory: require("os").totalmem(), now: Date.now(),
  tmp: (writeFileSync("/tmp/mine", "x"), statSync("/tmp/mine").uid),
  shm: (writeFileSync("/dev/shm/mine", "x"), true), random: require("crypto").randomBytes(8).toString("hex"),
  zombies: require("fs").readdirSync("/proc").filter((name) => /^[0-9]+$/.test(name))
    .filter((pid) => { try { return / Z /.test(read("/proc/" + pid + "/stat")); } catch { return false; } }),
});
require("http").createServer((_, response) => response.end(JSON.stringify(look()))).listen(8080);
`;

interface Look {
  env: Record<string, string>;
  uid: number;
  gid: number;
  cwd: string;
  argv: string[];
  hostname: string;
  mounts: string;
  resolv: string;
  hosts: string;
  pid1: string;
  memory: number;
  now: number;
  tmp: number;
  zombies: string[];
}

test("the app runs as the image says, in a whole small system", async () => {
  const machine = await place.machine({
    image: COUNTER_IMAGE,
    init: { cmd: ["-e", LOOK, "--", "a b", "ü"] },
    env: { GREETING: "hello, world" },
    guest: { memory_mb: 320 },
  });
  const { machine_id: id, private_address: address, version } = machine;
  const look = async () => (await (await fetch(`http://${address}:8080/`)).json()) as Look;
  const asked = Date.now();
  const found = await look();
  const answered = Date.now();
  expect(found).toMatchObject({ uid: 1000, gid: 1000, cwd: "/app", hostname: id, pid1: "init", tmp: 1000 });
  expect(found.argv.slice(-2)).toEqual(["a b", "ü"]);
  expect(found.now).toBeGreaterThan(asked - 500);
  expect(found.now).toBeLessThan(answered + 500);
  expect(found.memory / 1024 / 1024).toBeGreaterThan(250);
  for (const prefix of ["HIBERNAUT", "FLY"]) {
    expect(found.env).toMatchObject({
      [`${prefix}_APP_NAME`]: "shop",
      [`${prefix}_MACHINE_ID`]: id,
      [`${prefix}_MACHINE_VERSION`]: version,
      [`${prefix}_REGION`]: "attic",
      [`${prefix}_VM_MEMORY_MB`]: "320",
      [`${prefix}_PRIVATE_IP`]: "10.0.2.15",
      [`${prefix}_IMAGE_REF`]: machine.config.image,
    });
  }
  expect(found.env).toMatchObject({ GREETING: "hello, world", PORT: "8080", HOME: expect.any(String) });
  const mounts = found.mounts.split("\n").map((line) => line.split(" ").slice(1, 3).join(" "));
  expect(mounts).toEqual(
    expect.arrayContaining([
      "/ overlay",
      "/proc proc",
      "/sys sysfs",
      "/dev devtmpfs",
      "/dev/pts devpts",
      "/dev/shm tmpfs",
      "/run tmpfs",
    ]),
  );
  expect(found.resolv).toBe("nameserver 10.0.2.3\n");
  expect(found.hosts).toContain(id);
  await expect.poll(async () => (await look()).zombies, { timeout: 20_000 }).toEqual([]);
});

/** Without a pause: a slow hog makes the guest reread its programs from disk for minutes before the kernel gives up. */
const HOG = "const kept = []; for (;;) kept.push(Buffer.alloc(32 << 20, 1));";

test.each([
  [
    "needs more memory than there is",
    { image: COUNTER_IMAGE, init: { cmd: ["-e", HOG] }, guest: { memory_mb: 160 } },
    { state: "stopped", state_reason: "the app was killed: out of memory" },
  ],
  [
    "kills itself",
    { init: { cmd: ["--after", "100", "--signal", "9"] } },
    { state: "stopped", state_reason: "the app was ended by signal 9" },
  ],
  [
    "is not there",
    { init: { exec: ["no-such-program"] } },
    { state: "failed", state_reason: expect.stringMatching(/could not be run: No such file or directory/) },
  ],
])("an app that %s is told as that", async (_what, config, told) => {
  const { machine_id: id } = await place.machine({ ...config, services: [], restart: { policy: "no" } });
  await place.reach(id, "stopped", "failed");
  expect(await place.get(id)).toMatchObject(told);
});

test("what an app writes is kept while it sleeps, and gone after a stop, which nothing but a start ends", {
  tags: "again",
}, async () => {
  const init = { cmd: ["--notes", "/tmp/note"] };
  const { machine_id: id, private_address: address } = await place.machine({ init, restart: { policy: "always" } });
  const notes = new Notes(address);
  expect(await notes.all()).toEqual([]);
  await notes.add("kept");
  await place.suspend(id);
  await place.start(id);
  expect(await notes.all()).toEqual(["kept"]);
  await place.client.stopMachine(place.app, id);
  await place.reach(id, "stopped");
  expect((await place.client.listMachineEvents(place.app, id)).map(({ type }) => type)[0]).toBe("halted");
  await place.start(id);
  expect(await notes.all()).toEqual([]);
});
