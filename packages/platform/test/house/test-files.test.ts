/** Which files `npm test -- WORD` runs, and what it tells at its end. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { clusterStories, LEFT_OUT, planCluster, TESTS_LEFT_OUT } from "../../../../scripts/lib/cluster-tests.mjs";
import { NESTED, ON_KVM, STORIES } from "../../../../scripts/lib/kvm-tests.mjs";
import {
  chooseFiles,
  hasAgain,
  hasWord,
  isAllAgain,
  isLong,
  listTestFiles,
  needsOwnProcess,
} from "../../../../scripts/lib/test-files.mjs";
import { spread } from "../../../../scripts/lib/test-sequencer.mjs";
import { failureLine, minutes, slowest } from "../../../../scripts/lib/test-summary.mjs";

const ROOT = join(import.meta.dirname, "../../../..");

describe("a word chooses the files whose paths have it between boundaries", () => {
  test.each([
    ["packages/store/test/lock.test.ts", "lock", true],
    ["packages/platform/test/stories/clock.qemu.test.ts", "lock", false],
    ["packages/platform/test/stories/volumes-postgres.qemu.test.ts", "postgres", true],
    ["packages/platform/test/stories/volumes-postgres.qemu.test.ts", "volumes", true],
    ["packages/platform/test/machines/kill.test.ts", "machine", false],
    ["packages/platform/test/machines/kill.test.ts", "machines/kill", true],
    ["packages/platform/test/machines/kill.test.ts", "machines/", true],
    ["packages/platform/test/machines/kill.test.ts", "./packages/platform/test/machines/kill.test.ts", true],
    ["packages/platform/test/machines/kill.test.ts", "kill.test.ts", true],
    ["packages/platform/test/stories/kill.qemu.test.ts", "kill.test.ts", false],
    ["packages/platform/test/machines/kill.test.ts", "k.ll", false],
    ["packages/platform/test/machines/kill.test.ts", "KILL", true],
  ])("%s, %s: %s", (path, word, expected) => {
    expect(hasWord(path, word)).toBe(expected);
  });

  test("several words choose the files of each; one that no path has is named", () => {
    const files = ["a/test/lock.test.ts", "a/test/clock.test.ts", "b/test/wake.test.ts"];
    expect(chooseFiles(files, [])).toEqual({ chosen: files, unknown: [] });
    expect(chooseFiles(files, ["lock", "wake", "lokc"])).toEqual({ chosen: [files[0], files[2]], unknown: ["lokc"] });
  });
});

test("a file that changes its process or replaces modules does not share its process; what can be put back may", () => {
  const needs = (file: string) => needsOwnProcess(ROOT, file);
  expect(needs("packages/lib/test/absence.test.ts")).toBe(true);
  expect(needs("packages/sandboxes/test/life.test.ts"), "its clock is put back").toBe(false);
  expect(needs("packages/proxy/test/http/smuggling.test.ts")).toBe(false);
});

test.each([
  [["Q"], ["u", "v", "w"], "Q u v w"],
  [["Q", "R"], ["u", "v", "w", "x"], "Q u v R w x"],
  [["Q", "R", "S", "T"], ["u", "v"], "Q R u S T v"],
  [[], ["u", "v"], "u v"],
  [["Q", "R"], [], "Q R"],
])(
  "tests on QEMU, %j, are spread among unit tests, %j, and each kind keeps its order: %s",
  (one: string[], other: string[], expected) => {
    expect(spread(one, other).join(" ")).toBe(expected);
  },
);

test("a file that says `again`, in whatever way, is one that test:all finds: no test is left out of both", async () => {
  const tagged = /@module-tag\s+again|tags:\s*(\[[^\]]*)?["'`]again/;
  const found = listTestFiles(ROOT).filter((file) => !file.endsWith("/test-files.test.ts"));
  const texts = await Promise.all(found.map((file) => readFile(join(ROOT, file), "utf8")));
  const named = found.filter((_, index) => tagged.test(texts[index] ?? ""));
  expect(named.length).toBeGreaterThan(50);
  expect(named.filter((file) => !hasAgain(ROOT, file))).toEqual([]);
  expect(named.filter((file) => isAllAgain(ROOT, file))).not.toEqual(named);
});

test("what test:kvm runs is there, and so are the tests that it chooses of a file", async () => {
  expect(listTestFiles(ROOT)).toEqual(expect.arrayContaining([...ON_KVM, ...NESTED]));
  for (const [path, names] of Object.entries(STORIES)) {
    const text = await readFile(join(ROOT, path), "utf8");
    for (const name of names) expect(text, path).toContain(`"${name}`);
  }
});

test("what test:cluster leaves out is there, by its file or its name", async () => {
  const stories = clusterStories(ROOT);
  expect(stories).toEqual(expect.arrayContaining([...Object.keys(LEFT_OUT), ...Object.keys(TESTS_LEFT_OUT)]));
  const { files, names } = planCluster(ROOT);
  expect(files).toContain("packages/platform/test/stories/proxy.qemu.test.ts");
  expect(files.length).toBe(stories.length - Object.keys(LEFT_OUT).length);
  for (const [path, tests] of Object.entries(TESTS_LEFT_OUT)) {
    const text = await readFile(join(ROOT, path), "utf8");
    for (const name of Object.keys(tests)) {
      expect(text, path).toContain(name);
      expect(`a group of tests ${name} and more`).not.toMatch(new RegExp(names));
    }
  }
  expect("a test that is left in").toMatch(new RegExp(names));
});

test("every kind of test file is listed, and test:long runs those that repeat more there", () => {
  const files = listTestFiles(ROOT);
  const path = "packages/platform/test";
  expect(files).toEqual(
    expect.arrayContaining([`${path}/house/test-files.test.ts`, `${path}/stories/setup.long.test.ts`]),
  );
  expect(files.some((file) => file.startsWith("services/orders/test/"))).toBe(true);
  expect(files.filter((file) => file.includes("node_modules"))).toEqual([]);
  expect(isLong(ROOT, `${path}/stories/setup.long.test.ts`)).toBe(true);
  expect(isLong(ROOT, `${path}/stories/kill.qemu.test.ts`)).toBe(true);
  expect(isLong(ROOT, `${path}/stories/exec.qemu.test.ts`)).toBe(false);
});

test("the slowest ten are named, the slowest first", () => {
  const files = Array.from({ length: 12 }, (_, index) => ({ path: `file-${index}`, ms: index * 1000 }));
  const lines = slowest(files);
  expect(lines).toHaveLength(10);
  expect(lines[0]).toBe("   11.0 s  file-11");
  expect([minutes(0), minutes(65_400), minutes(3_600_000)]).toEqual(["0:00", "1:05", "60:00"]);
});

test("a failure is told in one line without colors", () => {
  expect(failureLine(["a.test.ts", "it wakes"], "\u001B[31mtimed\u001B[39m out\nat a.ts:1")).toBe(
    "a.test.ts > it wakes: timed out",
  );
  expect(failureLine(["a.test.ts"])).toBe("a.test.ts: no reason was given");
});
