/** What all hosts of a cluster share: one winner for each name, the same records everywhere, and what that tells machines. */
import { HibernautError } from "@hibernaut/domain/errors";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createToken, revokeToken, rotateToken, verifyToken } from "../../../api/src/tokens.ts";
import { SMALL } from "../../../platform/test/helpers/fake-world.ts";
import { startHosts, type TestHost, type TestHosts } from "./hosts.ts";

let running: TestHosts;
let a: TestHost;
let b: TestHost;
let c: TestHost;

beforeEach(async () => {
  running = await startHosts();
  [a, b, c] = running.hosts as [TestHost, TestHost, TestHost];
});
afterEach(() => running.close());

const everywhere = (check: (host: TestHost) => void) =>
  vi.waitFor(() => running.hosts.forEach(check), { timeout: 10_000, interval: 5 });
const create = ({ shared }: TestHost, name: string) => shared.write(({ apps }) => apps.create(name));
const addHostname = ({ shared }: TestHost, app: string, name: string) =>
  shared.write(({ hostnames }) => hostnames.add(app, name));
const away = () => new HibernautError("unavailable", "The cluster directory does not answer.");

test("of three hosts that create an app of the same name at the same moment, one does", async () => {
  const results = await Promise.allSettled(running.hosts.map((host) => create(host, "shop")));
  expect(results.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected", "rejected"]);
  for (const result of results)
    if (result.status === "rejected") expect(result.reason).toMatchObject({ code: "already_exists" });
  const [created] = results.flatMap((result) => (result.status === "fulfilled" ? [result.value.createdAt] : []));
  await everywhere(({ platform }) => expect(platform.apps.get("shop").createdAt).toBe(created));
});

test("what one host has just created can be used on another at once", async () => {
  for (let count = 0; count < 20; count++) {
    await create(a, `app-${count}`);
    await addHostname(b, `app-${count}`, `app-${count}.example.com`);
  }
  expect(Object.keys(b.platform.hostnames.owners())).toHaveLength(20);
});

test("a hostname belongs to one app, and the loser learns to which; proxies of all hosts hear of it", async () => {
  await create(a, "shop");
  await create(a, "blog");
  const heard = vi.fn<() => void>();
  c.platform.hostnames.subscribe(heard);
  const results = await Promise.allSettled([
    addHostname(a, "shop", "www.example.com"),
    addHostname(b, "blog", "www.example.com"),
  ]);
  const lost = results.find((result) => result.status === "rejected");
  expect(lost?.reason).toMatchObject({ code: "already_exists", details: { hostname: "www.example.com" } });
  const winner = results[0]?.status === "fulfilled" ? "shop" : "blog";
  await everywhere(({ platform }) => expect(platform.hostnames.owners()).toEqual({ "www.example.com": winner }));
  expect(heard).toHaveBeenCalledOnce();
});

describe("tokens", () => {
  test("a token of one host is valid on all, and revoked on all", async () => {
    const { record, token } = await a.shared.write(({ tokens }) => createToken(tokens, "ci"));
    await a.shared.write(({ tokens }) => createToken(tokens, "other"));
    await everywhere(({ world }) => expect(verifyToken(world.store.tokens, token)?.id).toBe(record.id));
    await c.shared.write(({ tokens }) => revokeToken(tokens, record.id));
    await everywhere(({ world }) => expect(verifyToken(world.store.tokens, token)).toBeUndefined());
  });

  test("a rotation is seen everywhere, with both tokens", async () => {
    const { record } = await a.shared.write(({ tokens }) => createToken(tokens, "ci"));
    const made = await b.shared.write(({ tokens }) => rotateToken(tokens, record.id, { overlapMs: 60_000 }));
    await everywhere(({ world }) => {
      expect(verifyToken(world.store.tokens, made.token)?.name).toBe("ci");
      expect(world.store.tokens.get(record.id)?.replacedBy).toBe(made.record.id);
    });
  });

  test("two hosts cannot revoke each other's last token that may do everything", async () => {
    const one = await a.shared.write(({ tokens }) => createToken(tokens, "one"));
    const two = await a.shared.write(({ tokens }) => createToken(tokens, "two"));
    await everywhere(({ world }) => expect(world.store.tokens.list()).toHaveLength(2));
    const results = await Promise.allSettled([
      b.shared.write(({ tokens }) => revokeToken(tokens, one.record.id)),
      c.shared.write(({ tokens }) => revokeToken(tokens, two.record.id)),
    ]);
    expect(results.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
  });

  test("a token that is limited to a deleted app does not reach a later app of the same name", async () => {
    await create(a, "shop");
    const { token } = await a.shared.write(({ tokens }) => createToken(tokens, "limited", { apps: ["shop"] }));
    await b.shared.deleteApp("shop", async () => {});
    await create(c, "shop");
    await everywhere(({ world, platform }) => {
      expect(platform.apps.get("shop").name).toBe("shop");
      expect(verifyToken(world.store.tokens, token)?.apps).toEqual([]);
    });
  });
});

test("secrets that one host sets are read on all, and machines of all hosts lose their snapshots", async () => {
  await create(a, "shop");
  await everywhere(({ platform }) => platform.apps.get("shop"));
  const { record } = await c.platform.machines.create("shop", { config: SMALL });
  await c.platform.machines.wait("shop", record.id, ["running"], { timeoutMs: 10_000 });
  c.platform.machines.suspend("shop", record.id);
  await c.platform.machines.wait("shop", record.id, ["suspended"], { timeoutMs: 10_000 });
  await a.shared.write(({ secrets }) => secrets.set("shop", { KEY: "one", OTHER: "two" }));
  await vi.waitFor(() => expect(c.platform.machines.get("shop", record.id).record.snapshot).toBeNull());
  await b.shared.write(({ secrets }) => secrets.unset("shop", "OTHER"));
  await everywhere(({ platform }) => expect(platform.secrets.list("shop").map(({ name }) => name)).toEqual(["KEY"]));
});

test("releases have one sequence of versions, and only the host that a client reports to gives it up", async () => {
  await create(a, "shop");
  const begin = (host: TestHost) => host.shared.write(({ releases }) => releases.begin("shop", "shop:1", ""));
  const versions = (await Promise.all([a, b, c, a, b, c].map(begin))).map(({ version }) => version);
  expect(versions.toSorted((one, other) => one - other)).toEqual([1, 2, 3, 4, 5, 6]);
  await c.shared.write(({ releases }) => releases.end("shop", 1, "complete", "done"));
  await everywhere(({ world }) =>
    expect(world.store.releases.list("shop", 10).map(({ version, status }) => `${version} ${status}`)).toEqual([
      ...[6, 5, 4, 3, 2].map((version) => `${version} pending`),
      "1 complete",
    ]),
  );
});

describe("an app's deletion", () => {
  test("takes what belongs to it, on all hosts", async () => {
    await create(a, "shop");
    await addHostname(a, "shop", "www.example.com");
    await a.shared.write(({ secrets }) => secrets.set("shop", { KEY: "1" }));
    for (let count = 0; count < 105; count++)
      await a.shared.write(({ releases }) => releases.begin("shop", "shop:1", ""));
    await b.shared.deleteApp("shop", async () => {});
    await everywhere(({ records }) => expect([...records().keys()]).toEqual([]));
  });

  test("lets nobody add anything while it takes, and leaves the app if it fails", async () => {
    await create(a, "shop");
    const failing = a.shared.deleteApp("shop", async () => {
      await expect(addHostname(b, "shop", "x.example.com")).rejects.toMatchObject({ code: "aborted" });
      throw new HibernautError("failed_precondition", "App shop still has 1 machine(s).");
    });
    await expect(failing).rejects.toMatchObject({ code: "failed_precondition" });
    expect(await addHostname(b, "shop", "x.example.com")).toBe("x.example.com");
  });
});

describe("an app whose name is given away while an earlier one is still on a host", () => {
  test("has all that belongs to it there, once the earlier one is gone", async () => {
    await create(a, "shop");
    await everywhere(({ platform }) => platform.apps.get("shop"));
    await addHostname(a, "shop", "www.example.com");
    const volume = await c.platform.volumes.create("shop", { name: "data" });
    await a.shared.deleteApp("shop", async () => {});
    const { createdAt } = await create(a, "shop");
    await addHostname(a, "shop", "www.example.com");
    await a.shared.write(({ secrets }) => secrets.set("shop", { KEY: "1" }));
    await a.shared.write(({ releases }) => releases.begin("shop", "shop:1", ""));
    await a.shared.write(({ tokens }) => createToken(tokens, "mine", { scopes: ["read"], apps: ["shop"] }));
    await c.shared.catchUp();
    expect(c.platform.apps.get("shop").createdAt).not.toBe(createdAt);
    expect(c.world.store.secrets.list("shop")).toEqual([]);
    await c.platform.volumes.destroy("shop", volume.id);
    // Any further change lets the host try again what it could not do.
    await create(a, "another");
    await everywhere(({ platform }) => expect(platform.apps.get("shop").createdAt).toBe(createdAt));
    await everywhere(({ platform }) => platform.apps.get("another"));
    const [first] = running.hosts.map(({ records }) => [...records()]);
    for (const { records } of running.hosts) expect([...records()]).toEqual(first);
    expect(first?.map(([key]) => key)).toHaveLength(6);
  });
});

describe("a host that misses changes", () => {
  test("has them after it starts again, also what was deleted", async () => {
    await create(a, "gone");
    await create(a, "again");
    await everywhere(({ platform }) => platform.apps.get("again"));
    await c.stop();
    await a.shared.deleteApp("gone", async () => {});
    await a.shared.deleteApp("again", async () => {});
    const { createdAt } = await create(a, "again");
    await c.start();
    await everywhere(({ platform }) => expect(platform.apps.list()).toEqual([{ name: "again", createdAt }]));
  });

  test("publishes a token of its own, and keeps it", async () => {
    const { record } = createToken(b.world.store.tokens, "admin");
    b.shared.publishToken(record.id);
    await everywhere(({ world }) => expect(world.store.tokens.get(record.id)?.name).toBe("admin"));
  });
});

describe("a directory that does not answer", () => {
  test("refuses changes and leaves reads as they are", async () => {
    await create(a, "shop");
    await everywhere(({ platform }) => platform.apps.get("shop"));
    vi.spyOn(b.cluster.directory, "transact").mockRejectedValue(away());
    await expect(create(b, "blog")).rejects.toMatchObject({
      code: "unavailable",
      details: { ambiguous: true },
    });
    expect(b.platform.apps.list()).toMatchObject([{ name: "shop" }]);
  });

  test("a change whose confirmation was lost reaches all hosts", async () => {
    const { directory } = b.cluster;
    const transact = directory.transact.bind(directory);
    vi.spyOn(directory, "transact").mockImplementationOnce(async (...all) => {
      await transact(...all);
      throw away();
    });
    await expect(create(b, "shop")).rejects.toMatchObject({ code: "unavailable" });
    await everywhere(({ platform }) => expect(platform.apps.get("shop").name).toBe("shop"));
  });
});
