/** Running programs of the host. */
import { expect, test } from "vitest";
import { runUntilAborted } from "../src/exec.ts";

test("a program that is ended takes what it has started with it", async () => {
  const limit = AbortSignal.timeout(300);
  const began = performance.now();
  // The shell waits for a child that holds its output open.
  await expect(runUntilAborted("sh", ["-c", "sleep 30; true"], limit)).rejects.toMatchObject({ name: "TimeoutError" });
  expect(performance.now() - began).toBeLessThan(10_000);
});

test("a program that fails says why", async () => {
  const failing = runUntilAborted("sh", ["-c", "echo no >&2; exit 3"], new AbortController().signal);
  await expect(failing).rejects.toMatchObject({ message: "sh ended with code 3", stderr: "no\n" });
});
