/** The connection of a page, over real HTTP, to a platform that can fall silent. */
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { BrowserClient } from "@hibernaut/client/browser";
import { expect, onTestFinished, test, vi } from "vitest";
import { Live } from "../src/data/live.ts";
import { HIDDEN_MS } from "../src/data/sight.ts";
import { Store, TOPIC } from "../src/data/store.ts";
import { machine } from "./a-machine.ts";

const TIME = "2026-01-31T14:30:00.000Z";
/** Only a fault reaches it. */
const LIMIT = { timeout: 30_000 };

/** A platform with the given machines. Its replies can be lost on the way, and its streams cut. */
class Platform {
  readonly machines = [machine({})];
  /** Whether requests other than for the stream are swallowed. */
  isSilent = false;
  swallowed = 0;
  readonly streams = new Set<ServerResponse>();
  /** Whether it is a host in no cluster, which refuses positions in one. */
  isAlone = false;
  /** Where each stream began. */
  readonly since: (string | null)[] = [];

  async open(): Promise<BrowserClient> {
    const server = createServer((request, reply) => {
      const { pathname, searchParams } = new URL(request.url ?? "", "http://platform");
      if (pathname === "/v1/stream") this.#stream(reply, searchParams.get("since"));
      else if (this.isSilent) this.swallowed += 1;
      else reply.end(JSON.stringify(this.#reply(pathname)));
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    return new BrowserClient({ origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
  }

  /** Tells all pages that something happened to a machine. `more` is what the event says besides. */
  tell(id: string, sequence: number, position?: string, more: object = {}): void {
    const about = { type: "machine.noted", app_name: "shop", machine_id: id, data: {} };
    const event = { sequence, position, at: TIME, ...about, ...more };
    for (const stream of this.streams) stream.write(`id: ${position ?? sequence}\ndata: ${JSON.stringify(event)}\n\n`);
  }

  cut(): void {
    for (const stream of this.streams) stream.destroy();
  }

  #stream(reply: ServerResponse, since: string | null): void {
    this.since.push(since);
    if (this.isAlone && since?.includes(":")) {
      const refusal = { error: "invalid_argument", message: "This host is in no cluster." };
      reply.writeHead(400, { "content-type": "application/json" }).end(JSON.stringify(refusal));
      return;
    }
    this.streams.add(reply.once("close", () => this.streams.delete(reply)));
    reply.writeHead(200, { "content-type": "text/event-stream" }).write("id: 1\n\n");
  }

  #reply(path: string): unknown {
    if (path === "/v1/apps") return { apps: [] };
    if (path === "/v1/timeline") return { from: TIME, until: TIME, machines: [] };
    return path === "/v1/machines"
      ? this.machines
      : this.machines.find(({ machine_id: id }) => path.endsWith(`/${id}`));
  }
}

/** What the browser says about the page: whether it is hidden. */
class Tab extends EventTarget {
  hidden = false;

  show(isShown: boolean): void {
    this.hidden = !isShown;
    this.dispatchEvent(new Event("visibilitychange"));
  }
}

/** Opens a page of a platform, and waits until it has read everything, if it can. */
async function pageOf(platform: Platform, { hidden = false } = {}) {
  const api = await platform.open();
  const store = new Store((run) => run());
  const tab = new Tab();
  tab.hidden = hidden;
  const live = new Live({ api, store, window: new EventTarget(), document: tab, onSignedOut: () => {} });
  live.start();
  onTestFinished(() => live.stop());
  if (!hidden && !platform.isSilent) await untilLive(store);
  return { api, store, tab };
}

const untilLive = (store: Store) => vi.waitUntil(() => store.link.state === "live", LIMIT);

/** How often everything was read. */
const readings = ({ topics }: Store) => topics.version(TOPIC.wakes);

test("a page whose first reading was lost on the way reads again with the next connection", async () => {
  const platform = new Platform();
  platform.isSilent = true;
  const { store } = await pageOf(platform);
  await vi.waitUntil(() => platform.swallowed >= 3, LIMIT);
  platform.isSilent = false;
  platform.cut();
  await untilLive(store);
  expect([...store.machines.keys()]).toEqual(["a1"]);
});

test("a page whose reading of one machine was lost on the way keeps up with it after the next connection", async () => {
  const platform = new Platform();
  const { store } = await pageOf(platform);
  platform.isSilent = true;
  platform.tell("a1", 2);
  await vi.waitUntil(() => platform.swallowed === 1, LIMIT);
  platform.isSilent = false;
  platform.cut();
  await vi.waitUntil(() => readings(store) === 2, LIMIT);
  platform.machines[0] = machine({ cordoned: true });
  platform.tell("a1", 3);
  await vi.waitUntil(() => store.machines.get("a1")?.cordoned === true, LIMIT);
});

test("a page forgets a machine that another host of the cluster destroyed, and keeps one that only left that host", async () => {
  const platform = new Platform();
  platform.machines.push(machine({ machine_id: "b2", host: "b", state: "stopped" }));
  platform.machines.push(machine({ machine_id: "b3", host: "b", state: "stopped" }));
  const { store } = await pageOf(platform);
  // It is not listed any more, but its host still answers for it.
  platform.machines[1] = machine({ machine_id: "b2", host: "b", state: "destroyed" });
  platform.machines[2] = machine({ machine_id: "b3", host: "c", state: "stopped" });
  for (const [index, id] of ["b3", "b2"].entries())
    platform.tell(id, 2 + index, undefined, { host: "b", data: { to: "destroyed" } });
  await vi.waitUntil(() => !store.machines.has("b2"), LIMIT);
  await vi.waitUntil(() => store.machines.get("b3")?.host === "c", LIMIT);
});

test("a page that is hidden for a while leaves its connection to others, and continues when it is shown", async () => {
  const platform = new Platform();
  const { store, tab } = await pageOf(platform);
  platform.tell("a1", 7);
  await vi.waitUntil(() => store.topics.version(TOPIC.machine("a1")) > 1, LIMIT);
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  tab.show(false);
  vi.advanceTimersByTime(HIDDEN_MS - 1);
  tab.show(true);
  tab.show(false);
  vi.advanceTimersByTime(HIDDEN_MS - 1);
  expect(platform.streams.size).toBe(1);
  vi.advanceTimersByTime(1);
  vi.useRealTimers();
  await vi.waitUntil(() => platform.streams.size === 0, LIMIT);
  platform.machines[0] = machine({ cordoned: true });
  expect(platform.since).toEqual([null]);
  tab.show(true);
  await vi.waitUntil(() => store.machines.get("a1")?.cordoned === true, LIMIT);
  expect(platform.since).toEqual([null, "7"]);
});

test("a page whose platform has left its cluster begins from now, because its position means nothing there", async () => {
  const platform = new Platform();
  const { store } = await pageOf(platform);
  platform.tell("a1", 7, "a:7,b:3");
  await vi.waitUntil(() => store.topics.version(TOPIC.machine("a1")) > 1, LIMIT);
  platform.isAlone = true;
  platform.cut();
  await vi.waitUntil(() => platform.since.length > 1 && platform.since.at(-1) === null, LIMIT);
  await vi.waitUntil(() => store.link.state === "live" && readings(store) === 2, LIMIT);
  expect(platform.since).toContain("a:7,b:3");
});

test("a page that was opened in the background connects when it is shown", async () => {
  const platform = new Platform();
  const { api, store, tab } = await pageOf(platform, { hidden: true });
  expect(await api.listApps()).toEqual([]);
  expect(platform.since).toEqual([]);
  tab.show(true);
  await untilLive(store);
});
