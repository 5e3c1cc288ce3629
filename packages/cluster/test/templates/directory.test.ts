/** What the hosts of a cluster agree on about templates: names, which hosts have one, and that it is deleted. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { never } from "@hibernaut/lib/async";
import { describe, expect, test, vi } from "vitest";
import type { ClusterWorld, TestHost } from "../../../platform/test/helpers/cluster-world.ts";
import type { Directory } from "../../src/contract.ts";
import { KEYS } from "../../src/keys.ts";
import { put } from "../../src/stored.ts";
import { joinTemplate, leaveTemplate } from "../../src/templates/records.ts";
import { backupOf, fakeHosts, killBefore, TRIES } from "../fake-hosts.ts";
import { born, bring, keep, shared, templates } from "./hosts.ts";

const nameOf = ({ cluster }: Parameters<typeof shared>[0], name: string) =>
  cluster.view.value(`${KEYS.templateNames}shop/${name}`);

describe("a name", () => {
  test("is one template's in the cluster, also when two hosts give it in the same moment", async () => {
    const { a, b } = await fakeHosts("a", "b");
    const made = await Promise.allSettled([keep(a), keep(b)]);
    expect(made.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
    const [failed] = made.filter((each) => each.status === "rejected");
    expect(failed?.reason).toMatchObject({ code: "already_exists" });
    const [[id = ""], none] = [templates(a), templates(b)].toSorted((one, other) => other.length - one.length) as [
      string[],
      string[],
    ];
    expect(none).toEqual([]);
    await vi.waitFor(() => expect([nameOf(a, "ready"), nameOf(b, "ready")]).toEqual([id, id]));
  });

  test("that two hosts gave before it was shared means the first one, and the other is found by its ID", async () => {
    const { a, b } = await fakeHosts("a", "b");
    await a.restart({ wrap: ({ templateClaims: _none, ...deps }) => deps });
    await b.restart({ wrap: ({ templateClaims: _none, ...deps }) => deps });
    const [first, second] = [await keep(a), await keep(b)];
    await a.restart();
    await vi.waitFor(() => expect(shared(b, first.id)?.hosts).toEqual(["a"]), TRIES);
    await b.restart();
    await vi.waitFor(() => expect(shared(a, second.id)?.hosts).toEqual(["b"]), TRIES);
    expect(nameOf(a, "ready")).toBe(first.id);
    expect(a.machines.templates.find("shop", "ready")?.id).toBe(first.id);
    expect(a.machines.templates.find("shop", second.id)?.id).toBe(second.id);
    const room = vi.spyOn(a.platform.templateTravel, "requireRoom");
    await expect(bring(a, second.id)).rejects.toMatchObject({
      code: "failed_precondition",
      message: expect.stringContaining("another template named ready"),
    });
    expect(room, "before anything is copied").not.toHaveBeenCalled();
    expect(templates(a)).toEqual([first.id]);
    await vi.waitFor(() => expect(shared(a, second.id)?.hosts).toEqual(["b"]));
  });
});

describe("a deletion", () => {
  test("is kept by a host that was away, which deletes its copy when it is back; machines stay", async () => {
    const { a, b, c } = await fakeHosts("a", "b", "c");
    const { id, nonce } = await keep(a);
    await vi.waitFor(() => expect(shared(b, id)).toBeDefined());
    await bring(b);
    expect(await born(b, id)).toBe(nonce);
    const machines = b.platform.machines.list("shop").length;
    await vi.waitFor(() => expect(shared(c, id)?.hosts).toEqual(["a", "b"]));
    await b.stop();
    await c.cluster.directory.transact([], [{ key: `${KEYS.hosts}b`, value: null }]);
    await vi.waitFor(() => expect(c.cluster.view.host("b")?.up).toBeUndefined());
    await expect(c.machines.templates.delete({ app: "shop", id })).resolves.toEqual(["b"]);
    expect(templates(a)).toEqual([]);
    await vi.waitFor(() => expect(shared(a, id)).toMatchObject({ hosts: ["b"], ended: true }));
    expect(a.machines.templates.find("shop", id)).toBeUndefined();
    const { id: next } = await keep(a);
    await b.restart();
    await vi.waitFor(() => expect(templates(b)).toEqual([]), TRIES);
    await vi.waitFor(() => expect(shared(b, id)).toBeUndefined());
    expect(b.platform.machines.list("shop")).toHaveLength(machines);
    expect(nameOf(b, "ready")).toBe(next);
  });

  const dying = async (step: string) => {
    const { a, b } = await fakeHosts("a", "b");
    const { id } = await keep(a);
    await vi.waitFor(() => expect(shared(b, id)).toBeDefined());
    await bring(b);
    await killBefore(a, step, () => a.platform.templates.delete("shop", id));
    await a.restart();
    if (step === "directory.transact") {
      expect([templates(a), templates(b)]).toEqual([[id], [id]]);
      await a.platform.templates.delete("shop", id);
    }
    await vi.waitFor(() => expect([templates(a), templates(b)]).toEqual([[], []]), TRIES);
    await vi.waitFor(() => expect([shared(a, id), nameOf(a, "ready")]).toEqual([undefined, undefined]), TRIES);
  };
  test.each(["templates.remove"])("by a host that dies before %s happens as a whole, or not at all", dying);
  test.each(["directory.transact", "seeds.remove"])(
    "by a host that dies before %s happens as a whole, or not at all",
    { tags: "again" },
    dying,
  );

  test("needs the directory: without it the template stays", async () => {
    const { a } = await fakeHosts("a");
    const { id } = await keep(a);
    a.cut(true);
    await expect(a.platform.templates.delete("shop", id)).rejects.toMatchObject({ code: "unavailable" });
    expect(templates(a)).toEqual([id]);
    a.cut(false);
    await a.platform.templates.delete("shop", id);
    expect(templates(a)).toEqual([]);
  });
});

test("a template is not made when its host dies, or the directory does not answer, before it is told", async () => {
  const { world, a } = await fakeHosts("a");
  await killBefore(a, "templates.insert", () => keep(a));
  await a.restart();
  expect(templates(a)).toEqual([]);
  await vi.waitFor(async () => {
    const keys = (await backupOf(world)).map(({ key }) => key);
    expect(keys.filter((key) => key.startsWith(KEYS.templates) || key.startsWith(KEYS.templateNames))).toEqual([]);
  }, TRIES);
  const machine = a.platform.machines.list("shop")[0]?.record.id ?? "";
  a.cut(true);
  const making = a.platform.templates.createOf("shop", { machine, name: "ready" }, never());
  await expect(making).rejects.toMatchObject({ code: "unavailable" });
  expect(templates(a)).toEqual([]);
});

test("what takes a host back from a template yields to a copy that has begun there since", async () => {
  const { world, a } = await fakeHosts("a");
  const { id } = await keep(a);
  const which = { app: "shop", id };
  const { directory } = world;
  await directory.transact([], [put(`${KEYS.members}b`, {})]);
  const createdAt = a.world.store.apps.get("shop")?.createdAt ?? "";
  await joinTemplate(which, "b", { directory, createdAt });
  let begun = false;
  const racing = {
    ...{ get: directory.get.bind(directory), list: directory.list.bind(directory) },
    transact: async (...all: Parameters<Directory["transact"]>) => {
      if (!begun) await joinTemplate(which, "b", { directory, createdAt });
      begun = true;
      return directory.transact(...all);
    },
  } as Directory;
  await leaveTemplate(which, ["b"], { directory: racing, isSo: () => !begun });
  const entry = await directory.get(`${KEYS.templates}shop/${id}`);
  expect(JSON.parse(entry?.value ?? "{}")).toMatchObject({ hosts: ["a", "b"] });
});

test("a directory that has lost a template is told of it again by each host that has it", async () => {
  const { world, a, b } = await fakeHosts("a", "b");
  const before = await backupOf(world);
  const { id } = await keep(a);
  await vi.waitFor(() => expect(shared(b, id)).toBeDefined());
  await bring(b);
  const lost = [`${KEYS.templates}shop/${id}`, `${KEYS.templateNames}shop/ready`];
  expect(before.map(({ key }) => key)).not.toContain(lost[0]);
  await world.directory.transact(
    [],
    lost.map((key) => ({ key, value: null })),
  );
  await Promise.all([a.restart(), b.restart()]);
  await vi.waitFor(() => expect(shared(a, id)?.hosts.toSorted()).toEqual(["a", "b"]), TRIES);
  expect(nameOf(a, "ready")).toBe(id);
});

test("one template that cannot be told of keeps none of the others of its host from the directory", async () => {
  const { a, b } = await fakeHosts("a", "b");
  await a.restart({ wrap: ({ templateClaims: _none, ...deps }) => deps });
  const [broken, whole] = [await keep(a, { name: "broken" }), await keep(a, { name: "whole" })];
  await rm(join(a.world.folder, "templates", broken.id, "snapshots"), { recursive: true });
  await a.restart();
  await vi.waitFor(() => expect(shared(b, whole.id)?.hosts).toEqual(["a"]), TRIES);
  expect(shared(b, broken.id)).toBeUndefined();
  const about = a.world.logged.filter(({ fields }) => fields.template === broken.id);
  expect(about).toMatchObject([{ message: "the cluster cannot be told of a template of this host" }]);
});

describe("a template of a deleted app is not the next one's of the same name", () => {
  const next = { name: "shop", createdAt: "2099-01-01T00:00:00.000Z" };
  const createNext = ({ directory }: ClusterWorld, id: string) =>
    directory.transact(
      [],
      [
        put(`${KEYS.apps}shop`, next),
        ...[`${KEYS.templates}shop/${id}`, `${KEYS.templateNames}shop/ready`].map((key) => ({ key, value: null })),
      ],
    );

  /** A template of a, which b is about to take in when its app is another one; `hear` is what b has heard of that by then. */
  async function replacedOnTheWay(hear: (host: TestHost) => void) {
    const { world, a, b } = await fakeHosts("a", "b");
    const { id } = await keep(a);
    await vi.waitFor(() => expect(shared(b, id)).toBeDefined());
    const { templateTravel } = b.platform;
    const takeIn = templateTravel.takeIn.bind(templateTravel);
    vi.spyOn(templateTravel, "takeIn").mockImplementation(async (...all) => {
      await createNext(world, id);
      hear(b);
      await takeIn(...all);
    });
    return { world, b, id };
  }

  test("when it arrives while that happens", async () => {
    const { b } = await replacedOnTheWay((host) => {
      host.world.store.apps.delete("shop");
      host.world.store.apps.insert(next);
    });
    await expect(bring(b)).rejects.toMatchObject({ code: "aborted", message: expect.stringContaining("was deleted") });
    expect(templates(b)).toEqual([]);
  });

  test("when the host that gets it hears of that only afterwards", async () => {
    const { world, b, id } = await replacedOnTheWay(() => {});
    await bring(b);
    await vi.waitFor(() => expect(templates(b)).toEqual([]), TRIES);
    expect(await world.directory.get(`${KEYS.templates}shop/${id}`)).toBeUndefined();
  });

  test("when its host comes back later, or joins those that have it", async () => {
    const { world, a } = await fakeHosts("a");
    const { id } = await keep(a);
    const { createdAt } = a.world.store.apps.get("shop") ?? { createdAt: "" };
    await a.stop();
    await world.directory.transact([], [put(`${KEYS.apps}shop`, next)]);
    const joining = joinTemplate({ app: "shop", id }, "b", { directory: world.directory, createdAt });
    await expect(joining).rejects.toMatchObject({ code: "not_found" });
    await createNext(world, id);
    await a.restart();
    await vi.waitFor(() => expect(templates(a)).toEqual([]), TRIES);
    expect(await world.directory.get(`${KEYS.templates}shop/${id}`)).toBeUndefined();
  });
});

