/** Volumes in the hands of clients that race, and of those that ask for what cannot be. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { SMALL } from "../../platform/test/helpers/fake-world.ts";
import { openPort, type Port } from "./port.ts";
import { newTenant, type Tenant } from "./tenant.ts";

let port: Port;
let of: Tenant;

beforeAll(async () => {
  port = await openPort();
  of = await newTenant(port, "shop");
});
afterAll(() => port.close());

async function ask(route: string, body?: object | string, more: Record<string, string> = {}) {
  const headers = { "x-api-key": of.key, "content-type": "application/json", ...more };
  const sent = typeof body === "string" ? body : JSON.stringify(body);
  const reply = await port.ask(route, { headers, ...(body !== undefined && { body: sent }) });
  return { status: reply.status, said: reply.body };
}

const files = (route: string, body?: object | string, type = "application/octet-stream") =>
  ask(route.replace("/", `/volumecontent/${of.volume}/`), body, {
    ...{ authorization: `Bearer ${of.volumeToken}`, "content-type": type },
  });

test("of two that make a volume of one name at once one gets it", async () => {
  const made = await Promise.all([ask("POST /volumes", { name: "one" }), ask("POST /volumes", { name: "one" })]);
  expect(made.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([201, 409]);
  expect(port.platform.volumes.list("shop").filter(({ name }) => name === "one")).toHaveLength(1);
});

test.each(["a/b", "..", "My-Data", "", "x".repeat(64), "-", "vol_0123456789abcdef", "a\0"])(
  "%j cannot be the name of a volume",
  async (name) => expect(await ask("POST /volumes", { name })).toMatchObject({ status: 400 }),
);

test.each<[string, number, (free: string) => object[]]>([
  ["nine volumes", 400, () => Array.from({ length: 9 }, (_, index) => ({ name: "x", path: `/${index}` }))],
  [
    "one volume twice",
    409,
    (name) => [
      { name, path: "/a" },
      { name, path: "/b" },
    ],
  ],
  ["a relative path", 400, (name) => [{ name, path: "data" }]],
  ["the root", 400, (name) => [{ name, path: "/" }]],
  ["a path of the kernel's", 400, (name) => [{ name, path: "/proc/1" }]],
  ["a path that climbs", 400, (name) => [{ name, path: "/data/../../proc" }]],
  ["a volume that is not there", 404, () => [{ name: "nobody", path: "/data" }]],
  ["no path", 400, (name) => [{ name }]],
])("%s cannot be mounted, and no machine is left of it", async (_title, status, mounts) => {
  const before = port.platform.machines.list("shop").length;
  const reply = await ask("POST /sandboxes", { templateID: of.template, volumeMounts: mounts(of.freeVolume) });
  expect(reply, reply.said).toMatchObject({ status });
  expect(port.platform.machines.list("shop")).toHaveLength(before);
  expect(port.platform.volumes.get("shop", of.freeVolume).machineId).toBeNull();
});

test.each<[string, number, string, (object | string)?, string?]>([
  ["contents as JSON", 400, "PUT /file?path=/a", {}, "application/json"],
  ["a zero byte", 400, "GET /path?path=a%00b"],
  ["a long path", 400, `GET /path?path=${"a/".repeat(2100)}`],
  ["no path", 400, "GET /file"],
  ["two paths", 400, "GET /file?path=/a&path=/b"],
  ["a user below 0", 400, "PUT /file?path=/a&uid=-1", "x"],
  ["the user who means nobody", 400, "POST /dir?path=/a&uid=4294967295"],
  ["a mode of five digits", 400, "POST /dir?path=/a&mode=4096"],
  ["a giant of JSON", 413, "PATCH /path?path=/a", `"${"x".repeat(2_000_000)}"`, "application/json"],
  ["a depth of 0", 400, "GET /dir?path=/&depth=0"],
])("a request for files with %s is refused", async (_title, status, route, body, type) => {
  const reply = await files(route, body, type);
  expect(reply, reply.said).toMatchObject({ status });
});

test("a volume of a machine that is not a sandbox is left alone, and so is one in use", async () => {
  const { id } = await port.platform.volumes.create("shop", { name: "of-the-shop" });
  const { record } = await port.platform.machines.create("shop", {
    config: { ...SMALL, mounts: [{ volume: id, path: "/data" }] },
  });
  const { token } = JSON.parse((await ask(`GET /volumes/${id}`)).said) as { token: string };
  const content = `/volumecontent/${id}/file?path=/a`;
  expect(await ask(`GET ${content}`, undefined, { authorization: `Bearer ${token}` })).toMatchObject({
    status: 409,
    said: expect.stringContaining(record.id) as string,
  });
  for (const volume of [id, of.volume]) expect(await ask(`DELETE /volumes/${volume}`)).toMatchObject({ status: 409 });
});

test("what an administrator has kept of a volume does not go with a client's key", async () => {
  const { said } = await ask("POST /volumes", { name: "kept" });
  const { volumeID: id } = JSON.parse(said) as { volumeID: string };
  expect(port.platform.volumes.get("shop", id).schedule).toBeFalsy();
  const snapshot = await port.platform.volumes.snapshot("shop", id);
  expect(await ask(`DELETE /volumes/${id}`)).toMatchObject({
    status: 409,
    said: expect.stringContaining(`hibernaut volumes destroy ${id} --app shop`) as string,
  });
  await port.platform.volumes.destroySnapshot("shop", id, snapshot.id);
  expect(await ask(`DELETE /volumes/${id}`)).toMatchObject({ status: 204 });
});
