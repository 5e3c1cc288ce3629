/** What lies in the directories of machines and templates. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import type { World } from "../../platform/test/helpers/fake-world.ts";

/** Nothing is there that does not belong to a machine or a template that is stored, and all of those are there. */
export function expectNoLeftovers({ folder, store }: Pick<World, "folder" | "store">): void {
  const ids = (records: { id: string }[]) => records.map(({ id }) => id).toSorted();
  const entries = (...parts: string[]) => {
    const path = join(folder, ...parts);
    return existsSync(path) ? readdirSync(path).toSorted() : [];
  };
  expect(entries("machines")).toEqual(ids(store.machines.list()));
  expect(entries("templates").filter((name) => name !== "births")).toEqual(ids(store.templates.list()));
  expect(entries("templates", "births")).toEqual([]);
}
