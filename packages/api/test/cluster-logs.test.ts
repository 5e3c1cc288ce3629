/**
 * Followed logs of an app in a cluster: a host that goes away is named, and its lines come once it is back.
 *
 * @module-tag again
 */

import { HibernautClient, type LogEntry } from "@hibernaut/client";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { type ApiHost, type ApiHosts, startApiHosts } from "./cluster-hosts.ts";

/** For what a host notices within a second or two. */
const SOON = { timeout: 10_000, interval: 50 };

let cluster: ApiHosts;
let a: ApiHost;
let c: ApiHost;
let client: HibernautClient;
/** A machine of host a, and one of host c. */
let near: string;
let far: string;

beforeAll(async () => {
  cluster = await startApiHosts();
  [a, , c] = cluster.hosts;
  client = new HibernautClient({ apiUrl: a.url, token: cluster.token });
  await client.createApp("shop");
  for (const { host } of cluster.hosts) await host.shared.catchUp();
  [near, far] = await Promise.all([make(a, "near"), make(c, "far")]);
});
afterAll(() => cluster.close());

async function make(host: ApiHost, name: string): Promise<string> {
  const { id } = await client.createMachine("shop", { name, config: { image: "app:1" }, host: host.host.name });
  await client.waitForMachine("shop", id);
  await cluster.claim(host, "shop", id, name);
  return id;
}

/** Follows the app's log at host a. The lines arrive in the list. */
function follow(options: Parameters<HibernautClient["followLogs"]>[1] = {}): LogEntry[] {
  const lines: LogEntry[] = [];
  const end = new AbortController();
  const read = async () => {
    for await (const line of client.followLogs("shop", { limit: 0, signal: end.signal, ...options })) lines.push(line);
  };
  const done = read().catch(() => {});
  onTestFinished(async () => {
    end.abort();
    await done;
    await cluster.setUp("c", true);
  });
  return lines;
}

/** What was heard of a machine. */
const texts = (lines: LogEntry[], machine: string) =>
  lines.filter((line) => line.machine === machine && line.text !== "begin").map(({ text }) => text);

/** Resolves once lines of both hosts arrive. */
async function begun(lines: LogEntry[]): Promise<void> {
  const heard = (machine: string) => lines.some((line) => line.machine === machine && line.text === "begin");
  await vi.waitFor(async () => {
    await Promise.all([a.print(near, "begin"), c.print(far, "begin")]);
    expect([heard(near), heard(far)]).toEqual([true, true]);
  }, SOON);
}

test("a host that goes away is named, and what its machines print meanwhile comes once, when it is back", async () => {
  const lines = follow();
  await begun(lines);
  await cluster.setUp("c", false);
  const away = "Host c does not answer. Lines of this machine are missing until it does.";
  await vi.waitFor(() => expect(lines.at(-1)).toMatchObject({ machine: far, stream: "platform", text: away }), SOON);
  await c.print(far, "unheard 1");
  await c.print(far, "unheard 2");
  await a.print(near, "still here");
  await vi.waitFor(() => expect(texts(lines, near)).toEqual(["still here"]), SOON);
  expect(texts(lines, far)).not.toContain("unheard 1");
  await cluster.setUp("c", true);
  await vi.waitFor(() => expect(texts(lines, far)).toContain("unheard 2"), SOON);
  await c.print(far, "heard");
  await vi.waitFor(() => expect(texts(lines, far)).toContain("heard"), SOON);
  // Lines that come at one moment are sorted by their time.
  const told = texts(lines, far).filter((text) => text.startsWith("Host"));
  const printed = texts(lines, far).filter((text) => !text.startsWith("Host"));
  expect(told).toEqual([away, "Host c answers again."]);
  expect(printed).toEqual(["unheard 1", "unheard 2", "heard"]);
});

test("a connection that breaks loses no line and says nothing, and lines alike are not taken for one", async () => {
  const lines = follow({ machine: ["far"], stream: ["stdout"] });
  await vi.waitFor(async () => {
    await c.print(far, "begin");
    expect(lines).not.toEqual([]);
  }, SOON);
  for (const line of ["same", "same"]) await c.print(far, line);
  await vi.waitFor(() => expect(texts(lines, far)).toEqual(["same", "same"]), SOON);
  cluster.hangUp("c");
  for (const line of ["same", "after"]) await c.print(far, line);
  await vi.waitFor(() => expect(texts(lines, far)).toContain("after"), SOON);
  expect(texts(lines, far)).toEqual(["same", "same", "same", "after"]);
});

test("a host that is away when the reader begins is followed as soon as it is back", async () => {
  await cluster.setUp("c", false);
  const lines = follow();
  await vi.waitFor(async () => {
    await a.print(near, "begin");
    expect(lines).not.toEqual([]);
  }, SOON);
  // Quiet hosts answer as well.
  await cluster.setUp("c", true);
  await vi.waitFor(() => expect(texts(lines, far)).toContain("Host c answers again."), SOON);
  await c.print(far, "far");
  await vi.waitFor(() => expect(texts(lines, far)).toContain("far"), SOON);
});
