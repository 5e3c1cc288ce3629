/** Which entries of a log are told, and which builds a template is said to have. */
import type { BuildRecord, TemplateTag } from "@hibernaut/domain/build";
import type { TemplateView } from "@hibernaut/machines";
import { expect, test } from "vitest";
import { logPage } from "../src/life/log-page.ts";
import { buildsOf, templateDetail } from "../src/life/template-detail.ts";

const at = (second: number) => `2026-11-27T08:00:0${second}.000Z`;
const entry = (second: number, level: "debug" | "info" | "warn" | "error", message = `${second}`) => ({
  timestamp: at(second),
  level,
  message,
});

test("a log is told from its beginning or from its end, from a moment on, and only what matters", () => {
  const all = [entry(1, "info"), entry(2, "debug"), entry(3, "error", "it broke"), entry(4, "info")];
  const told = (query: Partial<Parameters<typeof logPage>[1]>) =>
    logPage(all, { limit: 10, ...query }).map(({ timestamp }) => Number(timestamp.slice(17, 19)));
  expect(told({})).toEqual([1, 2, 3, 4]);
  expect(told({ direction: "backward", limit: 2 })).toEqual([4, 3]);
  expect(told({ cursor: Date.parse(at(2)), limit: 2 })).toEqual([2, 3]);
  expect(told({ cursor: Date.parse(at(2)), direction: "backward" })).toEqual([2, 1]);
  expect(told({ level: "info" })).toEqual([1, 3, 4]);
  expect(told({ search: "broke" })).toEqual([3]);
  expect(told({ limit: 0 })).toEqual([]);
});

test("a template has the builds that are remembered, and what its tags lead to otherwise", () => {
  const build = (id: string, second: number, more: Partial<BuildRecord> = {}): BuildRecord => ({
    ...{ id, app: "a", name: "site", tags: [], fault: null, createdAt: at(second), startedAt: null, finishedAt: null },
    ...{ status: "waiting", ...more },
  });
  const view = (id: string, second: number, machines: string[]) =>
    ({
      template: { id, name: id, createdAt: at(second), machine: { config: { guest: { memory_mb: 512 } } } },
      machines,
    }) as unknown as TemplateView;
  const tag = (of: string, template: string): TemplateTag => ({
    ...{ app: "a", name: "site", tag: of, build: of, template, assignedAt: at(9) },
  });
  const known = {
    ...{ id: "site", name: "site" },
    builds: [build("new", 5, { status: "ready", finishedAt: at(6) }), build("next", 7, { memoryMb: 1024 })],
    tags: [tag("new", "t2"), tag("old", "t1")],
    templates: [view("t1", 1, ["m1"]), view("t2", 6, ["m2", "m3"])],
  };
  const builds = buildsOf(known);
  expect(builds).toMatchObject([
    { buildID: "next", status: "waiting", memoryMB: 1024 },
    { buildID: "new", status: "ready", finishedAt: at(6), memoryMB: 512 },
    { buildID: "old", status: "ready", createdAt: at(1) },
  ]);
  expect(builds[0]).not.toHaveProperty("finishedAt");
  expect(templateDetail(known, builds)).toMatchObject({ createdAt: at(1), updatedAt: at(9), spawnCount: 3 });
});
