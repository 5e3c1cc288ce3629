/** Snapshots with names that templates cannot have: clients find them by these, and two never have the same. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { openPort, type Port } from "./port.ts";
import { newTenant, type Tenant } from "./tenant.ts";

let port: Port;
let of: Tenant;

beforeAll(async () => {
  port = await openPort();
  of = await newTenant(port, "shop");
});
afterAll(() => port.close());

async function ask(route: string, body?: object) {
  const headers = { "x-api-key": of.key, "content-type": "application/json" };
  const reply = await port.ask(route, { headers, ...(body && { body: JSON.stringify(body) }) });
  return { status: reply.status, body: (reply.body === "" ? {} : JSON.parse(reply.body)) as never };
}

const snapshot = (name: string) => ask(`POST /sandboxes/${of.running}/snapshots`, { name });

test.each(["my_snapshot", "Desk_17:v1"])("%s is found by its name, and a sandbox is made of it", async (name) => {
  const whole = name.includes(":") ? name.toLowerCase() : `${name}:default`;
  const made = await snapshot(name);
  expect(made).toMatchObject({ status: 201, body: { names: [whole] } });
  const { snapshotID } = made.body as { snapshotID: string };
  expect((await ask(`GET /snapshots?name=${name}`)).body).toEqual([{ snapshotID, names: [whole] }]);
  expect((await ask(`GET /snapshots?name=${name}-other`)).body).toEqual([]);
  expect(await ask("POST /sandboxes", { templateID: name })).toMatchObject({ status: 201 });
  expect(await snapshot(name)).toMatchObject({ status: 409 });
  expect(await ask(`DELETE /templates/${snapshotID}`)).toMatchObject({ status: 204 });
  expect((await ask(`GET /snapshots?name=${name}`)).body).toEqual([]);
});

test("of two that want a name at once one gets it, and nothing is left of the other", async () => {
  const before = port.platform.templates.list(of.app).length;
  const made = await Promise.all([snapshot("both_want"), snapshot("both_want")]);
  expect(made.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([201, 409]);
  expect(port.platform.templates.list(of.app)).toHaveLength(before + 1);
  expect(await snapshot("a/b c")).toMatchObject({ status: 400 });
});
