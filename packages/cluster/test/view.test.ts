import { join } from "node:path";
import { HibernautError } from "@hibernaut/domain/errors";
import { expect, it, onTestFinished, vi } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { type Changed, type Directory, HistoryGone } from "../src/contract.ts";
import { KEYS, type OwnerRecord } from "../src/keys.ts";
import { LocalDirectory } from "../src/local/directory.ts";
import { DirectoryView } from "../src/view.ts";
import { Interrupted } from "./interrupted.ts";

const OWNER: OwnerRecord = { app: "shop", name: "calm-fox-1", host: "a", epoch: 1, address: "10.1.0.2" };
const WITHIN = () => AbortSignal.timeout(10_000);

async function open({ history }: { history?: number } = {}) {
  const file = join(await tempFolder(), "directory.db");
  const directory = new LocalDirectory(file, history === undefined ? {} : { history });
  const interrupted = new Interrupted(directory);
  const onFault = vi.fn<(error: unknown, what: string) => void>();
  const view = new DirectoryView({ directory: interrupted, onFault });
  view.start();
  onTestFinished(async () => {
    await view.close();
    await directory.close();
  });
  await view.reached(1, WITHIN());
  const put = async (key: string, value: unknown) => {
    const text = value === null ? null : JSON.stringify(value);
    return (await directory.transact([], [{ key, value: text }])) as number;
  };
  const write = async (key: string, value: unknown) => view.reached(await put(key, value), WITHIN());
  return { directory, interrupted, view, put, write, onFault };
}

it("shows who owns a machine, of one app or all", async () => {
  const { view, write } = await open();
  await write(`${KEYS.machines}1`, OWNER);
  await write(`${KEYS.machines}2`, { ...OWNER, app: "blog" });
  expect(view.owner("1")).toMatchObject({ ...OWNER, id: "1" });
  expect(view.machines("shop").map(({ id }) => id)).toEqual(["1"]);
  expect(view.machines().map(({ id }) => id)).toEqual(["1", "2"]);
  await write(`${KEYS.machines}1`, { ...OWNER, host: "b", epoch: 2 });
  expect(view.owner("1")).toMatchObject({ host: "b", epoch: 2 });
  await write(`${KEYS.machines}1`, null);
  expect(view.owner("1")).toBeUndefined();
  expect(view.machines("shop")).toEqual([]);
});

it("ignores a state that an earlier owner published", async () => {
  const { view, write } = await open();
  await write(`${KEYS.machines}1`, OWNER);
  await write(`${KEYS.states}1`, { epoch: 1, state: "running", route: null, load: 0 });
  expect(view.state("1")?.state).toBe("running");
  await write(`${KEYS.machines}1`, { ...OWNER, host: "b", epoch: 2 });
  expect(view.state("1")).toBeUndefined();
});

it("shows a host that joined, and whether it is up", async () => {
  const { view, write } = await open();
  await write(`${KEYS.members}a`, { fingerprint: "f", joinedAt: "2026-01-01T00:00:00Z" });
  expect(view.host("a")?.up).toBeUndefined();
  await write(`${KEYS.hosts}a`, { name: "a", peer: "a:4290" });
  expect(view.hosts()).toMatchObject([{ name: "a", up: { peer: "a:4290" } }]);
  expect(view.host("b")).toBeUndefined();
});

it("tells listeners of their prefix what changed, after it has adopted it", async () => {
  const { view, write } = await open();
  const heard: [Changed["key"], unknown][] = [];
  const end = view.subscribe(KEYS.apps, (changes) => {
    for (const { key } of changes) heard.push([key, view.value(key)]);
  });
  await write(`${KEYS.apps}shop`, { name: "shop" });
  await write(`${KEYS.hostnames}shop.example`, { app: "shop" });
  end();
  await write(`${KEYS.apps}blog`, { name: "blog" });
  expect(heard).toEqual([[`${KEYS.apps}shop`, { name: "shop" }]]);
});

it("keeps following when a value is not JSON or a listener throws", async () => {
  const { directory, view, write, onFault } = await open();
  view.subscribe(KEYS.apps, () => {
    throw new Error("a fault of the listener");
  });
  await directory.transact([], [{ key: `${KEYS.apps}bad`, value: "{" }]);
  await write(`${KEYS.apps}shop`, { name: "shop" });
  expect(view.under(KEYS.apps).map(({ key }) => key)).toEqual([`${KEYS.apps}shop`]);
  expect(onFault.mock.calls.map(([, what]) => what)).toEqual([
    expect.stringContaining(`${KEYS.apps}bad`),
    expect.stringContaining(KEYS.apps),
  ]);
});

it("says since when it may be out of date while the directory is out of reach, and then has everything", async () => {
  const { interrupted, view, put } = await open();
  await vi.waitFor(() => expect(view.staleSince).toBeUndefined());
  interrupted.cut();
  await vi.waitFor(() => expect(view.staleSince).toBeTypeOf("number"));
  const revision = await put(`${KEYS.apps}shop`, { name: "shop" });
  expect(view.value(`${KEYS.apps}shop`)).toBeUndefined();
  interrupted.mend();
  await view.reached(revision, WITHIN());
  await vi.waitFor(() => expect(view.staleSince).toBeUndefined());
  expect(view.value(`${KEYS.apps}shop`)).toEqual({ name: "shop" });
});

it("reads everything again when changes are forgotten, and tells listeners each difference", async () => {
  const { interrupted, view, put, write } = await open({ history: 3 });
  await write(`${KEYS.apps}gone`, { name: "gone" });
  await write(`${KEYS.apps}kept`, { name: "kept" });
  const heard: (string | null)[][] = [];
  view.subscribe(KEYS.apps, (changes) => heard.push(...changes.map(({ key, value }) => [key, value])));
  interrupted.cut();
  await vi.waitFor(() => expect(view.staleSince).toBeTypeOf("number"));
  await put(`${KEYS.apps}gone`, null);
  for (let count = 0; count < 5; count += 1) await put(`${KEYS.apps}new`, { count });
  interrupted.mend();
  await view.reached(await put(`${KEYS.hostnames}last`, { app: "new" }), WITHIN());
  expect(heard).toEqual([
    [`${KEYS.apps}gone`, null],
    [`${KEYS.apps}new`, '{"count":4}'],
  ]);
});

it("is empty until a directory that is away answers for the first time", async () => {
  let away = true;
  const { directory } = await open();
  const revision = (await directory.transact([], [{ key: `${KEYS.apps}shop`, value: "{}" }])) as number;
  const later: Directory = {
    ...Object.fromEntries(
      ["get", "transact", "lease", "close"].map((name) => [name, () => Promise.reject(new Error("not used"))]),
    ),
    list: (prefix, signal) =>
      away ? Promise.reject(new HibernautError("unavailable", "away")) : directory.list(prefix, signal),
    watch: (prefix, after, signal) => directory.watch(prefix, after, signal),
  } as Directory;
  const view = new DirectoryView({ directory: later });
  onTestFinished(() => view.close());
  view.start();
  const early = view.reached(1, AbortSignal.timeout(100));
  await expect(early).rejects.toThrow();
  expect(view.revision).toBe(0);
  away = false;
  await view.reached(revision, WITHIN());
  expect(view.under(KEYS.apps)).toHaveLength(1);
});

it("says that history is gone after a directory was restored from an older copy", async () => {
  const { directory, put } = await open();
  const last = await put(`${KEYS.apps}shop`, {});
  const watch = directory.watch(KEYS.apps, last + 10, WITHIN());
  await expect(watch[Symbol.asyncIterator]().next()).rejects.toThrow(HistoryGone);
});
