/** Files of volumes that no sandbox has, on a fake host: what opens them goes when they are not used, or when someone wants the volume. */
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { SandboxNeeds } from "../src/contract.ts";
import { Refusal } from "../src/failure.ts";
import { Openers } from "../src/volume/openers.ts";
import { openPort, type Port } from "./port.ts";
import { newTenant, type Tenant } from "./tenant.ts";

let port: Port;
let of: Tenant;
const by = () => ({ "x-api-key": of.key, "content-type": "application/json" });

beforeAll(async () => {
  port = await openPort();
  of = await newTenant(port, "shop");
  await port.platform.templates.createOf("shop", { machine: of.machine, name: "base" }, new AbortController().signal);
});
afterAll(() => port.close());

async function newVolume(name: string) {
  const reply = await port.ask("POST /volumes", { headers: by(), body: JSON.stringify({ name }) });
  const { volumeID: id, token } = JSON.parse(reply.body) as { volumeID: string; token: string };
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/octet-stream" };
  const files = (route: string, body?: string) =>
    port.ask(route.replace("/", `/volumecontent/${id}/`), { headers, ...(body !== undefined && { body }) });
  const machine = () => port.platform.volumes.get("shop", id).machineId;
  const mount = () =>
    port.ask("POST /sandboxes", {
      headers: by(),
      body: JSON.stringify({ templateID: "base", timeout: 600, volumeMounts: [{ name, path: "/data" }] }),
    });
  return { id, files, machine, mount };
}

test("a machine that no client sees has the volume while its files are wanted, and makes room for a sandbox", async () => {
  const { files, machine, mount } = await newVolume("letters");
  const replies = await Promise.all([
    files("PUT /file?path=/a", "text"),
    files("GET /dir?path=/"),
    files("GET /path?path=/a"),
  ]);
  expect(replies.map(({ status }) => status)).toEqual([201, 200, 200]);
  const opener = machine() ?? "";
  expect(port.platform.machines.get("shop", opener).record).toMatchObject({ temporary: true, cordoned: true });
  expect((await port.ask("GET /v2/sandboxes", { headers: by() })).body).not.toContain(opener);
  const [one, other] = await Promise.all([mount(), mount()]);
  expect([one.status, other.status].toSorted((a, b) => a - b)).toEqual([201, 409]);
  expect(port.platform.machines.recordOf(opener)?.state ?? "destroyed").toBe("destroyed");
  const { sandboxID } = JSON.parse(one.status === 201 ? one.body : other.body) as { sandboxID: string };
  expect(machine()).toBe(sandboxID);
  // From now on, its files are reached there.
  expect((await files("GET /file?path=/a")).status).toBe(200);
  expect(machine()).toBe(sandboxID);
});

test("a volume whose files were just read is destroyed at once, and nothing of its machine is left", async () => {
  const { id, files, machine } = await newVolume("short");
  expect((await files("GET /file?path=/a")).status).toBe(200);
  const opener = machine() ?? "";
  expect((await port.ask(`DELETE /volumes/${id}`, { headers: by() })).status).toBe(204);
  expect(port.platform.machines.recordOf(opener)?.state ?? "destroyed").toBe("destroyed");
  expect((await files("GET /file?path=/a")).status).toBe(404);
});

test("an app opens a few volumes at once, and one whose machine was lost opens again", async () => {
  const volumes = await Promise.all(["a", "b", "c", "d", "e"].map((name) => newVolume(`many-${name}`)));
  const replies = await Promise.all(volumes.map(({ files }) => files("GET /path?path=/")));
  expect(replies.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([200, 200, 200, 200, 429]);
  const lost = volumes.find(({ machine }) => machine() !== null);
  port.platform.machines.destroy("shop", lost?.machine() ?? "", { force: true });
  expect((await lost?.files("GET /path?path=/"))?.status).toBe(503);
  expect((await lost?.files("GET /path?path=/"))?.status).toBe(200);
});

test("it goes when nobody has used it for a while, and not before; without a template, it does not come", async () => {
  const needs = { resources: port.platform, log: { info() {}, warn() {} } } as unknown as SandboxNeeds;
  const template = port.platform.templates.get("shop", "base").template.id;
  const openers = new Openers({ needs, templateOf: () => template, idleMs: 1 });
  onTestFinished(() => openers.close());
  const volume = await port.platform.volumes.create("shop", { name: "idle" });
  const { signal } = new AbortController();
  const open = await openers.open(volume, signal);
  const machine = port.platform.volumes.get("shop", volume.id).machineId ?? "";
  expect(port.platform.machines.get("shop", machine).record.state).toBe("running");
  open[Symbol.dispose]();
  await expect.poll(() => port.platform.volumes.get("shop", volume.id).machineId).toBeNull();
  const wanted = await openers.keepOff([volume.id]);
  await expect(openers.open(volume, signal)).rejects.toMatchObject({ status: 409 });
  wanted[Symbol.dispose]();
  const templateOf = () => {
    throw new Refusal(404, "There is no template.");
  };
  const missing = new Openers({ needs, templateOf, idleMs: 1 });
  const message = expect.stringContaining("no template") as string;
  await expect(
    missing.open(await port.platform.volumes.create("shop", { name: "other" }), signal),
  ).rejects.toMatchObject({ status: 409, message });
});
