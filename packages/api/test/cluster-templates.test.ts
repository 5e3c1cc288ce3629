/** Templates through any host of a cluster: machines begin where the template is, or where it is brought. */
import { HibernautError } from "@hibernaut/domain/errors";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { createToken } from "../src/tokens.ts";
import { type ApiHost, type ApiHosts, startApiHosts } from "./cluster-hosts.ts";
import { as } from "./helpers.ts";

const ROOM = { memoryMb: { total: 8192, free: 4096 } };
const FULL = { memoryMb: { total: 8192, free: 0 } };
const MACHINES = "/v1/apps/shop/machines";
const TEMPLATES = "/v1/apps/shop/templates";

let cluster: ApiHosts;
let a: ApiHost;
let b: ApiHost;
let c: ApiHost;
let count = 0;

beforeAll(async () => {
  cluster = await startApiHosts();
  [a, b, c] = cluster.hosts;
  for (const name of ["shop", "other"]) await ask(a, "POST", "/v1/apps", { app_name: name });
});
beforeEach(async () => {
  for (const { host } of cluster.hosts) await cluster.setUp(host.name, ROOM);
});
afterAll(() => cluster.close());

const ask: ApiHosts["ask"] = (...args) => cluster.ask(...args);

/** A template of a new machine on host b, known to all hosts. */
async function keep(): Promise<{ id: string; name: string }> {
  const name = `ready-${++count}`;
  const machine = await cluster.make(b, "shop", `web-${count}`);
  const { status, body } = await ask(a, "POST", TEMPLATES, { from: machine, name });
  expect(status, JSON.stringify(body)).toBe(201);
  await untilHosts(body.id, "b");
  return { id: body.id, name };
}

/** Waits until all hosts know that exactly these have the template. */
async function untilHosts(id: string, ...hosts: string[]): Promise<void> {
  const key = `/hib/templates/shop/${id}`;
  for (const { host } of cluster.hosts)
    await vi.waitFor(() => expect(host.cluster.view.value(key)).toMatchObject({ hosts }));
}

/** Makes a machine from a template through a host. Resolves with the host that has made it. */
async function bear(through: ApiHost, body: { template: string; host?: string }) {
  const reply = await ask(through, "POST", MACHINES, { ...body, skip_launch: true });
  const host = reply.headers.get("hibernaut-host") ?? through.host.name;
  return { status: reply.status, body: reply.body, host };
}

describe("a machine from a template", () => {
  test("begins on the host that has it, through any host, as long as that has room", async () => {
    const { id, name } = await keep();
    for (const through of [a, b, c])
      for (const template of [id, name, id.slice(0, 8)])
        expect(await bear(through, { template })).toMatchObject({
          status: 201,
          host: "b",
          body: { origin: { template: id } },
        });
    await untilHosts(id, "b");
  });

  test("begins on another host when that one is full, which gets the template first", async () => {
    const { id, name } = await keep();
    await cluster.setUp("b", FULL);
    await cluster.setUp("c", FULL);
    expect(await bear(c, { template: name })).toMatchObject({ status: 201, host: "a" });
    await untilHosts(id, "b", "a");
    expect(a.world.store.templates.get(id)).toMatchObject({ name, copied: true });
    await cluster.setUp("a", FULL);
    await cluster.setUp("c", ROOM);
    expect(await bear(a, { template: id.slice(0, 8) })).toMatchObject({ status: 201, host: "c" });
  });

  test("begins on the host that was asked for, also when that is the one that the client talks to", async () => {
    const { id, name } = await keep();
    expect(await bear(c, { template: name, host: "c" })).toMatchObject({ status: 201, host: "c" });
    expect(await bear(c, { template: name, host: "a" })).toMatchObject({ status: 201, host: "a" });
    await untilHosts(id, "b", "c", "a");
    expect((await bear(a, { template: name, host: "z" })).body).toMatchObject({ error: "not_found" });
  });

  test("begins on a third host when the template does not get to the second one, and nothing is left there", async () => {
    const { id, name } = await keep();
    await cluster.setUp("b", FULL);
    const full = vi.spyOn(a.platform.templateTravel, "requireRoom");
    onTestFinished(() => full.mockRestore());
    full.mockRejectedValue(new HibernautError("unavailable", "The disk has no room."));
    for (const through of [a, b, c])
      expect(await bear(through, { template: name })).toMatchObject({ status: 201, host: "c" });
    expect(a.world.store.templates.get(id)).toBeUndefined();
    expect(await bear(c, { template: name, host: "a" })).toMatchObject({
      status: 503,
      body: { error: "unavailable", message: "The disk has no room.", details: { template_missing_on: "a" } },
    });
  });

  test("begins on a third host when the second one has no room for it by now, which gets no copy either", async () => {
    const { id, name } = await keep();
    await cluster.setUp("b", FULL);
    // It is the one with fewer machines of the app that is asked first.
    await cluster.make(c, "shop", `there-${count}`);
    const full = vi.spyOn(a.platform.templates, "requireStart").mockThrow(new HibernautError("host_full", "No room."));
    onTestFinished(() => full.mockRestore());
    const start = { template: name };
    for (const through of [a, b]) {
      const { status, headers } = await ask(through, "POST", MACHINES, start);
      expect([status, headers.get("hibernaut-host")]).toEqual([201, "c"]);
    }
    expect(full).toHaveBeenCalledWith("shop", expect.objectContaining({ memory_mb: 128 }));
    expect((await ask(a, "POST", MACHINES, { ...start, host: "a" })).body).toMatchObject({ error: "host_full" });
    expect(a.world.store.templates.get(id)).toBeUndefined();
    // What is not started needs no memory yet.
    expect(await bear(a, { template: name, host: "a" })).toMatchObject({ status: 201, host: "a" });
  });

  test("is refused by a host of another CPU, with the difference, and begins elsewhere unless it is asked for", async () => {
    const { id, name } = await keep();
    await cluster.setUp("b", FULL);
    const unfit = vi.spyOn(a.platform.templateTravel, "unfit").mockResolvedValue("cpu_model_changed: it is older");
    onTestFinished(() => unfit.mockRestore());
    for (const through of [a, b]) expect(await bear(through, { template: name })).toMatchObject({ host: "c" });
    const { status, body } = await bear(b, { template: name, host: "a" });
    expect([status, body.error]).toEqual([412, "failed_precondition"]);
    expect(body.message).toContain(
      `Template ${name} (${id}) cannot be used on host a: cpu_model_changed: it is older.`,
    );
  });

  test("waits for a host that has it when all of them are away", async () => {
    const { name } = await keep();
    await cluster.setUp("b", false);
    const { status, body } = await bear(a, { template: name });
    expect([status, body.error]).toEqual([503, "host_unreachable"]);
    expect(body.message).toContain("is on b, which is away");
    expect((await ask(a, "GET", `${TEMPLATES}/${name}`)).body).toMatchObject({ error: "host_unreachable" });
  });

  test("is restored from one that is on another host", async () => {
    const { id, name } = await keep();
    const machine = await cluster.make(c, "shop", `restored-${count}`);
    const { status, body } = await ask(a, "POST", `${MACHINES}/${machine}/restore`, { template: name });
    expect(status, JSON.stringify(body)).toBe(200);
    expect(body).toMatchObject({ id: machine, origin: { template: id } });
    await untilHosts(id, "b", "c");
  });
});

