import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { startApi, type TestApi } from "../../api/test/helpers.ts";
import { HibernautClient } from "../src/index.ts";

let server: TestApi;
let client: HibernautClient;

beforeEach(async () => {
  server = await startApi();
  client = new HibernautClient({ apiUrl: `${server.url}/`, token: server.token });
});
afterEach(() => server.close());

test("every route has a method", async () => {
  expect(await client.getHealth()).toMatchObject({ status: "ok" });
  expect(await client.listRegions()).toEqual([{ code: "local", name: "local" }]);
  expect(await client.createApp("shop")).toMatchObject({ name: "shop" });
  expect(await client.getApp("shop")).toMatchObject({ machine_count: 0 });
  expect(await client.listApps()).toHaveLength(1);

  const { id } = await client.createMachine("shop", { name: "web", config: { image: "x" } });
  expect(await client.waitForMachine("shop", id)).toBe("running");
  expect(await client.listMachines("shop")).toMatchObject([{ id, name: "web" }]);
  await client.suspendMachine("shop", id);
  expect(await client.waitForMachine("shop", id, { state: ["suspended", "failed"], timeout: 5 })).toBe("suspended");
  expect(await client.startMachine("shop", id)).toMatchObject({ previous_state: "suspended" });
  await client.waitForMachine("shop", id);
  await client.restartMachine("shop", id, { timeout: 20 });
  await client.waitForMachine("shop", id);
  await client.stopMachine("shop", id, { stopSignal: "SIGINT" });
  await client.waitForMachine("shop", id, { state: ["stopped"] });
  expect(server.platform.machines.events("shop", id, 5)).toMatchObject([
    {},
    { type: "stop", details: { signal: "SIGINT" } },
    {},
    {},
    { type: "restart", details: { timeout: 20 } },
  ]);
  expect(await client.updateMachine("shop", id, { image: "y" })).toMatchObject({ id, state: "updating" });
  await client.waitForMachine("shop", id, { state: ["settled"] });
  expect(await client.updateMachine("shop", id)).toMatchObject({ id, config: { image: "y" } });
  await client.waitForMachine("shop", id, { state: ["settled"] });
  expect(await client.getMachine("shop", id)).toMatchObject({ id });
  expect(await client.listMachineEvents("shop", id, { limit: 3 })).toHaveLength(3);
  expect(await client.setSecrets("shop", { A: "1" }, { dry_run: true })).toMatchObject({ discarded: [] });
  expect(await client.setSecrets("shop", { A: "1" })).toMatchObject({ discarded: [] });
  expect(await client.listSecrets("shop")).toMatchObject([{ name: "A", digest: expect.any(String) }]);
  expect(await client.unsetSecret("shop", "A", { dry_run: true })).toMatchObject({ discarded: [] });
  expect(await client.unsetSecret("shop", "A")).toMatchObject({ discarded: [] });
  const volume = await client.createVolume("shop", { name: "data" });
  expect(await client.listVolumes("shop")).toEqual([volume]);
  expect(await client.getVolume("shop", volume.id)).toEqual(volume);
  expect(await client.extendVolume("shop", volume.id, 2)).toMatchObject({
    volume: { size_gb: 2 },
    needs_restart: false,
  });
  const snapshot = await client.createVolumeSnapshot("shop", volume.id);
  expect(await client.listVolumeSnapshots("shop", volume.id)).toEqual([snapshot]);
  await client.destroyVolumeSnapshot("shop", volume.id, snapshot.id);
  await client.destroyVolume("shop", volume.id);
  const steps: string[] = [];
  const image = await client.pullImage("me/app:1", { onProgress: ({ step }) => steps.push(step) });
  expect(image).toMatchObject({ ref: "me/app:1", digest: expect.stringMatching(/^sha256:/) });
  expect(steps).toEqual(["resolve", "download", "download"]);
  expect(await client.startSession(server.token)).toMatchObject({ token: { name: "test" }, scopes: ["admin"] });
  expect(await client.getSession()).toMatchObject({ token: { name: "test" }, expires_at: null });
  await client.endSession();
  expect(await client.listUploads()).toEqual([]);
  const kept = (await client.listImages()).map((one) => [one.ref, one.in_use]);
  expect(Object.fromEntries(kept)).toEqual({ x: false, y: true, "me/app:1": false });
  await expect(client.pullImage("missing")).rejects.toMatchObject({ code: "not_found", status: 404 });
  await expect(client.pullImage("damaged")).rejects.toMatchObject({ code: "invalid_argument", status: 200 });
  expect((await client.pruneImages()).deleted).toContain(image.digest);
  expect(await client.listImages()).toMatchObject([{ ref: "y", in_use: true }]);
  expect(await client.logInToRegistry("ghcr.io", { username: "me", password: "right" })).toEqual({
    host: "ghcr.io",
    username: "me",
  });
  expect(await client.listRegistryLogins()).toEqual([await client.getRegistryLogin("ghcr.io")]);
  await client.logOutOfRegistry("ghcr.io");
  await client.destroyMachine("shop", id, { force: true });
  await client.destroyApp("shop", { force: true });
  const used = await client.getUsage({ group_by: "machine", from: "7d", app: "shop" });
  expect(used.usage).toMatchObject([{ app_name: "shop", machine_id: id, machine_name: "web" }, { machine_id: null }]);
  expect(await client.getMachineUsage("shop", id, { from: "7d" })).toMatchObject({ group_by: "day", currency: null });

  const { token, id: tokenId } = await client.createToken("ci");
  expect(await new HibernautClient({ apiUrl: server.url, token }).listTokens()).toHaveLength(2);
  await client.revokeToken(tokenId);
});

