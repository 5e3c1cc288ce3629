/** What an app prints is there, once and in order, whatever its machine and the platform go through. */
import type { LogEntry } from "@hibernaut/client";
import { expect, test } from "vitest";
import { Place } from "../helpers/served.ts";
import { shellImage } from "../helpers/shell-image.ts";

const LOST = /^(\d+) bytes of output were lost/;
const TOO_SLOW = /^(\d+) lines were lost/;

const place = Place.forTests();
const image = await shellImage();

/** Numbered lines on both outputs. */
const PRINTER = `
  let number = 0;
  setInterval(() => { number += 1; console.log("out " + number); console.error("err " + number); }, 20);
`;

/** Reads along, and when the platform goes away begins again where it was. Two lines may have one time. */
async function follow(id: string, entries: LogEntry[], signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const last = entries.at(-1)?.at;
    let known = entries.filter(({ at }) => at === last).length;
    const from = last === undefined ? { limit: 10_000 } : { since: last };
    try {
      for await (const entry of place.client.followLogs(place.app, { machine: id, signal, ...from })) {
        if (entry.at === last && known > 0) known -= 1;
        else entries.push(entry);
      }
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

function everything(id: string): Promise<LogEntry[]> {
  return Array.fromAsync(place.client.readLogs(place.app, { machine: id, limit: 10_000 }));
}

/** The lines of an output that are not there. Fails when one is there twice, or out of order. */
function missingLines(entries: LogEntry[], output: "out" | "err"): string[] {
  const missing: string[] = [];
  let before = 0;
  for (const { text } of entries.filter((entry) => entry.text.startsWith(`${output} `))) {
    const number = Number(text.slice(4));
    expect(number, `after ${before}`).toBeGreaterThan(before);
    for (let gone = before + 1; gone < number; gone += 1) missing.push(`${output} ${gone}\n`);
    before = number;
  }
  expect(before).toBeGreaterThan(100);
  return missing;
}

test("followed through sleep, kill -9 and restart, no line is missing, twice or out of order", async () => {
  const { machine_id: id } = await place.machine({ image, init: { exec: ["node", "-e", PRINTER] }, services: [] });
  const followed: LogEntry[] = [];
  const leave = new AbortController();
  const following = follow(id, followed, leave.signal);
  const more = async () => {
    const lines = followed.length;
    await expect.poll(() => followed.length, { timeout: 30_000 }).toBeGreaterThan(lines + 50);
  };
  await more();
  for (let cycle = 0; cycle < 3; cycle += 1) {
    await place.suspend(id);
    await place.start(id);
    await more();
  }
  await place.served.kill();
  await place.served.start();
  await more();
  await place.suspend(id);
  await expect.poll(() => followed.at(-1)?.text, { timeout: 10_000 }).toMatch(/^captured: /);
  leave.abort();
  await following;
  const stored = await everything(id);
  expect(followed).toEqual(stored);
  // What the platform was about to read when it was killed is gone with it, and told to the byte.
  const missing = [...missingLines(stored, "out"), ...missingLines(stored, "err")];
  const told = stored.map(({ text }) => Number(LOST.exec(text)?.[1] ?? 0)).filter((bytes) => bytes > 0);
  expect(told.reduce((sum, bytes) => sum + bytes, 0)).toBe(missing.join("").length);
  expect(told.length).toBeLessThanOrEqual(1);
  const times = stored.map(({ at }) => at);
  expect(times).toEqual(times.toSorted());
  for (const { text, stream } of stored)
    if (/^(out|err) /.test(text)) expect(stream).toBe(text.startsWith("out") ? "stdout" : "stderr");
  const events = stored.filter(({ stream }) => stream === "platform").map(({ text }) => text.split(" ", 1)[0]);
  expect(events.filter((word) => !/^\d+$/.test(word ?? ""))).toEqual(
    ["create:", "start:", "started:"].concat(
      ...Array.from({ length: 3 }, () => ["suspend:", "captured:", "start:", "started:"]),
      ["The", "suspend:", "captured:"],
    ),
  );
});

/** Prints a MB when it is asked to, more than the guest keeps for later, and answers when all of it is printed. */
const MEGABYTE = 1_000_000;
const LINE = 100;
const ON_REQUEST = `
  require("http").createServer((request, response) => {
    for (let line = 0; line < ${MEGABYTE / LINE}; line += 1) process.stdout.write(String(line).padEnd(${LINE - 2}) + ".\\n");
    response.end();
  }).listen(8080);
`;

test("an app that prints while no platform runs is not held up, and what did not fit is told to the byte", {
  tags: "again",
}, async () => {
  const { machine_id: id, private_address: address } = await place.machine({
    image,
    init: { exec: ["node", "-e", ON_REQUEST] },
  });
  await place.served.kill();
  expect((await fetch(`http://${address}:8080/`)).status).toBe(200);
  await place.served.start();
  // On a busy host, the end of a line can come so late that the log has two entries of it: only one of them has the dot.
  const printedIn = (entries: LogEntry[]) =>
    entries
      .filter(({ stream }) => stream === "stdout")
      .reduce((sum, { text }) => sum + text.length + (text.endsWith(".") ? "\n".length : 0), 0);
  // On a host that is busier still, the log says of some lines that the disk was too slow for them.
  const lostIn = (entries: LogEntry[]) =>
    entries.reduce((sum, { text }) => {
      const lines = Number(TOO_SLOW.exec(text)?.[1] ?? 0);
      return sum + Number(LOST.exec(text)?.[1] ?? 0) + lines * LINE;
    }, 0);
  // The lines that the guest kept arrive after the first report of lost ones. A line of which the disk had only a part
  // counts as a whole one there.
  const accountedFor = async () => {
    const entries = await everything(id);
    const tooMuch = printedIn(entries) + lostIn(entries) - MEGABYTE;
    const parts = entries.filter(({ text }) => TOO_SLOW.test(text)).length;
    return tooMuch > 0 && tooMuch <= parts * LINE ? 0 : tooMuch;
  };
  await expect.poll(accountedFor, { timeout: 30_000 }).toBe(0);
  const entries = await everything(id);
  expect(lostIn(entries)).toBeGreaterThan(0);
  expect(printedIn(entries)).toBeGreaterThan(50_000);
  await place.client.destroyMachine(place.app, id, { force: true });
  await place.reach(id, "destroyed");
  expect(await everything(id)).toEqual([]);
});
