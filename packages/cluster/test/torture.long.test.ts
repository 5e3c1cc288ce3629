/**
 * Three hosts under load while hosts, platforms and members of etcd are killed, stopped and cut off, and machines move
 * between them. No write that was acknowledged is lost, no machine runs twice, and errors are those that docs/cluster.md
 * names. Needs root. `HIBERNAUT_TORTURE_S` sets for how long.
 */
import { randomInt } from "node:crypto";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { LabHost } from "../../../scripts/lab/host.mjs";
import { Lab } from "../../../scripts/lab/lab.mjs";
import { longOr } from "../../../scripts/lib/long.mjs";
import { PATIENT } from "../../platform/test/helpers/patient.ts";
import { COUNTER_IMAGE } from "../../platform/test/helpers/qemu-world.ts";
import { useTempFolder } from "../../platform/test/helpers/temp.ts";
import { Api } from "./torture/api.ts";
import { Clients } from "./torture/clients.ts";
import { documentedErrors } from "./torture/documented.ts";
import { Faults } from "./torture/faults.ts";
import { Moves } from "./torture/moves.ts";
import { compare, Orders } from "./torture/orders.ts";
import { type Counted, Witness, watchForDoubles } from "./torture/witness.ts";

const SECONDS = Number(process.env["HIBERNAUT_TORTURE_S"] ?? longOr(600, 90));
const NAMES = ["alpha", "beta", "gamma"];
const ORDERS_IMAGE = `oci:${join(import.meta.dirname, "../../../.build/orders")}:latest`;
/** In a machine's layer, which moves with it, and on a volume, which does not. */
const ON_VOLUME = {
  mounts: [{ source: "orders", path: "/orders", size_gb: 1 }],
  env: { ORDERS_SQLITE_PATH: "/orders/orders.db" },
};
/** How long a first start may take, with a dozen of other programs on the same cores. Seconds. */
const BOOT_S = 300;
/** Between two requests to the counter, in milliseconds: sometimes long enough for it to fall asleep. */
const PAUSE_MS = [20, 4000] as const;
/** By then, all hosts have found each other again after the last fault. */
const RECOVER_MS = 300_000;

const folder = useTempFolder("cluster");
let lab: Lab;
let api: Api;
const say = (line: string) => void process.stderr.write(`cluster torture: ${line}\n`);

beforeAll(async () => {
  lab = new Lab({
    directory: folder.path,
    names: NAMES,
    settings: {
      ...PATIENT,
      ...{ HIBERNAUT_NETWORK: "user", HIBERNAUT_IDLE_CHECK_INTERVAL: "1", HIBERNAUT_RATE_CHANGES: "0" },
    },
  });
  await lab.open();
  await lab.join();
  await lab.start();
  api = new Api(lab.hosts[0]?.token() ?? "");
}, 600_000);
afterAll(async () => {
  await lab?.close();
});

/** Makes an app with one machine, and returns the machine's ID. */
async function machine(
  app: string,
  host: string,
  config: { image: string; mounts?: object[]; env?: object },
  port: number,
) {
  // One host imports the image. The others get it from there, so that it is the same file everywhere.
  const first = lab.hosts[0] as LabHost;
  await api.call(first, "POST", "/apps", { app_name: app });
  const services = [{ internal_port: port, autostop: "suspend", idle_timeout: 2 }];
  const made = await api.call(first, "POST", `/apps/${app}/machines`, {
    name: app,
    host,
    config: { ...config, services },
  });
  const id = String(made["machine_id"]);
  await api.call(first, "GET", `/apps/${app}/machines/${id}/wait?state=running&timeout=${BOOT_S}`);
  return id;
}

async function visit(clients: Clients, witness: Witness, going: () => boolean): Promise<void> {
  while (going()) {
    const reply = await clients.ask("counter", "/");
    if (reply !== undefined) witness.saw(reply.body as Counted);
    await delay(randomInt(...PAUSE_MS));
  }
}

test(`nothing acknowledged is lost and nothing runs twice in ${SECONDS} s of faults`, {
  timeout: (SECONDS + 900) * 1000,
}, async () => {
  const faults = new Faults(lab);
  const clients = new Clients(lab, { faults, expected: documentedErrors() });
  const moves = new Moves(api, lab.hosts);
  const witness = new Witness();
  const counter = await machine("counter", "alpha", { image: COUNTER_IMAGE }, 8080);
  const wanderer = await machine("wanderer", "beta", { image: ORDERS_IMAGE }, 3000);
  const everyone = [counter, wanderer];
  for (const name of NAMES)
    everyone.push(await machine(`orders-${name}`, name, { image: ORDERS_IMAGE, ...ON_VOLUME }, 3000));
  const orders = ["wanderer", ...NAMES.map((name) => `orders-${name}`)].map((app) => new Orders(app, clients));
  for (const each of orders) await each.prepare();
  expect(clients.strange).toEqual([]);

  const end = performance.now() + SECONDS * 1000;
  const going = () => performance.now() < end;
  let watching = true;
  const doubles = watchForDoubles(everyone, () => watching);
  await Promise.all([
    faults.go(going, (fault) => say(`${fault}; ${clients.answered} answers so far, ${JSON.stringify(clients.errors)}`)),
    visit(clients, witness, going),
    ...orders.flatMap((each) => [each.write(going), each.read(going)]),
    moves.go("counter", counter, going),
    moves.go("wanderer", wanderer, going),
  ]);

  // Everything is whole again: every host knows every machine, and what was acknowledged is there.
  const back = performance.now() + RECOVER_MS;
  const found = await Promise.all(orders.map(async (each) => ({ each, rows: await each.all() })));
  for (const host of lab.hosts)
    for (const [at, app] of ["counter", "wanderer", ...NAMES.map((name) => `orders-${name}`)].entries())
      expect(await api.insist(host, "GET", `/apps/${app}/machines/${app}`, back)).toMatchObject({ id: everyone[at] });
  watching = false;
  const acknowledged = orders.reduce((sum, each) => sum + each.acknowledged.size, 0);
  const writes = { sent: orders.reduce((sum, each) => sum + each.sent, 0), acknowledged };
  const { done, refused } = moves;
  const { errors, answered } = clients;
  const counted = { answered: witness.answered, processes: witness.processes };
  say(
    JSON.stringify({
      seconds: SECONDS,
      faults: faults.done,
      moves: { done, refused },
      writes,
      answered,
      errors,
      counted,
    }),
  );

  for (const { each, rows } of found) {
    const { lost, repeated } = compare(each.acknowledged, rows);
    expect(lost, `writes to ${each.app} that were acknowledged and are gone`).toEqual([]);
    expect(repeated, `writes to ${each.app} that were made more than once`).toEqual([]);
    expect(each.wrong, `answers of ${each.app} that cannot be`).toEqual([]);
  }
  expect(await doubles, "machines with two virtual machines").toEqual([]);
  expect(witness.faults).toEqual([]);
  expect(clients.strange, "errors that the documents do not name").toEqual([]);
  expect(moves.strange).toEqual([]);
  expect(acknowledged).toBeGreaterThan(SECONDS / 10);
  expect(witness.answered).toBeGreaterThan(10);
  expect(moves.done).toBeGreaterThan(0);
});
