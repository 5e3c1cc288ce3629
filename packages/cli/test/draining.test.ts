/** What a drain shows while it is in progress. */

import type { Drain, DrainedMachine } from "@hibernaut/client";
import { expect, test } from "vitest";
import type { Context } from "../src/context.ts";
import { followDrain } from "../src/draining.ts";

const machine = (name: string, result: DrainedMachine["result"]): DrainedMachine => ({
  machine_id: `id-${name}`,
  app_name: "shop",
  name,
  result,
  reason: result === "left" ? "it is too large" : null,
});

const drain = (state: Drain["state"], machines: DrainedMachine[]): Drain => ({
  state,
  suspend: true,
  started_at: "2026-01-01T00:00:00Z",
  deadline: new Date(Date.now() + 60_000).toISOString(),
  completed_at: null,
  machines,
});

/** Follows a drain that goes through these stages. Returns what was shown. */
async function shown(
  stages: Drain[],
  { json = false, isTTY = false, columns = 80 }: { json?: boolean; isTTY?: boolean; columns?: number } = {},
): Promise<string[]> {
  const [first, ...later] = stages;
  const written: string[] = [];
  const stream = { isTTY, columns, write: (text: string) => written.push(text) } as unknown as NodeJS.WriteStream;
  const client = { getDrain: async () => later.shift() };
  await followDrain({ json, client: async () => client } as unknown as Context, first as Drain, stream);
  return written;
}

const STAGES = [
  drain("draining", [machine("one", "suspending"), machine("two", "waiting")]),
  drain("draining", [machine("one", "suspended"), machine("two", "waiting")]),
  drain("drained", [machine("one", "suspended"), machine("two", "left")]),
];

test("a terminal has one line that counts, which is gone in the end", async () => {
  const written = await shown(STAGES, { isTTY: true });
  const [first = "", second = "", ...rest] = written.map((text) => text.replace("\r\x1b[2K", ""));
  expect(first).toMatch(/^Suspending machines, 0 of 2 done, (59|60) s left: shop\/one$/);
  expect(second).toMatch(/^Suspending machines, 1 of 2 done, /);
  expect(rest.at(-1)).toBe("");
  const narrow = await shown(STAGES, { isTTY: true, columns: 40 });
  expect(Math.max(...narrow.map((text) => text.replace("\r\x1b[2K", "").length))).toBeLessThan(40);
});

test("a pipe has a line for each machine and change", async () => {
  expect(await shown(STAGES)).toEqual([
    "shop/one (id-one): suspending\n",
    "shop/one (id-one): suspended\n",
    "shop/two (id-two): left: it is too large\n",
  ]);
});

test("with --json each change is a document", async () => {
  const documents = (await shown(STAGES, { json: true })).map((line) => JSON.parse(line) as DrainedMachine);
  expect(documents.map(({ name, result }) => `${name} ${result}`)).toEqual([
    "one suspending",
    "two waiting",
    "one suspended",
    "two left",
  ]);
});

test("a drain that another client ends is an error", async () => {
  await expect(shown([...STAGES.slice(0, 1), drain("none", [])])).rejects.toMatchObject({
    code: "aborted",
    message: expect.stringContaining("Another client ended the drain"),
  });
});