test("a host with many templates that leaves is taken from each of them once", async () => {
  const { world, a } = await fakeHosts("a");
  const { id } = await keep(a);
  await vi.waitFor(() => expect(shared(a, id)).toBeDefined());
  const ids = Array.from({ length: 20 }, (_, index) => index.toString(16).padStart(14, "0"));
  const theirs = ids.map((each) =>
    put(`${KEYS.templates}shop/${each}`, { ...shared(a, id), id: each, name: each, hosts: ["b"] }),
  );
  await world.directory.transact([], [put(`${KEYS.members}b`, {}), ...theirs]);
  await vi.waitFor(() => expect(shared(a, ids[19] ?? "")).toBeDefined());
  const { get } = a.cluster.directory;
  const answered = Promise.withResolvers<void>();
  const asked = vi.spyOn(a.cluster.directory, "get").mockImplementation(async (...all) => {
    await answered.promise;
    return get(...all);
  });
  await world.directory.transact([], [{ key: `${KEYS.members}b`, value: null }]);
  await vi.waitFor(() => expect(asked.mock.calls.length).toBeGreaterThanOrEqual(ids.length));
  // Each change of templates leads to another look at them.
  const other = { ...shared(a, id), id: "ffffffffffffff", name: "other", hosts: [] };
  await world.directory.transact([], [put(`${KEYS.templates}shop/${other.id}`, other)]);
  await vi.waitFor(() => expect(shared(a, other.id)).toBeDefined());
  expect(asked).toHaveBeenCalledTimes(ids.length);
  answered.resolve();
  await vi.waitFor(() => expect(ids.filter((each) => shared(a, each) !== undefined)).toEqual([]), TRIES);
});

