/**
 * Backups in a bucket of a real server that speaks S3, with the faults that such servers have.
 *
 * @module-tag again
 */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { runningMachine } from "../../../platform/test/helpers/fake-world.ts";
import { Home, patient, restore } from "./helpers.ts";
import { ACCESS, type Swift, startSwift } from "./swift.ts";

let swift: Swift;
let home: Home;

beforeAll(async () => {
  swift = await startSwift();
  // As an administrator tells the platform of an authority of their own.
  process.env["SSL_CERT_FILE"] = swift.certificate;
});
afterAll(async () => {
  delete process.env["SSL_CERT_FILE"];
  await swift[Symbol.asyncDispose]();
});
beforeEach(async () => {
  home = await Home.open();
});
afterEach(() => home.close());

const TIMEOUT = { timeout: 300_000 };

test("a bucket alone gives the platform back, and is listed and checked", TIMEOUT, async () => {
  await runningMachine(home.platform);
  const target = await home.add({ url: swift.url("whole"), ...ACCESS });
  expect(await home.backUp()).toMatchObject({ state: "complete", error: null });
  expect(await home.targets.sets("disk", patient())).toMatchObject([
    { state: "complete", apps: ["shop"], machines: 1 },
  ]);
  expect(await home.check(true)).toMatchObject({ error: null });
  await restore({ ...target, ...ACCESS });
});

test("wrong credentials are told from a bucket that is not there, and nothing is stored", TIMEOUT, async () => {
  const add = (secretKey: string) => home.add({ url: swift.url("closed"), ...ACCESS, secretKey });
  await expect(add("wrong")).rejects.toMatchObject({
    code: "failed_precondition",
    message: expect.stringMatching(/refuses the access/),
  });
  expect(await home.targets.list()).toEqual([]);
  await add(ACCESS.secretKey);
});

test("connections that are cut are made again, and what arrives is whole", TIMEOUT, async () => {
  await runningMachine(home.platform);
  const cutting = await cutConnections(swift.port, 6);
  try {
    const target = await home.add({ url: `s3://127.0.0.1:${cutting.port}/cut/home`, ...ACCESS });
    expect(await home.backUp()).toMatchObject({ state: "complete" });
    expect(cutting.cuts).toBeGreaterThan(0);
    await restore({ ...target, ...ACCESS });
  } finally {
    await cutting.close();
  }
});

test("a full bucket fails the backup at once, says so, and keeps the one before", TIMEOUT, async () => {
  const target = await home.add({ url: swift.url("full"), ...ACCESS });
  expect(await home.backUp()).toMatchObject({ state: "complete" });
  await runningMachine(home.platform);
  await swift.limit("full", 10);
  expect(await home.backUp()).toMatchObject({
    state: "failed",
    error: { code: "resource_exhausted", message: expect.stringMatching(/is full/) },
  });
  expect(home.events()).toEqual(["backup.complete", "backup.failed"]);
  expect((await home.targets.get("disk")).lastSuccess).not.toBe(null);
  await restore({ ...target, ...ACCESS });
});

/** Passes connections on, and cuts every third of the first ones in the middle of what the client sends. */
async function cutConnections(to: number, most: number) {
  const open = new Set<Socket>();
  let seen = 0;
  const state = { port: 0, cuts: 0, close: async () => {} };
  const server = createServer((client) => {
    const upstream = connect(to, "127.0.0.1");
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.on("close", () => open.delete(socket)).on("error", () => {});
    }
    client.pipe(upstream).pipe(client);
    seen += 1;
    if (seen % 3 !== 0 || state.cuts >= most) return;
    let bytes = 0;
    client.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      // After the greetings of TLS.
      if (bytes < 2000 || client.destroyed) return;
      state.cuts += 1;
      client.destroy();
      upstream.destroy();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  state.port = (server.address() as AddressInfo).port;
  state.close = async () => {
    for (const socket of open) socket.destroy();
    server.close();
    await once(server, "close");
  };
  return state;
}
