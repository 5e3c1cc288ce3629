/** Templates go to the hosts that need them: whole, or not at all. */
import { readdirSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { HibernautError } from "@hibernaut/domain/errors";
import { beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { KEYS } from "../../src/keys.ts";
import { put } from "../../src/stored.ts";
import { ArrivingTemplate } from "../../src/templates/arriving.ts";
import { digestOf } from "../../src/templates/contents.ts";
import { fakeHosts, killBefore, TRIES } from "../fake-hosts.ts";
import { born, bring, keep, parts, piecesOf, shared, templates } from "./hosts.ts";

/** Called before each piece is written, with how many were before; what it throws is what the disk says. */
const disk = { beforeWrite: async (_before: number): Promise<void> => {}, pieces: 0 };

beforeAll(() => {
  const write = ArrivingTemplate.prototype.write;
  vi.spyOn(ArrivingTemplate.prototype, "write").mockImplementation(async function (this: ArrivingTemplate, ...piece) {
    await disk.beforeWrite(disk.pieces);
    await write.apply(this, piece);
    disk.pieces += 1;
  });
});
beforeEach(() => {
  disk.pieces = 0;
  disk.beforeWrite = async () => {};
});

describe("a template of another host", () => {
  test("comes here with its memory and its disk, and machines begin from it as they do there", async () => {
    const { a, b } = await fakeHosts("a", "b");
    const { id, nonce, machine } = await keep(a);
    await vi.waitFor(() => expect(shared(b, id)).toMatchObject({ name: "ready", hosts: ["a"] }));
    await bring(b);
    expect([templates(a), templates(b)]).toEqual([[id], [id]]);
    expect(await born(b, "ready")).toBe(nonce);
    const disks = [a, b].map(({ world }) => readFile(join(world.folder, "templates", id, "layer.ext4")));
    const [there, here] = await Promise.all(disks);
    expect(there?.equals(here ?? Buffer.alloc(0))).toBe(true);
    expect(b.platform.templates.get("shop", id).template).toMatchObject({ copied: true, machine: { id: machine } });
    expect(await parts(b)).toEqual([]);
    await vi.waitFor(() => expect(shared(a, id)?.hosts).toEqual(["a", "b"]));
  });

  test("is copied once for all requests that wait for it, from any host that has it", { tags: "again" }, async () => {
    const { a, b, c } = await fakeHosts("a", "b", "c");
    const { id, nonce } = await keep(a);
    await vi.waitFor(() => expect(shared(b, id)).toBeDefined());
    await Promise.all([bring(b), bring(b, id), bring(b, id.slice(0, 6))]);
    await bring(b);
    expect(disk.pieces).toBe(await piecesOf(a, id));
    await a.stop();
    await vi.waitFor(() => expect(shared(c, id)?.hosts).toEqual(["a", "b"]));
    await bring(c);
    expect(await born(c, id)).toBe(nonce);
  });

  test("does not come to a host whose CPU does not fit, which says so", async () => {
    const { a, b } = await fakeHosts("a", "b");
    b.world.identity.cpu_model = "older";
    await b.restart();
    const { id } = await keep(a);
    await vi.waitFor(() => expect(shared(b, id)).toBeDefined());
    const template = b.machines.templates.find("shop", id);
    expect(template && a.machines.templates.refusalOn(template, { hypervisor: {} })).toBeUndefined();
    await expect(bring(b)).rejects.toMatchObject({
      code: "failed_precondition",
      message: expect.stringMatching(
        /^Template ready \(\w+\) cannot be used on host b: cpu_model_changed: CPU model was none, is older/,
      ),
      details: { template_missing_on: "b" },
    });
    expect([templates(b), await parts(b), disk.pieces]).toEqual([[], [], 0]);
  });
});

test("a few templates come at a time, and the others wait for them", async () => {
  const { a, b } = await fakeHosts("a", "b");
  const names = ["one", "two", "three", "four", "five", "six"];
  for (const name of names) await keep(a, { name, diskMb: 1 });
  await vi.waitFor(() => expect(names.every((name) => b.machines.templates.find("shop", name))).toBe(true));
  let [now, most] = [0, 0];
  const { templateTravel: travel } = b.platform;
  const [room, takeIn] = [travel.requireRoom.bind(travel), travel.takeIn.bind(travel)];
  const all = Promise.withResolvers<void>();
  vi.spyOn(travel, "requireRoom").mockImplementation(async (...given) => {
    most = Math.max(most, ++now);
    if (now === 4) all.resolve();
    await all.promise;
    await room(...given);
  });
  vi.spyOn(travel, "takeIn").mockImplementation(async (...given) => {
    await takeIn(...given);
    now -= 1;
  });
  await Promise.all(names.map((name) => bring(b, name)));
  expect(most).toBe(4);
  expect(templates(b)).toHaveLength(names.length);
});

test("an app that others have filled by the end of a copy does not get the template", async () => {
  const { a, b } = await fakeHosts("a", "b");
  const { id } = await keep(a);
  const full = new HibernautError("resource_exhausted", "App shop may have 1 MB.");
  const require = vi.fn<(app: string, bytes: number) => void>().mockReturnValueOnce(undefined).mockThrow(full);
  await b.restart({ wrap: (deps) => ({ ...deps, diskQuota: { require, requireForStart() {} } }) });
  await vi.waitFor(() => expect(shared(b, id)).toBeDefined());
  await expect(bring(b)).rejects.toMatchObject({ code: "resource_exhausted" });
  expect([templates(b), await parts(b)]).toEqual([[], []]);
  await vi.waitFor(() => expect(shared(b, id)?.hosts).toEqual(["a"]));
});

describe("a copy that is cut short", () => {
  test("by the other host continues where it ended when that is back, and is not a template until then", async () => {
    const { a, b } = await fakeHosts("a", "b");
    // More than connections hold on the way.
    const { id, nonce } = await keep(a, { diskMb: 24 });
    await vi.waitFor(() => expect(shared(b, id)).toBeDefined());
    disk.beforeWrite = async (before) => {
      if (before === 3) await a.stop();
    };
    await expect(bring(b)).rejects.toMatchObject({ code: "host_unreachable", details: { template_missing_on: "b" } });
    expect([templates(b), await parts(b)]).toEqual([[], [id]]);
    expect(shared(b, id)?.hosts).toEqual(["a"]);
    const total = await piecesOf(a, id);
    expect(disk.pieces).toBeLessThan(total);
    disk.beforeWrite = async () => {};
    await a.restart();
    await vi.waitFor(() => bring(b), TRIES);
    expect(disk.pieces).toBe(total);
    expect(await born(b, id)).toBe(nonce);
  });

  test("by a host that dies continues at once from another one that has it", { tags: "again" }, async () => {
    const { a, b, c } = await fakeHosts("a", "b", "c");
    const { id, nonce } = await keep(a, { diskMb: 24 });
    await vi.waitFor(() => expect(shared(b, id)).toBeDefined());
    await bring(b);
    await vi.waitFor(() => expect(shared(c, id)?.hosts).toEqual(["a", "b"]));
    disk.pieces = 0;
    disk.beforeWrite = async (before) => {
      if (before === 3) await a.stop();
    };
    await bring(c);
    expect(disk.pieces).toBe(await piecesOf(b, id));
    expect(await born(c, id)).toBe(nonce);
  });

  test("by the end of this platform continues with the next one", { tags: "again" }, async () => {
    const { a, b } = await fakeHosts("a", "b");
    const { id, nonce } = await keep(a);
    await vi.waitFor(() => expect(shared(b, id)).toBeDefined());
    const restarted = Promise.withResolvers<void>();
    disk.beforeWrite = async (before) => {
      if (before < 3) return;
      disk.beforeWrite = async () => {};
      b.restart().then(restarted.resolve, restarted.reject);
      throw new Error("it is dead");
    };
    await expect(bring(b)).rejects.toThrow();
    await restarted.promise;
    expect([templates(b), await parts(b)]).toEqual([[], [id]]);
    await bring(b);
    expect(disk.pieces).toBe(await piecesOf(a, id));
    expect(await born(b, id)).toBe(nonce);
  });

  test("by clients that wait no more stays for an hour, and then goes", async () => {
    const { a, b } = await fakeHosts("a", "b");
    const { id } = await keep(a);
    await vi.waitFor(() => expect(shared(b, id)).toBeDefined());
    const client = new AbortController();
    disk.beforeWrite = async (before) => {
      if (before === 2) client.abort(new Error("the client is gone"));
    };
    await expect(bring(b, id, client.signal)).rejects.toThrow("the client is gone");
    expect(templates(b)).toEqual([]);
    const { target } = b.machines.templates;
    const tidyIn = (ms: number) => target.tidy(() => true, Date.now() + ms);
    await tidyIn(3_500_000);
    expect(await parts(b)).toEqual([id]);
    await vi.waitFor(async () => {
      await tidyIn(3_700_000);
      expect(await parts(b)).toEqual([]);
    });
  });

  test("and continued while its parts are being deleted begins after that", async () => {
    const { a, b } = await fakeHosts("a", "b");
    const { id, nonce } = await keep(a);
    await vi.waitFor(() => expect(shared(b, id)).toBeDefined());
    const client = new AbortController();
    disk.beforeWrite = async (before) => {
      if (before === 2) client.abort(new Error("the client is gone"));
    };
    await expect(bring(b, id, client.signal)).rejects.toThrow("the client is gone");
    const { templateTravel: travel } = b.platform;
    const appOf = travel.app.bind(travel);
    /** What is there when the next copy begins. */
    const atBegin: string[][] = [];
    vi.spyOn(travel, "app").mockImplementation((name) => {
      atBegin.push(readdirSync(travel.arrivals));
      return appOf(name);
    });
    let brought: Promise<void> | undefined;
    // Not while the copy still touches its files.
    await vi.waitFor(async () => {
      await b.machines.templates.target.tidy(() => {
        brought ??= bring(b);
        return false;
      });
      expect(brought).toBeDefined();
    });
    await brought;
    expect(atBegin[0]).toEqual([]);
    expect(await born(b, id)).toBe(nonce);
  });

  test("by the directory that is away at its end is whole once that is back, and no other host is to try", async () => {
    const { a, b } = await fakeHosts("a", "b");
    const { id, nonce } = await keep(a);
    await vi.waitFor(() => expect(shared(b, id)).toBeDefined());
    const flush = vi.spyOn(ArrivingTemplate.prototype, "flush").mockImplementationOnce(async () => b.cut(true));
    onTestFinished(() => flush.mockRestore());
    const error = await bring(b).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "unavailable", message: expect.stringContaining("directory does not answer") });
    expect(error).not.toHaveProperty("details.template_missing_on");
    expect([templates(b), await parts(b)]).toEqual([[], [id]]);
    b.cut(false);
    await bring(b);
    expect(disk.pieces).toBe(await piecesOf(a, id));
    expect(await born(b, id)).toBe(nonce);
  });

  test("by a full disk leaves nothing, and says which host is full", async () => {
    const { a, b } = await fakeHosts("a", "b");
    const { id } = await keep(a);
    await vi.waitFor(() => expect(shared(b, id)).toBeDefined());
    disk.beforeWrite = async (before) => {
      if (before === 3) throw Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });
    };
    await expect(bring(b)).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("Host b cannot store template ready"),
    });
    expect([templates(b), await parts(b)]).toEqual([[], []]);
    expect(shared(b, id)?.hosts).toEqual(["a"]);
  });

  test("by the deletion of the template leaves nothing", async () => {
    const { a, b } = await fakeHosts("a", "b");
    const { id } = await keep(a);
    await vi.waitFor(() => expect(shared(b, id)).toBeDefined());
    disk.beforeWrite = async (before) => {
      if (before === 6) await a.machines.templates.delete({ app: "shop", id });
    };
    await expect(bring(b)).rejects.toMatchObject({ code: expect.stringMatching(/not_found|host_unreachable/) });
    expect([templates(a), templates(b)]).toEqual([[], []]);
    await vi.waitFor(() => expect(shared(b, id)).toBeUndefined());
  });

  test("by the deletion of the template in the moment in which it is stored here leaves nothing", async () => {
    const { a, b } = await fakeHosts("a", "b");
    const { id } = await keep(a);
    await vi.waitFor(() => expect(shared(b, id)).toBeDefined());
    const { templateTravel } = b.platform;
    const takeIn = templateTravel.takeIn.bind(templateTravel);
    vi.spyOn(templateTravel, "takeIn").mockImplementation(async (...all) => {
      await a.platform.templates.delete("shop", id);
      await vi.waitFor(() => expect(shared(b, id)).toMatchObject({ ended: true, hosts: ["b"] }));
      await takeIn(...all);
    });
    await bring(b);
    await vi.waitFor(() => expect([templates(b), shared(b, id)]).toEqual([[], undefined]));
  });

  const dying = async (step: string) => {
    const { a, b } = await fakeHosts("a", "b");
    const { id, nonce } = await keep(a);
    await vi.waitFor(() => expect(shared(b, id)).toBeDefined());
    await killBefore(b, step, () => bring(b));
    await b.restart();
    expect(templates(b)).toEqual([]);
    await vi.waitFor(() => expect(shared(a, id)?.hosts).toEqual(["a"]), TRIES);
    await bring(b);
    expect(await born(b, id)).toBe(nonce);
    await vi.waitFor(() => expect(shared(a, id)?.hosts).toEqual(["a", "b"]));
  };
  test.each(["templates.insert"])(
    "by the death of this host before %s is not a template, and is one after the next request",
    dying,
  );
  test.each(["seeds.publish", "directory.transact"])(
    "by the death of this host before %s is not a template, and is one after the next request",
    { tags: "again" },
    dying,
  );
});

