/** Forks on real QEMU: machines that continue from where another one is, each as itself. */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Machine } from "@hibernaut/client";
import { beforeAll, describe, expect, test } from "vitest";
import { patiently } from "../helpers/http.ts";
import { longOr } from "../helpers/long.ts";
import { Place } from "../helpers/served.ts";
import { shellImage } from "../helpers/shell-image.ts";

const place = Place.forTests();
const image = await shellImage();

/**
 * Keeps a secret in its memory and counts in a file that it holds open. Each reply says who the machine is, and draws
 * random numbers from the kernel and from OpenSSL, which is part of this process.
 */
const APP = `
  const fs = require("fs"), os = require("os"), crypto = require("crypto");
  const secret = crypto.randomUUID(), file = fs.openSync("/var/count", "a+");
  fs.writeFileSync("/etc/machine-id", crypto.randomBytes(16).toString("hex") + "\\n");
  let count = 0;
  const read = (path) => fs.readFileSync(path, "utf8").trim();
  const draw = (path) => { const fd = fs.openSync(path), bytes = Buffer.alloc(16); fs.readSync(fd, bytes); fs.closeSync(fd); return bytes.toString("hex"); };
  require("http").createServer((request, response) => {
    count += 1;
    fs.writeSync(file, "line " + count + "\\n");
    const { eth0: [{ address, mac }] } = os.networkInterfaces();
    response.end(JSON.stringify({
      secret, count, lines: read("/var/count").split("\\n").length,
      hostname: os.hostname(), etc: read("/etc/hostname"), address, mac,
      ids: [read("/etc/machine-id"), read("/proc/sys/kernel/random/boot_id")],
      kernel: draw("/dev/urandom"), openssl: crypto.randomBytes(16).toString("hex"),
    }));
  }).listen(8080);
`;

interface Answer {
  secret: string;
  count: number;
  lines: number;
  hostname: string;
  etc: string;
  address: string;
  mac: string;
  ids: string[];
  kernel: string;
  openssl: string;
}

async function ask({ private_address: address }: Machine): Promise<Answer> {
  const reply = await fetch(`http://${address}:8080/`, { headers: { connection: "close" } });
  return (await reply.json()) as Answer;
}

/** Holds a connection to the host, and one to itself. A reply says what became of the first, and how the second works. */
const CONNECTED = `
  const net = require("net");
  const gateway = require("fs").readFileSync("/proc/net/route", "utf8").match(/eth0\\s+00000000\\s+(\\w+)/)[1];
  const host = gateway.match(/../g).reverse().map((byte) => parseInt(byte, 16)).join(".");
  const next = (socket) => new Promise((resolve) => socket.once("data", (data) => resolve(String(data))));
  let outside = "open";
  const far = net.connect(Number(process.argv[1]), host);
  far.on("error", (error) => (outside = error.code));
  const loop = net.createServer((socket) => socket.pipe(socket)).listen(9000, "127.0.0.1", () => {
    const near = net.connect(9000, "127.0.0.1");
    require("http").createServer(async (request, response) => {
      if (outside === "open") { const heard = next(far); far.write("ping"); await Promise.race([heard, new Promise((resolve) => far.once("close", resolve))]); }
      const said = next(near);
      near.write("ping");
      response.end(JSON.stringify({ outside, inside: (await said) + near.localPort }));
    }).listen(8080);
  });
`;

/** How often the machine is forked while it writes. */
const ROUNDS = longOr(3, 1);

/** Adds rows to a database all the time, each of them durable before the next one. A reply says what is in it. */
const WRITER = `
  const { DatabaseSync } = require("node:sqlite");
  const db = new DatabaseSync("/var/rows.db");
  db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE rows (id INTEGER PRIMARY KEY, text TEXT)");
  const insert = db.prepare("INSERT INTO rows (text) VALUES (?)");
  let written = 0;
  setInterval(() => { insert.run("x".repeat(500)); written += 1; }, 20);
  require("http").createServer((request, response) => {
    const { verdict } = db.prepare("SELECT integrity_check AS verdict FROM pragma_integrity_check").get();
    const { rows } = db.prepare("SELECT count(*) AS rows FROM rows").get();
    response.end(JSON.stringify({ verdict, lost: written - rows, rows }));
  }).listen(8080);
`;

