/** Images that services of a project are built as: each once, and those of one directory one after the other. */
import { setImmediate as turn } from "node:timers/promises";
import type { BuildPlan } from "@hibernaut/compose";
import { expect, test } from "vitest";
import { Builds } from "../src/compose/builds.ts";
import { Context } from "../src/context.ts";

const context = new Context({ json: true });
const plan = (directory: string, target?: string): BuildPlan => ({
  directory,
  dockerfile: undefined,
  target,
  args: {},
});

function watched() {
  const began: string[] = [];
  const ends = new Map<string, PromiseWithResolvers<string>>();
  const builds = new Builds((_context, { directory, target }) => {
    const name = `${directory}:${target ?? ""}`;
    began.push(name);
    const end = Promise.withResolvers<string>();
    ends.set(name, end);
    return end.promise;
  });
  return { builds, began, end: (name: string) => ends.get(name) };
}

test("a web server and its worker share one build", async () => {
  const { builds, began, end } = watched();
  const both = [builds.image(context, plan("/shop")), builds.image(context, plan("/shop"))];
  await turn();
  end("/shop:")?.resolve("oci:shop");
  expect(await Promise.all(both)).toEqual(["oci:shop", "oci:shop"]);
  expect(began).toEqual(["/shop:"]);
});

test("another target of a directory waits for the first, even if that fails; another directory does not", async () => {
  const { builds, began, end } = watched();
  const first = builds.image(context, plan("/shop", "web"));
  const second = builds.image(context, plan("/shop", "jobs"));
  const other = builds.image(context, plan("/mail"));
  await turn();
  expect(began).toEqual(["/shop:web", "/mail:"]);
  end("/shop:web")?.reject(new Error("no such target"));
  await expect(first).rejects.toThrow("no such target");
  await turn();
  expect(began).toEqual(["/shop:web", "/mail:", "/shop:jobs"]);
  end("/shop:jobs")?.resolve("oci:jobs");
  end("/mail:")?.resolve("oci:mail");
  expect(await Promise.all([second, other])).toEqual(["oci:jobs", "oci:mail"]);
});
