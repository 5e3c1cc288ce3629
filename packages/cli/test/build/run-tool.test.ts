/** Programs of a build end with it. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import { runTool } from "../../src/build/run-tool.ts";

test("when a build is ended, so are its programs and all that these started", async () => {
  const cwd = await tempFolder("tool");
  const controller = new AbortController();
  const script = "sleep 600 & echo $! > draft; mv draft pid; wait";
  const done = runTool("sh", ["-c", script], { cwd, log: join(cwd, "log"), signal: controller.signal });
  const failure = done.catch((error: unknown) => error);
  await expect.poll(() => existsSync(join(cwd, "pid")), { timeout: 30_000 }).toBe(true);
  const pid = readFileSync(join(cwd, "pid"), "utf8").trim();
  controller.abort(new Error("it is late"));
  expect(await failure).toMatchObject({ message: "it is late" });
  // One whose parent is gone is reaped by someone else, a moment later.
  await expect.poll(() => isRunning(pid), { timeout: 30_000 }).toBe(false);
});

test("a program that fails shows its last words, and the log has all of them", async () => {
  const cwd = await tempFolder("tool");
  const log = join(cwd, "log");
  const options = { cwd, log, signal: new AbortController().signal, what: "The work" };
  expect(await runTool("sh", ["-c", "echo out; echo err >&2"], options)).toBe("out");
  const failure = runTool("sh", ["-c", "seq 1000; echo why >&2; exit 7"], options);
  await expect(failure).rejects.toThrow(
    /^The work failed with exit code 7\. Last output:\n(.*\n){14} {2}why\nThe whole log: /,
  );
  expect(readFileSync(log, "utf8")).toMatch(/\n1\n2\n[^]*\n1000\n/);
  await expect(runTool("no-such-tool", [], options)).rejects.toMatchObject({ code: "build_tool_missing" });
});

function isRunning(pid: string): boolean {
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}
