/** Signals to apps: what is asked of the agent, and what its answers mean, whatever they are. */
import { AppTaskExit, TASK_UNKNOWN } from "@hibernaut/guest";
import { expect, test } from "vitest";
import { shopForEach } from "./shop.ts";

const shop = shopForEach();
const never = new AbortController().signal;
const send = (id: string, name: string) => shop.platform.processes.signal("shop", id, name, never);

/** A machine whose agent ends tasks so, and what it was asked. */
async function machine(code: number) {
  const id = await shop.run();
  const asked: unknown[] = [];
  const guest = shop.host.guest(id);
  if (guest === undefined) throw new Error("it does not run");
  guest.answer = (command) => {
    asked.push(command);
    return { ends: "at once", code };
  };
  return { id, asked };
}

test("a signal goes to the agent by its number, and is part of the machine's history", async () => {
  const { id, asked } = await machine(AppTaskExit.done);
  await send(id, "SIGUSR1");
  expect(asked).toEqual([{ task: "app-signal", args: ["10"] }]);
  expect(shop.events(id)[0]).toMatchObject({
    type: "signal_sent",
    from: "running",
    to: "running",
    details: { signal: "SIGUSR1" },
  });
});

test.each([
  [TASK_UNKNOWN, "failed_precondition", /older guest bundle that cannot send signals.*machine update/],
  [AppTaskExit.notRunning, "failed_precondition", /The app of machine \w+ is not running/],
  [AppTaskExit.failed, "aborted", /could not send the signal/],
  [77, "aborted", /could not send the signal/],
])("an agent that ends with %i has sent nothing: %s", async (code, error, message) => {
  const { id } = await machine(code);
  await expect(send(id, "SIGTERM")).rejects.toMatchObject({ code: error, message: expect.stringMatching(message) });
  expect(shop.events(id, "signal_sent")).toEqual([]);
});

test("what is not a signal is refused, and so is a machine that does not run: it stays asleep", async () => {
  const { id, asked } = await machine(AppTaskExit.done);
  for (const name of ["SIGNOTHING", "toString", "constructor"])
    await expect(send(id, name)).rejects.toMatchObject({ code: "invalid_argument" });
  expect(asked).toEqual([]);
  await shop.suspend(id);
  await expect(send(id, "SIGHUP")).rejects.toMatchObject({
    code: "failed_precondition",
    message: expect.stringContaining("is suspended"),
  });
  expect(shop.record(id).state).toBe("suspended");
});
