/**
 * Three hosts, real etcd, real machines: everything that a user does with an app, through the host that does not have it.
 *
 * @module-tag again
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { HibernautClient, MachineConfig } from "@hibernaut/client";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type Hosts, startHosts } from "../../../cluster/test/hosts.ts";
import { shellImage } from "../helpers/shell-image.ts";
import { waitS } from "../helpers/slow.ts";

const WAIT_S = waitS(120);

let hosts: Hosts;
/** Talks to host a, which has no machine of the app. */
let client: HibernautClient;
let config: MachineConfig;
let id: string;

beforeAll(async () => {
  const [started, image] = await Promise.all([startHosts(), shellImage()]);
  hosts = started;
  client = hosts.host("a").client;
  config = { image, init: { cmd: ["-c", "echo ready; exec sleep 3600"] }, guest: { memory_mb: 128 }, services: [] };
  await client.createApp("shop");
  const machine = await client.createMachine("shop", { name: "web", host: "b", config });
  id = machine.id;
  await client.waitForMachine("shop", id, { state: "running", timeout: WAIT_S });
});
afterAll(() => hosts.dispose());

async function through(path: string, signal?: AbortSignal): Promise<Response> {
  const connection = await readFile(join(hosts.host("a").dataDir, "config.json"), "utf8");
  const { api_token: token } = JSON.parse(connection) as { api_token: string };
  return fetch(client.apiUrl + path, { headers: { authorization: `Bearer ${token}` }, ...(signal && { signal }) });
}

test("a machine is on the host that was asked for, and all hosts show it there", async () => {
  expect(await hosts.host("b").guests()).toHaveLength(1);
  expect(await hosts.host("a").guests()).toHaveLength(0);
  for (const { client: any } of hosts.all) {
    expect(await any.getMachine("shop", "web")).toMatchObject({ id, host: "b", state: "running" });
    expect(await any.listMachines("shop")).toMatchObject([{ id, host: "b" }]);
    expect(await any.getApp("shop")).toMatchObject({ name: "shop", machine_count: 1 });
  }
  expect((await through(`/v1/apps/shop/machines/web`)).headers.get("hibernaut-host")).toBe("b");
});

test("commands run in it, with their input and output as streams", async () => {
  expect(await client.runExec("shop", "web", { command: ["sh", "-c", "echo hello"] })).toMatchObject({
    exit_code: 0,
    stdout: "hello\n",
  });
  const session = await client.openExec("shop", "web", { command: ["cat"], stdin: true });
  const output = text(session.stdout);
  session.stdin.end("through the wrong host\n");
  expect(await output).toBe("through the wrong host\n");
  expect(await session.exit).toMatchObject({ exit_code: 0 });
});

test("files are copied in and out of it", async () => {
  const archive = await client.readArchive("shop", "web", "/etc/passwd");
  const bytes = Buffer.concat(await archive.toArray());
  expect(bytes.includes("root:")).toBe(true);
});

test("its log is followed while the app prints", async () => {
  const leave = new AbortController();
  const response = await through("/v1/apps/shop/machines/web/logs?follow=1", leave.signal);
  const reader = (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
  let seen = "";
  while (!seen.includes("ready")) seen += (await reader.read()).value ?? "";
  leave.abort();
});

test("it sleeps, wakes and is updated; secrets that any host sets are in its next environment", async () => {
  await client.suspendMachine("shop", "web");
  await client.waitForMachine("shop", id, { state: "suspended", timeout: WAIT_S });
  await hosts.host("c").client.setSecrets("shop", { COLOUR: "blue" });
  // The host that owns it hears of the change a moment later than the one that made it.
  await vi.waitFor(async () => expect((await client.getMachine("shop", id)).snapshot).toBeNull(), {
    timeout: WAIT_S * 1000,
    interval: 50,
  });
  await client.startMachine("shop", "web");
  await client.waitForMachine("shop", id, { state: "running", timeout: WAIT_S });
  expect((await client.runExec("shop", "web", { command: ["sh", "-c", "echo $COLOUR"] })).stdout).toBe("blue\n");
  await client.updateMachine("shop", "web", { ...config, env: { SIZE: "large" } });
  await client.waitForMachine("shop", id, { state: "running", timeout: WAIT_S });
  expect((await client.getMachine("shop", id)).config.env).toEqual({ SIZE: "large" });
});

test("a second machine goes to another host by itself, and both are destroyed through the third", async () => {
  const second = await client.createMachine("shop", { config });
  expect(second.host).not.toBe("b");
  await client.waitForMachine("shop", second.id, { state: "running", timeout: WAIT_S });
  const other = hosts.host("c").client;
  expect(await other.listMachines("shop")).toHaveLength(2);
  await other.destroyApp("shop", { force: true });
  await expect(client.getApp("shop")).rejects.toMatchObject({ code: "not_found" });
  for (const host of hosts.all) expect(await host.guests()).toEqual([]);
});