describe("a template", () => {
  test("is told once, with its hosts and the machines from it on all of them", async () => {
    const { id, name } = await keep();
    const made = [await bear(a, { template: id }), await bear(a, { template: id, host: "c" })];
    await untilHosts(id, "b", "c");
    const expected = { id, name, hosts: ["b", "c"], machines: made.map(({ body }) => String(body.id)).toSorted() };
    for (const through of [a, b, c]) {
      const { body: list } = await ask(through, "GET", TEMPLATES);
      expect(list.filter((each: { id: string }) => each.id === id)).toMatchObject([expected]);
      for (const word of [name, id, id.slice(0, 8)])
        expect((await ask(through, "GET", `${TEMPLATES}/${word}`)).body).toMatchObject(expected);
    }
    expect((await ask(a, "GET", `${TEMPLATES}/none`)).status).toBe(404);
  });

  test("has a name that no other one of the app has on any host", async () => {
    const { id, name } = await keep();
    const machine = await cluster.make(c, "shop", `same-${count}`);
    const { status, body } = await ask(c, "POST", TEMPLATES, { from: machine, name });
    expect([status, body.error, body.details]).toEqual([409, "already_exists", { template: id }]);
  });

  test("is deleted on all hosts, through one that does not have it, and its name is free", async () => {
    const { id, name } = await keep();
    await bear(a, { template: id, host: "c" });
    await untilHosts(id, "b", "c");
    const { status, headers } = await ask(a, "DELETE", `${TEMPLATES}/${name}`);
    expect([status, headers.get("hibernaut-hosts-missing")]).toEqual([200, null]);
    for (const each of cluster.hosts) {
      expect(each.world.store.templates.get(id)).toBeUndefined();
      expect((await ask(each, "DELETE", `${TEMPLATES}/${name}`)).status).toBe(404);
      expect((await bear(each, { template: id })).status).toBe(404);
    }
    const again = await ask(a, "POST", TEMPLATES, { from: `web-${count}`, name });
    expect(again.status).toBe(201);
  });

  test("of another app is nobody's who has a token for his own, whatever he knows of it", async () => {
    const { id, name } = await keep();
    const { token } = await a.host.shared.write(({ tokens }) => createToken(tokens, "theirs", { apps: ["other"] }));
    await b.host.shared.catchUp();
    const mine = as(token).headers;
    for (const through of [a, b])
      for (const template of [id, name]) {
        const theirs = await ask(through, "POST", "/v1/apps/other/machines", { template, host: "c" }, mine);
        expect([theirs.status, theirs.body.error]).toEqual([404, "not_found"]);
        expect((await ask(through, "POST", MACHINES, { template }, mine)).status).toBe(404);
        expect((await ask(through, "GET", `/v1/apps/other/templates/${template}`, undefined, mine)).status).toBe(404);
        expect((await ask(through, "POST", `/templates/${id}/papers`, {}, mine)).status).toBe(404);
      }
    expect(c.world.store.templates.get(id)).toBeUndefined();
  });
});