/** Holds this many connections to the host. A reply says how many have ended, and how. */
const CROWD = 300;
const CROWDED = `
  const net = require("net");
  const gateway = require("fs").readFileSync("/proc/net/route", "utf8").match(/eth0\\s+00000000\\s+(\\w+)/)[1];
  const host = gateway.match(/../g).reverse().map((byte) => parseInt(byte, 16)).join(".");
  const ended = {};
  let open = 0;
  for (let index = 0; index < ${CROWD}; index += 1)
    net.connect(Number(process.argv[1]), host, () => (open += 1)).on("error", ({ code }) => (ended[code] = (ended[code] ?? 0) + 1));
  require("http").createServer((request, response) => response.end(JSON.stringify({ open, ended }))).listen(8080);
`;

async function read<T>({ private_address: address }: Machine): Promise<T> {
  const reply = await fetch(`http://${address}:8080/`, { headers: { connection: "close" } });
  return (await reply.json()) as T;
}

async function tell({ private_address: address }: Machine): Promise<{ outside: string; inside: string }> {
  const reply = await fetch(`http://${address}:8080/`, { headers: { connection: "close" } });
  return (await reply.json()) as { outside: string; inside: string };
}

const destroy = (machines: readonly Machine[]) =>
  Promise.all(machines.map(({ id }) => place.client.destroyMachine(place.app, id, { force: true })));