test("a host that has joined again is not taken from its templates", async () => {
  const { world, a } = await fakeHosts("a");
  const { id } = await keep(a);
  await vi.waitFor(() => expect(shared(a, id)).toBeDefined());
  const member = `${KEYS.members}b`;
  await world.directory.transact(
    [],
    [put(member, {}), put(`${KEYS.templates}shop/${id}`, { ...shared(a, id), hosts: ["a", "b"] })],
  );
  await vi.waitFor(() => expect(shared(a, id)?.hosts).toEqual(["a", "b"]));
  const { get } = a.cluster.directory;
  const read = Promise.withResolvers<void>();
  const asked = vi.spyOn(a.cluster.directory, "get").mockImplementation(async (...all) => {
    await read.promise;
    return get(...all);
  });
  await world.directory.transact([], [{ key: member, value: null }]);
  await vi.waitFor(() => expect(asked).toHaveBeenCalled());
  await world.directory.transact([], [put(member, {})]);
  await vi.waitFor(() => expect(a.cluster.view.host("b")).toBeDefined());
  const transact = vi.spyOn(a.cluster.directory, "transact");
  read.resolve();
  await Promise.all(asked.mock.results.map(({ value }) => value as Promise<unknown>));
  await new Promise(setImmediate);
  expect(transact).not.toHaveBeenCalled();
  expect(shared(a, id)?.hosts).toEqual(["a", "b"]);
});

