/**
 * A counter moves a hundred times between three hosts while clients keep asking for it: it continues with its nonce and its count, and
 * no request fails. Prints how long the moves took, and how long the clients waited. `HIBERNAUT_MOVES` sets how many.
 */
import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { summary } from "../../../bench/lib/stats.mjs";
import { PATIENT } from "../../platform/test/helpers/patient.ts";
import { ask, wakeOf } from "../../platform/test/helpers/proxied.ts";
import { COUNTER_IMAGE, type CounterAnswer } from "../../platform/test/helpers/qemu-world.ts";
import { waitS } from "../../platform/test/helpers/slow.ts";
import { type Hosts, startHosts } from "./hosts.ts";

const MOVES = Number(process.env["HIBERNAUT_MOVES"] ?? 100);
const APP = "shop";
const NAMES = ["a", "b", "c"];
/** An ordinary wake is measured after this many moves. */
const WAKE_EVERY = 10;
/** Between two requests of a client. */
const ASK_EVERY_MS = 20;
/** A generous time for one move on a host with a lot to do. */
const MOVE_MS = 60_000;

/** Asks one host for the counter, again and again. */
class Client {
  answers = 0;
  highest = 0;
  readonly #hosts: Hosts;
  readonly #host: string;
  readonly #nonce: string;
  #last = performance.now();
  #longest = 0;

  constructor(hosts: Hosts, host: string, nonce: string) {
    this.#hosts = hosts;
    this.#host = host;
    this.#nonce = nonce;
  }

  /** Rejects with the first answer that is not the counter's next one. */
  async go(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.next();
      await delay(ASK_EVERY_MS);
    }
  }

  async next(): Promise<void> {
    const { nonce, count } = await request(this.#hosts, this.#host);
    expect(nonce, "the process that answers").toBe(this.#nonce);
    expect(count, "its count").toBeGreaterThan(this.highest);
    this.highest = count;
    this.answers += 1;
    const now = performance.now();
    this.#longest = Math.max(this.#longest, now - this.#last);
    this.#last = now;
  }

  /** Returns the longest time without an answer since the last call, in milliseconds. */
  outage(): number {
    const longest = this.#longest;
    this.#longest = 0;
    return Math.round(longest);
  }
}

async function request(hosts: Hosts, host: string): Promise<CounterAnswer> {
  const answer = await ask({ proxyUrl: hosts.host(host).served.proxyUrl, app: APP });
  expect(answer.status, answer.text).toBe(200);
  return JSON.parse(answer.text) as CounterAnswer;
}

/** Lets the machine sleep, and measures a wake by a request. */
async function ordinaryWake(hosts: Hosts, id: string, at: string): Promise<number> {
  const { client, served } = hosts.host(at);
  await client.suspendMachine(APP, id);
  await client.waitForMachine(APP, id, { state: ["suspended"], timeout: waitS(120) });
  const began = performance.now();
  const answer = await ask({ proxyUrl: served.proxyUrl, app: APP });
  expect(wakeOf(answer).kind).toBe("resume");
  return Math.round(performance.now() - began);
}

test(`${MOVES} moves of a counter under requests: it keeps its nonce and its count, and no request fails`, {
  timeout: (MOVES + 10) * MOVE_MS,
}, async () => {
  // A wake from a VMM that was kept is not what a move can be compared with.
  await using hosts = await startHosts({ env: { ...PATIENT, HIBERNAUT_KEEP_WARM: "0", HIBERNAUT_RATE_CHANGES: "0" } });
  const { client } = hosts.host("a");
  await client.createApp(APP);
  const config = { image: COUNTER_IMAGE, guest: { memory_mb: 256 }, services: [{ internal_port: 8080 }] };
  const { id } = await client.createMachine(APP, { name: "counter", host: "a", config });
  await client.waitForMachine(APP, id, { state: ["running"], timeout: waitS(120) });
  const first = await request(hosts, "a");
  const times = { move: [] as number[], outage: [] as number[], wake: [] as number[] };
  let asked = first.count;
  let at = "a";

  for (let round = 0; round < MOVES; round += WAKE_EVERY) {
    times.wake.push(await ordinaryWake(hosts, id, at));
    asked += 1;
    const clients = NAMES.map((name) => new Client(hosts, name, first.nonce));
    const end = new AbortController();
    const asking = Promise.all(clients.map((each) => each.go(end.signal)));
    asking.catch(() => end.abort()); // it is thrown below
    for (let move = round; move < Math.min(round + WAKE_EVERY, MOVES) && !end.signal.aborted; move += 1) {
      at = NAMES[(NAMES.indexOf(at) + 1 + (move % 2)) % NAMES.length] as string;
      for (const each of clients) each.outage();
      const began = performance.now();
      await hosts.host(NAMES[move % NAMES.length] as string).client.moveMachine(APP, id, { host: at });
      times.move.push(Math.round(performance.now() - began));
      const answers = clients.map((each) => each.answers);
      while (!end.signal.aborted && clients.some((each, index) => each.answers === answers[index])) await delay(5);
      times.outage.push(...clients.map((each) => each.outage()));
    }
    end.abort();
    await asking;
    asked += clients.reduce((sum, each) => sum + each.answers, 0);
    expect(await hosts.host(at).guests()).toHaveLength(1);
  }

  const { nonce, count } = await request(hosts, "b");
  expect(nonce).toBe(first.nonce);
  // Nothing was answered without the counter, and nothing was asked of it twice.
  expect(count).toBe(asked + 1);
  expect(times.move).toHaveLength(MOVES);
  const figures = Object.entries(times).map(([what, values]) => [what, summary(values)]);
  process.stderr.write(`moves in ms: ${JSON.stringify(Object.fromEntries(figures))}\n`);
});