describe("of one machine that runs", () => {
  let machine: Machine;
  beforeAll(async () => {
    machine = await place.machine({ image, init: { exec: ["node", "-e", APP] } });
    await patiently(() => ask(machine));
  });

  test("forks of a running machine continue where it is, as machines of their own, and it does not notice", async () => {
    const { id } = machine;
    const before = await ask(machine);
    expect(before).toMatchObject({ lines: before.count, hostname: id });

    const forks = await place.client.forkMachine(place.app, id, { count: 2, name: "branch" });
    expect(forks.map(({ name, origin }) => [name, origin])).toEqual([
      ["branch-1", { kind: "fork", machine_id: id, template: null }],
      ["branch-2", { kind: "fork", machine_id: id, template: null }],
    ]);
    for (const fork of forks) await place.reach(fork.id, "running", "failed");
    const [one, two] = await Promise.all(forks.map(({ id: fork }) => place.get(fork)));
    expect([one?.last_boot?.reason, two?.last_boot?.reason]).toEqual(["snapshot", "snapshot"]);

    const answers = await Promise.all([ask(machine), ask(one as Machine), ask(two as Machine)]);
    for (const answer of answers)
      expect(answer).toMatchObject({ secret: before.secret, count: before.count + 1, lines: before.count + 1 });
    expect(answers.map(({ hostname, etc }) => [hostname, etc])).toEqual(
      [id, one?.id, two?.id].map((own) => [own, own]),
    );
    expect(answers.map(({ address }) => address)).toEqual([machine, one, two].map((each) => each?.private_address));
    const different = (values: readonly unknown[]) => expect(new Set(values).size).toBe(values.length);
    different(answers.map(({ mac }) => mac));
    different(answers.flatMap(({ ids }) => ids));
    different([before, ...answers].map(({ kernel }) => kernel));
    await destroy(forks);
  });

  test("a machine goes back to a template, disk and memory, and stays who it is", { tags: "again" }, async () => {
    const before = await ask(machine);
    await place.client.createTemplate(place.app, { from: machine.id, name: "before" });
    for (const round of [1, 2]) {
      expect(await ask(machine)).toMatchObject({ count: before.count + 1, lines: before.lines + 1 });
      expect(await ask(machine)).toMatchObject({ count: before.count + 2 });
      if (round === 2) await place.suspend(machine.id);
      const { state } = await place.client.restoreMachine(place.app, machine.id, { template: "before" });
      expect(["starting", "running"]).toContain(state);
      await place.reach(machine.id, "running", "failed");
      expect((await place.get(machine.id)).last_boot?.kind).toBe("resume");
    }
    const { hostname, address, mac, secret, count } = await ask(machine);
    expect({ hostname, address, mac, secret, count }).toEqual({ ...pick(before), count: before.count + 1 });
  });

  test("a machine out of a pool has been made in advance: it wakes from memory, as itself, and draws its own numbers", {
    tags: "again",
  }, async () => {
    const before = await ask(machine);
    await place.client.createTemplate(place.app, { from: machine.id, name: "pooled", warm_pool: 1 });
    const pool = () => place.client.getTemplate(place.app, "pooled").then((template) => template.pool);
    const taken = [];
    const answers = [];
    for (let round = 0; round < 2; round += 1) {
      await expect.poll(pool, { timeout: 60_000 }).toEqual({ size: 1, ready: 1, warm: 1, reason: null });
      const { id } = await place.client.createMachine(place.app, { template: "pooled" });
      await place.reach(id, "running", "failed");
      const one = await place.get(id);
      expect(one.last_boot?.kind).toBe("warm");
      const answer = await ask(one);
      expect(answer).toMatchObject({ secret: before.secret, count: before.count + 1, hostname: id });
      answers.push(answer);
      taken.push(one);
    }
    expect(new Set([before, ...answers].flatMap(({ kernel, mac, ids }) => [kernel, mac, ...ids])).size).toBe(12);
    await place.client.deleteTemplate(place.app, "pooled");
    const left = (await place.client.listMachines(place.app)).map(({ id }) => id);
    expect(left).toEqual(expect.arrayContaining(taken.map(({ id }) => id)));
    await destroy(taken);
  });

  // It is the last one: the machine is gone afterwards.
  test("a template outlives its machine, and the platform: what is born from it begins where it stopped", async () => {
    const before = await ask(machine);
    await place.suspend(machine.id);
    const template = await place.client.createTemplate(place.app, { from: machine.id, name: "ready" });
    await place.client.destroyMachine(place.app, machine.id);
    await place.served.kill();
    await place.served.start();
    const born = await Promise.all(
      Array.from({ length: 2 }, () =>
        place.client.createMachine(place.app, { template: "ready", env: { BORN: "yes" } }),
      ),
    );
    for (const one of born) {
      await place.reach(one.id, "running", "failed");
      expect(await ask(one)).toMatchObject({ secret: before.secret, count: before.count + 1, hostname: one.id });
      const { stdout } = await place.client.runExec(place.app, one.id, {
        command: ["sh", "-c", "echo $BORN $HIBERNAUT_MACHINE_ID"],
      });
      expect(stdout.trim()).toBe(`yes ${one.id}`);
    }
    expect((await place.client.getTemplate(place.app, template.id)).machines.toSorted()).toEqual(
      born.map(({ id }) => id).toSorted(),
    );
    // Both began with its memory, and need neither it nor the platform that made them.
    await place.client.deleteTemplate(place.app, "ready");
    await place.served.kill();
    await place.served.start();
    const [one, two] = born as [Machine, Machine];
    const reached = (more: number) => ({
      secret: before.secret,
      count: before.count + more,
      lines: before.count + more,
    });
    await place.suspend(one.id);
    await place.start(one.id);
    expect(await ask(one)).toMatchObject(reached(2));
    const [fork] = await place.client.forkMachine(place.app, two.id);
    await place.reach(fork?.id ?? "", "running", "failed");
    expect(await ask(fork as Machine)).toMatchObject({ ...reached(2), hostname: fork?.id });
    expect(await ask(two)).toMatchObject(reached(2));
    for (const more of [3, 4]) {
      await place.suspend(two.id);
      await place.start(two.id);
      expect(await ask(two)).toMatchObject(reached(more));
    }
    for (const { id } of [one, two, fork as Machine]) expect((await place.get(id)).last_boot?.kind).not.toBe("cold");
  });
});

test("connections to others stay with the machine: in a fork they are reset, and those within it continue", {
  tags: "again",
}, async () => {
  const listener = createServer((socket) => void socket.pipe(socket)).listen(0, "0.0.0.0");
  await once(listener, "listening");
  let connections = 0;
  listener.on("connection", (socket) => {
    connections += 1;
    socket.on("error", () => {});
  });
  try {
    const { port } = listener.address() as AddressInfo;
    const machine = await place.machine({ image, init: { exec: ["node", "-e", CONNECTED, String(port)] } });
    const { inside } = await tell(machine);
    expect(await tell(machine)).toEqual({ outside: "open", inside });
    const [fork] = await place.client.forkMachine(place.app, machine.id);
    await place.reach(fork?.id ?? "", "running", "failed");
    expect(await tell(fork as Machine)).toEqual({ outside: "ECONNABORTED", inside });
    expect(await tell(machine)).toEqual({ outside: "open", inside });
    // A memory of its own, too, has connections of a time that is over.
    await place.client.createTemplate(place.app, { from: machine.id, name: "connected" });
    await place.client.restoreMachine(place.app, machine.id, { template: "connected" });
    await place.reach(machine.id, "running", "failed");
    expect(await tell(machine)).toEqual({ outside: "ECONNABORTED", inside });
    expect(connections).toBe(1);
    await destroy([machine, fork as Machine]);
  } finally {
    listener.close();
  }
});