test("logs come line by line, complete, and can be followed", async () => {
  await client.createApp("shop");
  const made = ["one", "two"].map((name) => client.createMachine("shop", { name, config: { image: "x" } }));
  const ids = (await Promise.all(made)).map(({ id }) => id) as [string, string];
  for (const id of ids) await client.waitForMachine("shop", id);
  const line = (count: number) => `${count} ${"ä€😀".repeat(100)}`;
  for (let count = 0; count < 300; count += 1) server.world.host.guest(ids[count % 2] ?? "")?.print(line(count));
  for (const id of ids) await server.print(id, "that was all");
  const all = await Array.fromAsync(client.readLogs("shop", { limit: 1000, stream: "stdout" }));
  expect(all).toHaveLength(302);
  for (const [first, id] of ids.entries())
    expect(all.filter(({ machine }) => machine === id).map(({ text }) => text)).toEqual([
      ...Array.from({ length: 150 }, (_, index) => line(2 * index + first)),
      "that was all",
    ]);
  const times = all.map(({ at }) => at);
  expect(times).toEqual(times.toSorted());
  expect(await Array.fromAsync(client.readLogs("shop", { machine: ids[0] }))).toHaveLength(100);
  expect(await Array.fromAsync(client.readLogs("shop", { machine: ids, since: "1h", stream: "stderr" }))).toEqual([]);
  await expect(client.readLogs("shop", { machine: "nope" }).next()).rejects.toMatchObject({ code: "not_found" });

  const leave = new AbortController();
  const lines = client.followLogs("shop", { machine: ids[1], limit: 1, signal: leave.signal });
  expect((await lines.next()).value).toMatchObject({ machine: ids[1], text: "that was all" });
  await server.print(ids[1], "live");
  expect((await lines.next()).value).toMatchObject({ machine: ids[1], stream: "stdout", text: "live" });
  leave.abort(new Error("enough"));
  await expect(lines.next()).rejects.toThrow("enough");
});

describe("a failure", () => {
  test("has the platform's code, message, details and request id", async () => {
    const failure = client.createMachine("shop", { config: { image: "x" } });
    await expect(failure).rejects.toMatchObject({
      name: "ApiError",
      code: "not_found",
      status: 404,
      message: "There is no app shop. Create it with `hibernaut apps create shop`.",
    });
    await expect(failure).rejects.toMatchObject({
      requestId: expect.stringMatching(/./),
      details: { app_name: "shop" },
    });
  });

  test("to connect tells how to start the platform", async () => {
    const nobody = new HibernautClient({ apiUrl: "http://127.0.0.1:1", token: "x" });
    await expect(nobody.listApps()).rejects.toMatchObject({
      code: "unavailable",
      status: 0,
      message: expect.stringContaining(
        "The platform does not answer at http://127.0.0.1:1. Start it with `hibernaut serve`",
      ),
    });
  });

  test("because of an invalid address names it", async () => {
    const nowhere = new HibernautClient({ apiUrl: "nonsense", token: "x" });
    await expect(nowhere.listApps()).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining("nonsense"),
    });
  });

  test.each([200, 502])("because another server answers with %s is an ApiError", async (status) => {
    const other = createServer((_request, response) => response.writeHead(status).end("<html>"));
    onTestFinished(() => void other.close());
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const { port } = other.address() as AddressInfo;
    const stranger = new HibernautClient({ apiUrl: `http://127.0.0.1:${port}`, token: "x" });
    await expect(stranger.listApps()).rejects.toMatchObject({ name: "ApiError", status });
  });

  test("because the platform does not answer in time does not suggest starting another one", async () => {
    const silent = () => Promise.reject(new TypeError("fetch failed", { cause: { code: "UND_ERR_HEADERS_TIMEOUT" } }));
    const slow = new HibernautClient({ apiUrl: server.url, token: "x", fetch: silent });
    await expect(slow.listApps()).rejects.toMatchObject({ code: "deadline_exceeded", status: 0 });
  });

  test("by an abort has the signal's reason, even while waiting", async () => {
    await expect(client.listApps({ signal: AbortSignal.abort(new Error("enough")) })).rejects.toThrow("enough");
    await client.createApp("shop");
    server.world.holdBoots();
    const { id } = await client.createMachine("shop", { config: { image: "x" } });
    await expect(client.waitForMachine("shop", id, { signal: AbortSignal.timeout(50) })).rejects.toThrow(/timeout/);
  });
});

test("names are encoded and cannot lead to another path", async () => {
  await expect(client.getApp("../tokens")).rejects.toMatchObject({ code: "not_found" });
  await expect(client.destroyApp("..")).rejects.toMatchObject({ code: "invalid_argument" });
  await expect(client.getApp("a?b#c")).rejects.toMatchObject({ code: "not_found" });
});
