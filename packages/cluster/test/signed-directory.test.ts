/** What someone writes to the directory by hand counts for nothing, and an administrator may vouch for what is there. */
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { useTempFolder } from "../../platform/test/helpers/temp.ts";
import { hashOf, newJoinSecret, readJoinToken, writeJoinToken } from "../src/join-token.ts";
import { KEYS } from "../src/keys.ts";
import { LocalDirectory } from "../src/local/directory.ts";
import { signCluster } from "../src/repairs.ts";
import { RecordSeal, SignedDirectory } from "../src/signed-directory.ts";
import { put } from "../src/stored.ts";
import { describeDirectory } from "./directory-conformance.ts";
import { joinHost, oneHost, openHost } from "./place.ts";

const SECRET = Buffer.alloc(32, 7);
/** More than the conformance tests need. */
const HISTORY = 40;

const folder = useTempFolder("signed");
const unsigned = () => new LocalDirectory(join(folder.path, "directory.db"), { history: HISTORY });
const open = (onForged?: (key: string) => void) =>
  new SignedDirectory({ directory: unsigned(), seal: new RecordSeal(SECRET, "c1"), onForged });

describeDirectory("in an SQLite file, with signed records", () => ({
  open,
  async forget() {
    const directory = unsigned();
    for (let count = 0; count < HISTORY - 1; count += 1)
      await directory.transact([], [{ key: "/elsewhere", value: String(count) }]);
    await directory.close();
  },
  leaseMs: 300,
}));

it("a record counts only as it was signed: not changed, not for another key, and not for another cluster", () => {
  const seal = new RecordSeal(SECRET, "c1");
  const text = seal.sign("/hib/tokens/1", '{"scopes":["read"]}');
  expect(seal.open("/hib/tokens/1", text)).toBe('{"scopes":["read"]}');
  expect(seal.open("/hib/tokens/2", text)).toBeUndefined();
  expect(seal.open("/hib/tokens/1", text.replace("read", "admin"))).toBeUndefined();
  for (const forged of ["", "{}", '{"scopes":["admin"]}', text.slice(0, -1), `${text} `, text.replace("mac", "cam")])
    expect(seal.open("/hib/tokens/1", forged), forged).toBeUndefined();
  expect(new RecordSeal(SECRET, "c2").open("/hib/tokens/1", text)).toBeUndefined();
  expect(new RecordSeal(Buffer.alloc(32, 8), "c1").open("/hib/tokens/1", text)).toBeUndefined();
});

it("anyone who writes a record by hand is not believed, and it is said once", async () => {
  const told: string[] = [];
  const [strange, signed] = [unsigned(), open((key) => told.push(key))];
  onTestFinished(async () => void (await Promise.all([strange.close(), signed.close()])));
  const key = "/hib/tokens/forged";
  const first = (await signed.transact([], [{ key, value: '{"scopes":["read"]}' }])) ?? 0;
  for (const value of ['{"scopes":["admin"]}', "no JSON"]) await strange.transact([], [{ key, value }]);
  expect(await signed.get(key)).toBeUndefined();
  expect((await signed.list("/hib/tokens/")).entries).toEqual([]);
  for await (const changes of signed.watch("/hib/tokens/", first, AbortSignal.timeout(5000))) {
    expect(changes.map(({ value }) => value)).toEqual([null, null]);
    break;
  }
  expect(told).toEqual([key]);
});

it("a host does not join with a token that someone put into the directory", async () => {
  const { place, token, cluster } = await oneHost();
  const directory = new LocalDirectory(place.local);
  onTestFinished(() => directory.close());
  const { id, secret } = newJoinSecret();
  const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
  const value = JSON.stringify({ hash: hashOf(secret), expiresAt });
  await directory.transact([], [{ key: `${KEYS.joins}${id}`, value }]);
  const forged = writeJoinToken({ ...readJoinToken(await token()), id, secret, expiresAt });
  await expect(joinHost(forged, "b")).rejects.toMatchObject({ code: "unauthenticated" });
  const member = cluster.view.host("a")?.member;
  await directory.transact([], [put(`${KEYS.members}c`, member)]);
  await joinHost(await token(), "d");
  await vi.waitFor(() => expect(cluster.view.hosts().map(({ name }) => name)).toEqual(["a", "d"]));
});

/** What leaves a cluster with records that none of its hosts believes. */
const UNBELIEVED = {
  "was made by a version that did not sign": async (directory: LocalDirectory) => {
    for (const { key, value } of (await directory.list("/hib/")).entries) {
      const { record } = JSON.parse(value) as { record?: unknown };
      if (record !== undefined) await directory.transact([], [put(key, record)]);
    }
  },
  "got a new key of the secrets": async (_directory: LocalDirectory, dataDir: string) =>
    writeFileSync(join(dataDir, "secrets.key"), randomBytes(32)),
};

it.each(Object.entries(UNBELIEVED))(
  "a cluster that %s continues once an administrator vouches for it",
  async (_, by) => {
    const { place, cluster, token } = await oneHost();
    const b = await joinHost(await token(), "b");
    await vi.waitFor(() => expect(cluster.view.host("b")).toBeDefined());
    const directory = new LocalDirectory(place.local);
    onTestFinished(() => directory.close());
    await by(directory, b.dataDir);
    await expect(openHost(b)).rejects.toThrow("its record is not signed (docs/cluster.md#records-are-signed)");
    const refuse = () => Promise.reject(new Error("no"));
    await expect(signCluster({ settings: b, agree: refuse })).rejects.toThrow("no");
    const asked: string[] = [];
    const agree = async (keys: readonly string[]) => void asked.push(...keys);
    const members = ["a", "b"].map((name) => `${KEYS.members}${name}`);
    expect(await signCluster({ settings: b, agree })).toEqual(members);
    expect(asked).toEqual(members);
    expect(await signCluster({ settings: b, agree })).toEqual([]);
    const opened = await openHost(b);
    await vi.waitFor(() => expect(opened.view.hosts().map(({ name }) => name)).toEqual(["a", "b"]));
  },
);
