/** Promises and abort signals. */
import { expect, test } from "vitest";
import { abortable, within } from "../src/async.ts";

const never = () => new AbortController().signal;

test("the first of promise and signal wins", async () => {
  expect(await abortable(Promise.resolve(1), never())).toBe(1);
  await expect(abortable(Promise.reject(new Error("no")), never())).rejects.toThrow("no");
  await expect(abortable(new Promise(() => {}), AbortSignal.abort(new Error("over")))).rejects.toThrow("over");
  const abort = new AbortController();
  const waiting = abortable(new Promise(() => {}), abort.signal);
  abort.abort(new Error("cancelled"));
  await expect(waiting).rejects.toThrow("cancelled");
});

test("a promise that fails after the signal was aborted is handled", async () => {
  const unhandled: unknown[] = [];
  const note = (reason: unknown) => void unhandled.push(reason);
  process.on("unhandledRejection", note);
  try {
    const failing = Promise.reject(new Error("nobody needs to know"));
    await expect(abortable(failing, AbortSignal.abort(new Error("over")))).rejects.toThrow("over");
    // Node reports unhandled rejections before the next turn of the event loop.
    await new Promise((resolve) => setImmediate(resolve));
    expect(unhandled).toEqual([]);
  } finally {
    process.off("unhandledRejection", note);
  }
});

test("a time limit says what took too long, and passes on the signal's own reason", async () => {
  const limited = within(never(), 1, "the boot");
  await expect(abortable(new Promise(() => {}), limited)).rejects.toThrow("the boot took longer than 1 ms");
  expect(within(AbortSignal.abort(new Error("stop")), 60_000, "the boot").reason).toEqual(new Error("stop"));
});
