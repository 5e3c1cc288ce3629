/**
 * Many machines from few memories: twenty children in three apps, of which half are forked again.
 *
 * @module-tag again
 */
import type { Machine } from "@hibernaut/client";
import { expect, onTestFinished, test } from "vitest";
import { Place } from "../helpers/served.ts";
import { shellImage } from "../helpers/shell-image.ts";
import { slowed } from "../helpers/slow.ts";

const place = Place.forTests();
const image = await shellImage();
const APPS = ["one", "two", "three"];
const CHILDREN = 20;
/** Machines that run at the same time, besides the parents. */
const AT_ONCE = 4;

/** A secret in memory, a database that is open, and random numbers of the kernel. Each reply adds a row. */
const APP = `
  const os = require("os"), fs = require("fs"), { DatabaseSync } = require("node:sqlite");
  const secret = require("crypto").randomUUID(), db = new DatabaseSync("/var/rows.db");
  db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE rows (id INTEGER PRIMARY KEY, by TEXT)");
  const insert = db.prepare("INSERT INTO rows (by) VALUES (?)"), read = db.prepare("SELECT by FROM rows ORDER BY id");
  const draw = () => { const fd = fs.openSync("/dev/urandom"), bytes = Buffer.alloc(16); fs.readSync(fd, bytes); fs.closeSync(fd); return bytes.toString("hex"); };
  require("http").createServer((request, response) => {
    insert.run(os.hostname());
    const { eth0: [{ address }] } = os.networkInterfaces();
    response.end(JSON.stringify({ secret, rows: read.all().map(({ by }) => by), hostname: os.hostname(), address, random: draw() }));
  }).listen(8080);
`;

interface Answer {
  secret: string;
  rows: string[];
  hostname: string;
  address: string;
  random: string;
}

async function ask({ private_address: address }: Machine): Promise<Answer> {
  const reply = await fetch(`http://${address}:8080/`, { headers: { connection: "close" } });
  return (await reply.json()) as Answer;
}

/** A machine of one of the apps, and what its rows should be. */
interface Member {
  app: string;
  machine: Machine;
  rows: string[];
  secret: string;
}

const to = async ({ app, machine }: Member, state: "running" | "suspended") => {
  const { client } = place;
  if (state === "running") await client.startMachine(app, machine.id);
  else await client.suspendMachine(app, machine.id);
  await client.waitForMachine(app, machine.id, { state: [state, "failed"], timeout: 120 });
};

/** Wakes the machine, asks it once, and lets it sleep. Everything that it says is as it should be. */
async function visit(member: Member, drawn: string[]): Promise<void> {
  const { machine, rows, secret } = member;
  await to(member, "running");
  const answer = await ask(machine);
  rows.push(machine.id);
  expect(answer).toMatchObject({ secret, rows, hostname: machine.id, address: machine.private_address });
  drawn.push(answer.random);
  await to(member, "suspended");
}

async function visitAll(members: readonly Member[], drawn: string[]): Promise<void> {
  const queue = [...members];
  const worker = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) await visit(next, drawn);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

test("twenty children in three apps and forks of them have what they should, and nobody has anybody else's", {
  timeout: slowed(480_000),
}, async () => {
  const { client } = place;
  const drawn: string[] = [];
  const parents: Member[] = [];
  for (const app of APPS) {
    await client.createApp(app);
    onTestFinished(() => client.destroyApp(app, { force: true }));
    const config = { image, init: { exec: ["node", "-e", APP] }, services: [{ internal_port: 8080 }] };
    const machine = await client.createMachine(app, { config });
    await client.waitForMachine(app, machine.id, { state: ["healthy", "failed"], timeout: 240 });
    const { secret } = await ask(machine);
    await client.createTemplate(app, { from: machine.id, name: "ready" });
    parents.push({ app, machine, rows: [machine.id], secret });
  }
  const children: Member[] = [];
  for (let count = 0; count < CHILDREN; count += 1) {
    const { app, rows, secret } = parents[count % parents.length] as Member;
    const machine = await client.createMachine(app, { template: "ready", skip_launch: true });
    children.push({ app, machine, rows: [...rows], secret });
  }
  await visitAll(children, drawn);
  const forked = await Promise.all(
    children.slice(0, CHILDREN / 2).map(async ({ app, machine: { id }, rows, secret }) => {
      const [machine] = await client.forkMachine(app, id, { skip_launch: true });
      return { app, machine: machine as Machine, rows: [...rows], secret };
    }),
  );
  await visitAll([...forked, ...children], drawn);
  expect(new Set(drawn).size).toBe(drawn.length);
  for (const { machine, rows, secret } of parents) {
    const answer = await ask(machine);
    expect(answer).toMatchObject({ secret, rows: [...rows, machine.id], hostname: machine.id });
  }
});
