/** Hostile clients over real sockets, next to a polite one. `npm run test:long` opens 100,000 connections. */
import { connect, type Socket } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import fc from "fast-check";
import { expect, test } from "vitest";
import { longOr } from "../../../platform/test/helpers/long.ts";
import { mutatedRequests } from "../differential/mutations.ts";
import { cutAt } from "../differential/reading.ts";
import { httpApp, parsed, rig, until } from "./helpers.ts";

const CONNECTIONS = longOr(100_000, 500);
const SEED = Number(process.env["HIBERNAUT_FUZZ_SEED"] ?? 18);
const AT_ONCE = 50;
/** A hostile client that gets no answer goes away after this, in the middle of whatever there is. */
const PATIENCE_MS = 100;
/** Only a hang reaches it. */
const LIMIT_MS = longOr(1_800_000, 60_000);

/** What a client sends, in which pieces, and how it goes away. */
const attacks = fc.record({
  bytes: fc.oneof({ weight: 2, arbitrary: mutatedRequests }, fc.uint8Array({ maxLength: 200 }).map(Buffer.from)),
  cuts: fc.array(fc.nat(1000), { maxLength: 3 }),
  ending: fc.constantFrom("waits", "half", "vanishes", "resets"),
});
type Attack = typeof attacks extends fc.Arbitrary<infer T> ? T : never;

async function strike(port: number, { bytes, cuts, ending }: Attack): Promise<void> {
  const socket: Socket = connect({ host: "127.0.0.1", port, noDelay: true });
  const over = new Promise<void>((resolve) => socket.on("error", () => {}).once("close", () => resolve()));
  socket.resume();
  for (const piece of cutAt(bytes, cuts)) {
    socket.write(piece);
    await turn();
  }
  if (ending === "half") socket.end();
  if (ending === "vanishes") socket.destroy();
  if (ending === "resets") socket.resetAndDestroy();
  const late = setTimeout(() => socket.destroy(), PATIENCE_MS);
  await over;
  clearTimeout(late);
}

test(`${CONNECTIONS} hostile connections (seed ${SEED}): a polite client always gets its own answer`, {
  timeout: LIMIT_MS,
}, async () => {
  const app = await httpApp((request, response) => {
    request.on("error", () => {}).resume();
    response.on("error", () => {}).end(`for ${request.url}`);
  });
  const { port, ask, faults, proxy } = await rig({ app });
  const ours = fc.sample(attacks, { numRuns: Math.min(CONNECTIONS, 5000), seed: SEED });
  let next = 0;
  const assail = async () => {
    while (next < CONNECTIONS) {
      const attack = ours[next % ours.length];
      next += 1;
      if (attack !== undefined) await strike(port, attack);
    }
  };
  const over = new AbortController();
  const hostile = Promise.all(Array.from({ length: AT_ONCE }, assail)).finally(() => over.abort());
  let polite = 0;
  while (!over.signal.aborted) {
    polite += 1;
    const answer = parsed(await ask(`GET /polite-${polite} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n`));
    expect([answer.status, answer.body]).toEqual([200, `for /polite-${polite}`]);
  }
  await hostile;
  expect(polite).toBeGreaterThan(0);
  expect(faults).toEqual([]);
  await until(() => proxy.stats().clientConnections === 0, "the proxy to let go of all hostile clients");
});
