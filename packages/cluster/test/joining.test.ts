import { existsSync, readdirSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { makeKey } from "@hibernaut/lib/certificates";
import { expect, it, onTestFinished, vi } from "vitest";
import { askToJoin } from "../src/ask-to-join.ts";
import { initCluster, joinCluster, leaveCluster } from "../src/join.ts";
import { readJoinToken, writeJoinToken } from "../src/join-token.ts";
import { KEYS } from "../src/keys.ts";
import { LocalDirectory } from "../src/local/directory.ts";
import { deletion, put } from "../src/stored.ts";
import { addApp, bareHost, joinHost, oneHost, openHost, pointAt } from "./place.ts";

/** What a host that could not join must not have. */
const traces = (dataDir: string) => readdirSync(dataDir).filter((name) => /^(cluster|secrets\.key)/.test(name));
const keyOf = ({ dataDir }: { dataDir: string }) => readFileSync(join(dataDir, "secrets.key"));
const refused = (work: Promise<unknown>, code: string, ...words: string[]) =>
  expect(work).rejects.toMatchObject({ code, message: expect.stringMatching(new RegExp(words.join(".*"), "s")) });

it("hosts join with tokens, see each other, and share the key of the secrets", async () => {
  const { cluster, token, settings: first } = await oneHost();
  const settings = await joinHost(await token(), "b");
  const b = await openHost(settings);
  await vi.waitFor(() =>
    expect(cluster.view.hosts().map(({ name, up }) => [name, up?.machines])).toEqual([
      ["a", 0],
      ["b", 0],
    ]),
  );
  expect(b.view.hosts().map(({ name }) => name)).toEqual(["a", "b"]);
  expect(b.record.id).toBe(cluster.record.id);
  expect(keyOf(settings)).toEqual(keyOf(first));
});

it("the first host shares what it has", async () => {
  const settings = await bareHost();
  addApp(settings.dataDir, "shop");
  const place = { local: join(settings.dataDir, "directory.db") };
  await initCluster({ settings, name: "a", peer: "127.0.0.1", directory: place });
  const { view } = await openHost(settings);
  expect(view.value(`${KEYS.apps}shop`)).toMatchObject({ name: "shop" });
});

it("a join token works once", async () => {
  const { token, cluster } = await oneHost();
  const once = await token();
  await joinHost(once, "b");
  const other = await bareHost();
  await refused(
    joinHost(once, "c", other),
    "unauthenticated",
    "was used, has expired, or was revoked",
    "Make a new one with `hibernaut cluster token`",
  );
  expect(traces(other.dataDir)).toEqual([]);
  expect(cluster.view.host("c")).toBeUndefined();
});

it("two hosts that use one token at once: one joins", async () => {
  const { token, cluster } = await oneHost();
  const once = await token();
  const results = await Promise.allSettled([joinHost(once, "b"), joinHost(once, "c")]);
  expect(results.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
  await vi.waitFor(() => expect(cluster.view.hosts()).toHaveLength(2));
});

it("a join token expires", async () => {
  const { token, cluster } = await oneHost();
  const short = await token(200);
  await vi.waitFor(async () => expect((await cluster.directory.list(KEYS.joins)).entries).toEqual([]));
  await refused(joinHost(short, "b"), "unauthenticated", "has expired");
});

it("says which token is wrong, and how", async () => {
  const { token } = await oneHost();
  const good = await token();
  const forged = writeJoinToken({ ...readJoinToken(good), secret: "guessed" });
  await refused(joinHost(forged, "b"), "unauthenticated", "its secret is wrong");
  await refused(
    joinHost("hib_abc", "b"),
    "invalid_argument",
    "begins with hibjoin_",
    "This one is a token for the API",
  );
  await refused(joinHost(good.slice(0, -20), "b"), "invalid_argument", "not a valid join token");
  const elsewhere = writeJoinToken({ ...readJoinToken(good), peer: "127.0.0.1:1" });
  await refused(
    joinHost(elsewhere, "b"),
    "unavailable",
    "No host of the cluster answers at 127.0.0.1:1",
    "HIBERNAUT_PEER_LISTEN",
  );
});

it("sends its secret to no host of another cluster", async () => {
  const [first, second] = [await oneHost(), await oneHost()];
  const mixed = { ...readJoinToken(await first.token()), peer: readJoinToken(await second.token()).peer };
  const other = await bareHost();
  await refused(
    joinHost(writeJoinToken(mixed), "b", other),
    "unauthenticated",
    "does not belong to the cluster that the join token is for",
  );
  expect(traces(other.dataDir)).toEqual([]);
});

it("refuses a name that a host has, and one that no host may have", async () => {
  const { token } = await oneHost();
  const taken = await token();
  await refused(
    joinHost(taken, "a"),
    "already_exists",
    "A host named a is a member",
    "--name",
    "hibernaut cluster remove a",
  );
  await refused(joinHost(taken, "B_1"), "invalid_argument", "not a valid name for a host");
  // The token is still good.
  await joinHost(taken, "b");
});

it("refuses a host that has apps, is in a cluster, or runs", async () => {
  const { token, settings } = await oneHost();
  const withApp = await bareHost();
  addApp(withApp.dataDir, "shop");
  await refused(
    joinHost(await token(), "b", withApp),
    "failed_precondition",
    "has 1 app, which the cluster does not know",
    "cluster init",
  );
  await refused(
    joinHost(await token(), "b", settings),
    "failed_precondition",
    "Another platform is using the data directory",
  );
  const joined = await joinHost(await token(), "b");
  await refused(
    joinHost(await token(), "c", joined),
    "failed_precondition",
    "This host is in a cluster. Run `hibernaut cluster leave` first",
  );
});

it("refuses a version that is more than one minor version away, and another region", async () => {
  const { token } = await oneHost();
  const { id, secret, ...rest } = readJoinToken(await token());
  const { publicKey } = makeKey();
  const ask = (version: string, region = "local") =>
    askToJoin({ id, secret, ...rest }, { id, secret, name: "b", publicKey, version, region });
  await refused(
    ask("0.3.0"),
    "failed_precondition",
    "This host has version 0.3.0 and host a has 0.1.0",
    "one minor version apart",
  );
  await refused(
    ask("0.1.0", "north"),
    "failed_precondition",
    "The region of the cluster is local",
    "Set HIBERNAUT_REGION=local",
  );
  expect((await ask("0.2.0")).reply.region).toBe("local");
});

it("says by how much a clock is wrong", async () => {
  const { token } = await oneHost();
  const good = await token();
  const realNow = Date.now;
  vi.spyOn(Date, "now").mockImplementation(() => realNow() + 20 * 60_000);
  onTestFinished(() => void vi.restoreAllMocks());
  const host = await bareHost();
  await refused(
    joinHost(good, "b", host),
    "failed_precondition",
    "This host's clock is 20 minutes ahead of that of the host at 127.0.0.1",
    "Set the clocks",
  );
  vi.spyOn(Date, "now").mockImplementation(() => realNow() - 20 * 60_000);
  await refused(
    joinHost(good, "b", host),
    "failed_precondition",
    "This host's clock says",
    "is valid only from",
    "Set this host's clock",
  );
  expect(traces(host.dataDir)).toEqual([]);
});

it("a host that is refused at the last step has no keys of the cluster, and joins with the next token", async () => {
  const { token, settings: first } = await oneHost();
  const settings = await bareHost();
  const used = await token();
  // The next transaction is the claim.
  const transact = vi.spyOn(LocalDirectory.prototype, "transact").mockResolvedValueOnce(undefined);
  onTestFinished(() => transact.mockRestore());
  await refused(joinHost(used, "b", settings), "unauthenticated", "was used or expired at this moment");
  transact.mockRestore();
  expect(traces(settings.dataDir)).toEqual([]);
  await joinHost(await token(), "b", settings);
  expect(keyOf(settings)).toEqual(keyOf(first));
});

it("what is left of a join of another cluster does not keep a host from joining", async () => {
  const [gone, here] = [await oneHost(), await oneHost()];
  const settings = await joinHost(await gone.token(), "b");
  renameSync(join(settings.dataDir, "cluster"), join(settings.dataDir, "cluster.draft"));
  pointAt(join(settings.dataDir, "cluster.draft"), { etcd: ["http://127.0.0.1:1"] });
  await joinHost(await here.token(), "b", settings);
  expect(traces(settings.dataDir)).toEqual(["cluster", "secrets.key"]);
});

it("finishes a join that was cut short after the host had become a member", async () => {
  const { token, cluster } = await oneHost();
  const used = await token();
  const settings = await joinHost(used, "b");
  // As kill -9 leaves it just before the last step.
  renameSync(join(settings.dataDir, "cluster"), join(settings.dataDir, "cluster.draft"));
  await joinHost(used, "b", settings);
  expect(existsSync(join(settings.dataDir, "cluster.draft"))).toBe(false);
  await openHost(settings);
  await vi.waitFor(() => expect(cluster.view.host("b")?.up).toBeDefined());
});

it("makes a cluster once, also when it was cut short, and not in another cluster's directory", async () => {
  const { place, cluster } = await oneHost();
  const other = await bareHost();
  await refused(
    initCluster({ settings: other, name: "x", directory: place }),
    "failed_precondition",
    `has the data of cluster ${cluster.record.id}`,
    "hibernaut cluster join",
  );
  // A key of its own.
  expect(traces(other.dataDir)).toEqual(["secrets.key"]);

  const own = { local: join(other.dataDir, "own.db") };
  const { clusterId } = await initCluster({ settings: other, name: "x", directory: own });
  renameSync(join(other.dataDir, "cluster"), join(other.dataDir, "cluster.draft"));
  expect(await initCluster({ settings: other, name: "x", directory: own })).toMatchObject({ clusterId });
});

it("does not start with a directory that has another cluster's data, or none", async () => {
  const first = await oneHost();
  const settings = await joinHost(await first.token(), "b");
  const folder = join(settings.dataDir, "cluster");
  const second = await oneHost("z");
  pointAt(folder, second.place);
  await refused(
    openHost(settings),
    "failed_precondition",
    `has the data of another cluster, ${second.cluster.record.id}`,
    "restore it",
  );
  pointAt(folder, { local: join(settings.dataDir, "empty.db") });
  await refused(openHost(settings), "failed_precondition", "has no cluster's data");
});

it("refuses at the start what does not fit: a host that was removed, a region, a version", async () => {
  const { token, cluster } = await oneHost();
  const settings = await joinHost(await token(), "b");
  await refused(openHost({ ...settings, region: "north" }), "failed_precondition", "Set HIBERNAUT_REGION=local");
  await refused(openHost(settings, { version: "0.3.0" }), "failed_precondition", "host a has 0.1.0");
  await vi.waitFor(() => expect(cluster.view.host("b")).toBeDefined());
  await cluster.admin.remove("b");
  await refused(
    openHost(settings),
    "failed_precondition",
    "Host b was removed from the cluster",
    "cluster leave --forget",
  );
  expect(await leaveCluster({ settings, forget: true })).toMatchObject({ host: "b" });
  await joinHost(await token(), "b", settings);
  await openHost(settings);
});

it("removes no host that is up or has machines, and leaves none behind", async () => {
  const { token, cluster } = await oneHost();
  const settings = await joinHost(await token(), "b");
  const key = `${KEYS.machines}1`;
  const owner = { app: "shop", name: "m", host: "b", epoch: 1, address: "10.0.0.2" };
  await cluster.view.reached((await cluster.directory.transact([], [put(key, owner)])) ?? 0);
  await refused(cluster.admin.remove("b"), "failed_precondition", "has 1 machine", "hosts evacuate b");
  await refused(leaveCluster({ settings }), "failed_precondition", "has 1 machine", "hosts drain b");
  await refused(cluster.admin.remove("a"), "failed_precondition", "Host a is up");
  await refused(cluster.admin.remove("c"), "not_found", "There is no host c");
  await cluster.directory.transact([], [deletion(key)]);
  await leaveCluster({ settings });
  await vi.waitFor(() => expect(cluster.view.host("b")).toBeUndefined());
  await refused(leaveCluster({ settings }), "failed_precondition", "This host is not in a cluster");
});

it("does not start a cluster with an address that is not one", async () => {
  const settings = await bareHost();
  const directory = { local: join(settings.dataDir, "d.db") };
  await refused(
    initCluster({ settings, name: "a", peer: "a b:c", directory }),
    "invalid_argument",
    "--peer a b:c is not an address",
  );
  await refused(joinCluster({ settings, name: "a", version: "0.1.0", token: "x" }), "invalid_argument", "join token");
});