test("a record that leads to another path, or is not a template, is ignored, and told once", async () => {
  const { world, a } = await fakeHosts("a");
  const { id } = await keep(a);
  await vi.waitFor(() => expect(shared(a, id)).toBeDefined());
  const forged = { ...shared(a, id), id: "../../machines", name: "forged", hosts: ["b"] };
  const wrong = { "../../machines": forged, aaaaaaaaaaaaaa: { ...forged, hosts: "b" }, bbbbbbbbbbbbbb: null };
  const changes = Object.entries(wrong).map(([key, value]) => put(`${KEYS.templates}shop/${key}`, value));
  await world.directory.transact([], changes);
  await vi.waitFor(() => expect(a.world.logged.filter(({ fields }) => "key" in fields)).toHaveLength(3));
  for (const word of ["forged", "../../machines", "aaaaaaaaaaaaaa"])
    expect(a.machines.templates.find("shop", word)).toBeUndefined();
  expect(a.machines.templates.find("shop", "ready")?.id).toBe(id);
  expect(a.world.logged.filter(({ fields }) => "key" in fields)).toHaveLength(3);
});

test("a host that left the cluster has no template any more, and what only it had is forgotten", async () => {
  const { world, a, b } = await fakeHosts("a", "b");
  const [mine, theirs] = [await keep(a, { name: "mine" }), await keep(b, { name: "theirs" })];
  await vi.waitFor(() => expect(shared(b, mine.id)).toBeDefined());
  await bring(b, "mine");
  await b.stop();
  await world.directory.transact(
    [],
    [KEYS.hosts, KEYS.members].map((kind) => ({ key: `${kind}b`, value: null })),
  );
  await vi.waitFor(() => expect([shared(a, mine.id)?.hosts, shared(a, theirs.id)]).toEqual([["a"], undefined]), TRIES);
  expect([nameOf(a, "mine"), nameOf(a, "theirs")]).toEqual([mine.id, undefined]);
  // As if someone had the right to write it: a host that nobody knows is asked for nothing.
  const record = { ...shared(a, mine.id), id: "0123456789abcd", name: "forged", hosts: ["b"] };
  await world.directory.transact([], [put(`${KEYS.templates}shop/0123456789abcd`, record)]);
  await vi.waitFor(() => expect(shared(a, "0123456789abcd")).toBeUndefined(), TRIES);
});
