import { once } from "node:events";
import { createServer } from "node:http";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { freePort } from "../../../scripts/lib/free-port.mjs";
import { EtcdDirectory } from "../src/etcd/directory.ts";
import { describeDirectory } from "./directory-conformance.ts";
import { type Etcd, startEtcd } from "./etcd.ts";

let etcd: Etcd;
beforeAll(async () => {
  etcd = await startEtcd();
});
afterAll(() => etcd.dispose());

const open = (endpoints = etcd.endpoints) => new EtcdDirectory({ endpoints });
/** Nothing else will answer in its place. */
const openFor = (endpoint: string) => new EtcdDirectory({ endpoints: [endpoint], patienceMs: 500 });

describeDirectory("in etcd", () => ({
  open,
  forget: (revision) => etcd.compact(revision),
  // With the election time-out of the tests' etcd.
  leaseMs: 1000,
}));

it("uses the next member when one does not listen", async () => {
  const directory = open([`http://127.0.0.1:${await freePort()}`, ...etcd.endpoints]);
  onTestFinished(() => directory.close());
  expect(await directory.transact([], [{ key: "/hib/next", value: "1" }])).toBeGreaterThan(1);
  expect((await directory.get("/hib/next"))?.value).toBe("1");
});

it("says where nothing answers, and what to check", async () => {
  const endpoint = `http://127.0.0.1:${await freePort()}`;
  const directory = openFor(endpoint);
  onTestFinished(() => directory.close());
  await expect(directory.get("/hib/x")).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringMatching(
      new RegExp(`etcd at ${endpoint}: .*ECONNREFUSED.*Check that most members of etcd run`),
    ),
  });
});

it("recognizes a server that is not etcd", async () => {
  const server = createServer((_request, response) => response.writeHead(404).end("<html>")).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const directory = openFor(`http://127.0.0.1:${(server.address() as { port: number }).port}`);
  onTestFinished(() => directory.close());
  await expect(directory.get("/hib/x")).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("replies 404, which is not from etcd's JSON gateway"),
  });
});

it("lists keys whose values are larger together than a message of gRPC", async () => {
  const directory = open();
  onTestFinished(() => directory.close());
  const value = JSON.stringify("x".repeat(1_000_000));
  for (let index = 0; index < 6; index += 1) await directory.transact([], [{ key: `/hib/large/${index}`, value }]);
  expect((await directory.list("/hib/large/")).entries).toHaveLength(6);
});
