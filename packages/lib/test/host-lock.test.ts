import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect, test } from "vitest";
import { withHostLock } from "../src/host-lock.ts";

const NAME = `hibernaut-test-${process.pid}`;
const MODULE = join(import.meta.dirname, "../src/host-lock.ts");

test("what runs under one name runs one after another, and a failure passes the lock on", async () => {
  const seen: string[] = [];
  const turn = (name: string, fails = false) =>
    withHostLock(NAME, async () => {
      seen.push(`${name} begins`);
      await new Promise((resolve) => setImmediate(resolve));
      seen.push(`${name} ends`);
      if (fails) throw new Error(name);
      return name;
    });
  const ends = await Promise.allSettled([turn("first", true), turn("second"), turn("third")]);
  expect(ends.map(({ status }) => status)).toEqual(["rejected", "fulfilled", "fulfilled"]);
  for (let index = 0; index < seen.length; index += 2)
    expect(seen[index + 1]).toBe(seen[index]?.replace("begins", "ends"));
  expect(seen).toHaveLength(6);
});

test("other names do not wait, and nobody waits forever", async () => {
  await withHostLock(NAME, async () => {
    expect(await withHostLock(`${NAME}-other`, async () => "at once")).toBe("at once");
    expect(await withHostLock(NAME, async () => "anyway", 50)).toBe("anyway");
  });
});

test("the end of a process releases its lock", async () => {
  const hang = `import { withHostLock } from ${JSON.stringify(MODULE)};
    await withHostLock(${JSON.stringify(NAME)}, () => { console.log("held"); return new Promise(() => setInterval(() => {}, 1000)); });`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", hang], { stdio: ["ignore", "pipe", "inherit"] });
  await once(child.stdout, "data");
  let killed = false;
  const waiting = withHostLock(NAME, async () => killed);
  killed = true;
  child.kill("SIGKILL");
  await once(child, "exit");
  expect(await waiting).toBe(true);
});
