/** How many builds there are at once, how they end, and what the next platform makes of them. The machines are imagined. */
import { join } from "node:path";
import type { TemplateRecord } from "@hibernaut/domain/template";
import { openStore } from "@hibernaut/store/open";
import { expect, onTestFinished, test } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { Builds } from "../src/build/builds.ts";
import { Uploads } from "../src/build/uploads.ts";
import type { SandboxNeeds } from "../src/contract.ts";
import { failureOf } from "../src/failure.ts";
import { Processes } from "../src/inside/processes.ts";
import { builtName, TemplateNames } from "../src/life/names.ts";

const ORDER = { parent: { title: "base", template: "0".repeat(14), programs: {}, asLarge: true }, steps: [] };

/** A platform on which no machine is ever born: a build waits for its own. */
async function platform() {
  const store = openStore(join(await tempFolder("builds"), "hibernaut.db"));
  onTestFinished(() => store.close());
  const born: string[] = [];
  const bear = (app: string, _id: string, _birth: object, signal: AbortSignal) => {
    born.push(app);
    return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
  };
  const view = (template: TemplateRecord) => ({ template, machines: [] });
  const needs = {
    builds: store.builds,
    log: { info() {}, warn() {} },
    resources: {
      apps: { get: (name: string) => store.apps.get(name) },
      templates: {
        bear,
        list: (app: string) => store.templates.list(app).map(view),
        async delete(_app: string, id: string) {
          const found = store.templates.get(id);
          if (found !== undefined) store.templates.remove(found);
        },
      },
    },
  } as unknown as SandboxNeeds;
  const names = new TemplateNames(needs);
  const open = () => new Builds({ needs, names, processes: new Processes(), uploads: new Uploads("/nowhere") });
  const app = (name: string) => void store.apps.insert({ name, createdAt: "2026-01-01T00:00:00.000Z" });
  const template = (owner: string, id: string, name: string) =>
    store.templates.insert({
      ...{ id, app: owner, name, createdAt: "2026-01-01T00:00:00.000Z", sizeBytes: 1, warmPool: 0 },
      machine: { id: "m" } as TemplateRecord["machine"],
    });
  return { store, names, born, open, app, template };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

test("some builds work at once, fewer of one app, more wait for their turn, and too many are refused", async () => {
  const { born, open, app } = await platform();
  const builds = open();
  const begin = (owner: string) => {
    const build = builds.announce(owner, { name: "x", tags: ["default"] });
    builds.start(owner, "x", build.id, ORDER);
    return build;
  };
  const refusal = (work: () => unknown) => {
    try {
      return work();
    } catch (error) {
      return failureOf(error);
    }
  };
  app("one");
  const mine = Array.from({ length: 4 }, () => begin("one"));
  await turn();
  expect(born).toEqual(["one", "one"]);
  expect(mine.map(({ id }) => builds.get("one", "x", id).status)).toEqual([
    "building",
    "building",
    "waiting",
    "waiting",
  ]);
  expect(refusal(() => begin("one"))).toMatchObject({
    code: 429,
    message: expect.stringContaining("this app") as string,
  });
  expect(refusal(() => builds.start("one", "x", mine[0]?.id ?? "", ORDER))).toMatchObject({ code: 409 });
  for (let count = 0; count < 32; count += 1) {
    app(`app-${count}`);
    begin(`app-${count}`);
  }
  await turn();
  expect(born).toEqual(["one", "one", "app-0", "app-1"]);
  app("last");
  expect(refusal(() => begin("last"))).toMatchObject({
    code: 429,
    message: expect.stringContaining("all apps") as string,
  });

  await builds.close();
  expect(mine.map(({ id }) => builds.get("one", "x", id).status)).toEqual(["error", "error", "error", "error"]);
  expect(builds.log(mine[0] ?? builds.announce("one", { name: "x", tags: [] })).at(-1)).toMatchObject({
    level: "error",
  });
  expect(refusal(() => begin("one"))).toMatchObject({ code: 503 });
});

test("what an earlier platform did not end is an error, and the template of which nobody was told is deleted", async () => {
  const { store, open, app, template } = await platform();
  app("one");
  const first = open();
  const build = first.announce("one", { name: "x", tags: ["default"] });
  const done = first.announce("one", { name: "x", tags: ["default"] });
  const announced = first.announce("one", { name: "x", tags: ["default"] });
  store.builds.update({ ...build, status: "building", startedAt: build.createdAt });
  template("one", "a".repeat(14), builtName("x", build.id));
  template("one", "b".repeat(14), builtName("x", done.id));
  template("one", "c".repeat(14), "base");
  const times = { startedAt: done.createdAt, finishedAt: done.createdAt };
  store.builds.finish({ ...done, status: "ready", ...times }, [], []);
  open().recover();
  await turn();
  expect(open().get("one", "x", build.id)).toMatchObject({ status: "error", fault: { message: /ended/ } });
  expect(open().get("one", "x", done.id)).toMatchObject({ status: "ready" });
  // Its client is still uploading.
  expect(open().get("one", "x", announced.id)).toMatchObject({ status: "waiting" });
  expect(store.templates.list("one").map(({ id }) => id[0])).toEqual(["b", "c"]);
});

test("an app's builds are remembered up to a number, and go with it, as names go with their template", async () => {
  const { store, names, open, app, template } = await platform();
  app("one");
  const builds = open();
  const all = Array.from({ length: 60 }, () => builds.announce("one", { name: "x", tags: [] }));
  expect(store.builds.list("one").map(({ id }) => id)).toEqual(all.slice(10).map(({ id }) => id));
  const [build] = all.slice(-1);
  if (build === undefined) throw new Error("there is none");
  template("one", "a".repeat(14), builtName("x", build.id));
  template("one", "b".repeat(14), "kept");
  const tag = (id: string, word: string, owner = "one") => ({
    ...{ app: owner, name: "x", tag: word, build: build.id, template: id.repeat(14), assignedAt: build.createdAt },
  });
  store.builds.finish(
    build,
    [],
    [tag("a", "default"), tag("b", "own"), tag("f", "unknown"), tag("a", "stolen", "two")],
  );
  expect(store.builds.tags("one").map((one) => one.tag)).toEqual(["default", "own"]);
  expect(names.find("one", "X:latest")).toBe("a".repeat(14));
  // Only what a build has made goes when no name leads to it any more.
  await names.remove("one", "x", ["default", "own"]);
  expect(store.templates.list("one").map(({ name }) => name)).toEqual(["kept"]);
  store.builds.tag([tag("b", "own")]);
  for (const one of store.templates.list("one")) store.templates.remove(one);
  expect(store.builds.tags("one")).toEqual([]);
  expect(store.apps.delete("one")).toBe(true);
  expect(store.builds.list()).toEqual([]);
});
