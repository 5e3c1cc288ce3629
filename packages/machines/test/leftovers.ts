/** What lies in the directories of machines and templates. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import type { World } from "../../platform/test/helpers/fake-world.ts";

/** Nothing is there that does not belong to a machine or a template that is stored, and all of those are there. */
export function expectNoLeftovers({ folder, store }: Pick<World, "folder" | "store">): void {
  const ids = (records: { id: string }[]) => records.map(({ id }) => id).toSorted();
  expect(entries(folder, "machines")).toEqual(ids(store.machines.list()));
  expect(entries(folder, "templates").filter((name) => name !== "births")).toEqual(ids(store.templates.list()));
  expect(beingBorn({ folder })).toEqual([]);
}

/** What is being put together for machines that are not born yet. */
export function beingBorn({ folder }: Pick<World, "folder">): string[] {
  return entries(folder, "templates", "births");
}

function entries(...parts: string[]): string[] {
  const path = join(...parts);
  return existsSync(path) ? readdirSync(path).toSorted() : [];
}