describe("a host that has a template", () => {
  test("and sends another disk is not believed", async () => {
    const { a, b } = await fakeHosts("a", "b");
    const { id } = await keep(a);
    await vi.waitFor(() => expect(shared(b, id)).toBeDefined());
    const layer = join(a.world.folder, "templates", id, "layer.ext4");
    const bytes = await readFile(layer);
    bytes[3_000_000] = (bytes[3_000_000] ?? 0) ^ 1;
    await writeFile(layer, bytes);
    await expect(bring(b)).rejects.toThrow("host a: it sent something else than the template");
    expect(templates(b)).toEqual([]);
  });

  test("and tells of another configuration, or of other files, is not believed", async () => {
    const { a, b } = await fakeHosts("a", "b");
    const { id } = await keep(a);
    await vi.waitFor(() => expect(shared(b, id)).toBeDefined());
    const contents = join(a.world.folder, "templates", "contents", `${id}.json`);
    const files = JSON.parse(await readFile(contents, "utf8")) as { path: string }[];
    await writeFile(contents, JSON.stringify(files.filter(({ path }) => path !== "layer.ext4")));
    await expect(bring(b)).rejects.toThrow("host a: it has something else under this ID");
    await writeFile(contents, JSON.stringify(files));
    const get = a.platform.templateTravel.get.bind(a.platform.templateTravel);
    vi.spyOn(a.platform.templateTravel, "get").mockImplementation((which) => {
      const template = get(which);
      return template && { ...template, machine: { ...template.machine, config: { image: "evil:1" } } };
    });
    await expect(bring(b)).rejects.toThrow("host a: it has something else under this ID");
    expect([templates(b), await parts(b)]).toEqual([[], []]);
  });

  test("and tells of a generation that is another path is not believed", async () => {
    const { world, a, b } = await fakeHosts("a", "b");
    const { id } = await keep(a);
    await vi.waitFor(() => expect(shared(b, id)).toBeDefined());
    const { template } = a.platform.templates.get("shop", id);
    const snapshot = { ...template.machine.snapshot, generation: "../../../machines" };
    const evil = { ...template, machine: { ...template.machine, snapshot } } as typeof template;
    // The directory agrees with it: as if someone had the right to write both.
    await world.directory.transact(
      [],
      [put(`${KEYS.templates}shop/${id}`, { ...shared(b, id), digest: digestOf(evil, []) })],
    );
    vi.spyOn(a.platform.templateTravel, "get").mockReturnValue(evil);
    const papers = a.platform.templateTravel.papers.bind(a.platform.templateTravel);
    vi.spyOn(a.platform.templateTravel, "papers").mockImplementation(async () => ({
      ...(await papers(template)),
      template: evil,
    }));
    await writeFile(join(a.world.folder, "templates", "contents", `${id}.json`), "[]");
    await vi.waitFor(() => expect(shared(b, id)?.digest).toBe(digestOf(evil, [])));
    await expect(bring(b)).rejects.toThrow("host a: it has something else under this ID");
  });
});