test("a template is made of a configuration: its machine is prepared, looked at, and gone afterwards", {
  tags: "again",
}, async () => {
  const template = await place.client.createTemplate(place.app, {
    from: { image, init: { cmd: ["-c", "exec sleep 3600"] } },
    name: "prepared",
    prepare: ["sh", "-c", "echo prepared >/etc/prepared"],
    ready: ["sh", "-c", "test -e /etc/prepared"],
  });
  expect((await place.client.listMachines(place.app)).map(({ id }) => id)).not.toContain(template.machine_id);
  const one = await place.client.createMachine(place.app, { template: template.id });
  await place.reach(one.id, "running", "failed");
  expect((await place.get(one.id)).last_boot?.kind).toBe("resume");
  const { stdout } = await place.client.runExec(place.app, one.id, { command: ["cat", "/etc/prepared"] });
  expect(stdout.trim()).toBe("prepared");
  await destroy([one]);
});

test("forks of a machine that writes all the time have whole disks, and every row that their memory knows of", {
  tags: "again",
}, async () => {
  const machine = await place.machine({ image, init: { exec: ["node", "-e", WRITER] } });
  await expect.poll(async () => (await read<{ rows: number }>(machine)).rows, { timeout: 60_000 }).toBeGreaterThan(50);
  for (let round = 0; round < ROUNDS; round += 1) {
    const [fork] = await place.client.forkMachine(place.app, machine.id, { skip_launch: true });
    if (fork === undefined) throw new Error("there is no fork");
    const layer = join(place.dataDir, "machines", fork.id, "layer.ext4");
    const copy = join(place.dataDir, `layer-of-${fork.id}`);
    await promisify(execFile)("cp", ["--sparse=always", layer, copy]);
    // Its journal is replayed, as after a power cut: then there is nothing to mend but the sums of free blocks and inodes,
    // which ext4 itself does not trust.
    const { stdout } = await promisify(execFile)("/usr/sbin/e2fsck", ["-f", "-y", copy]).catch(
      (error: { code: number; stdout: string }) => {
        if (error.code !== 1) throw error;
        return error;
      },
    );
    const mended = stdout.split("\n").filter((line) => line.endsWith("? yes"));
    expect(
      mended.filter((line) => !/^(Fix\? yes|Free (blocks|inodes) count wrong.*)$/.test(line)),
      stdout,
    ).toEqual([]);
    await rm(copy);
    await place.start(fork.id);
    expect(await read(fork)).toMatchObject({ verdict: "ok", lost: 0 });
    await place.client.destroyMachine(place.app, fork.id, { force: true });
  }
  expect(await read(machine)).toMatchObject({ verdict: "ok", lost: 0 });
});

test("a fork of a machine with hundreds of connections has none of them, and the machine keeps all", {
  tags: "again",
}, async () => {
  const listener = createServer((socket) => socket.on("error", () => {})).listen(0, "0.0.0.0");
  await once(listener, "listening");
  try {
    const { port } = listener.address() as AddressInfo;
    const machine = await place.machine({ image, init: { exec: ["node", "-e", CROWDED, String(port)] } });
    const crowd = () => read<{ open: number; ended: Record<string, number> }>(machine);
    await expect.poll(async () => (await crowd()).open, { timeout: 60_000 }).toBe(CROWD);
    const [fork] = await place.client.forkMachine(place.app, machine.id);
    await place.reach(fork?.id ?? "", "running", "failed");
    const ended = () => read<{ ended: Record<string, number> }>(fork as Machine).then((answer) => answer.ended);
    await expect.poll(ended, { timeout: 30_000 }).toEqual({ ECONNABORTED: CROWD });
    expect(await crowd()).toEqual({ open: CROWD, ended: {} });
  } finally {
    listener.close();
  }
});

function pick({ hostname, address, mac, secret }: Answer) {
  return { hostname, address, mac, secret };
}
