/** Forwarded connections and copies through the states of a machine. Every task of the fake guest sends back what it gets. */
import { text } from "node:stream/consumers";
import { afterEach, describe, expect, test, vi } from "vitest";
import { CopyExit, copyFailure } from "../src/copy-failure.ts";
import { MOST_FORWARDS } from "../src/resources/forwards.ts";
import { shopForEach } from "./shop.ts";

const shop = shopForEach();
afterEach(() => void vi.useRealTimers());

const never = new AbortController().signal;
const connect = async (id: string, signal = never) => {
  await shop.platform.forwards.prepare("shop", id, 5432, signal);
  return shop.platform.forwards.connect("shop", id, 5432);
};
const stateOf = (id: string) => shop.record(id).state;

describe("a forwarded connection", () => {
  test("wakes a machine that sleeps or never ran, and carries bytes both ways", async () => {
    const id = await shop.sleeper();
    const connection = await connect(id);
    expect(stateOf(id)).toBe("running");
    connection.stdin.end("question");
    expect(await text(connection.stdout)).toBe("question");
    expect(await connection.exit).toMatchObject({ code: 0 });
    const other = await shop.create();
    (await connect(other)).kill();
    expect(stateOf(other)).toBe("running");
  });

  test("stays open while the machine sleeps, and wakes it again", async () => {
    const id = await shop.run();
    const connection = await connect(id);
    const heard = text(connection.stdout);
    connection.stdin.write("before ");
    await shop.suspend(id);
    connection.stdin.end("after");
    shop.platform.forwards.wake("shop", id);
    expect(await heard).toBe("before after");
  });

  test("keeps the machine awake for a minute after its last byte; a command does to its end", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const id = await shop.run();
    const connection = await connect(id);
    expect(shop.platform.commands.count(id)).toBe(1);
    vi.advanceTimersByTime(50_000);
    connection.stdin.write("a byte");
    vi.advanceTimersByTime(50_000);
    expect(shop.platform.commands.count(id)).toBe(1);
    vi.advanceTimersByTime(11_000);
    expect(shop.platform.commands.count(id)).toBe(0);
    const command = shop.platform.commands.run("shop", id, { args: ["cat"], input: true });
    vi.advanceTimersByTime(3_600_000);
    expect(shop.platform.commands.count(id)).toBe(1);
    for (const each of [command, connection]) each.kill();
  });

  test("is one of a limited number, and makes room when it ends", async () => {
    const id = await shop.run();
    const open = await Promise.all(Array.from({ length: MOST_FORWARDS }, () => connect(id)));
    await expect(connect(id)).rejects.toMatchObject({ code: "resource_exhausted", details: { limit: MOST_FORWARDS } });
    open[0]?.kill();
    await expect
      .poll(() =>
        connect(id).then(
          () => "open",
          () => "refused",
        ),
      )
      .toBe("open");
    for (const each of open) each.kill();
  });

  test("that waits for a machine ends with its client, and with a machine that cannot be woken", async () => {
    const id = await shop.run();
    await shop.stop(id);
    shop.world.holdBoots();
    const gone = new AbortController();
    const waiting = connect(id, gone.signal);
    gone.abort(new Error("the client went away"));
    await expect(waiting).rejects.toThrow("the client went away");
    shop.world.releaseBoots();
    await expect(connect("00000000000000")).rejects.toMatchObject({ code: "not_found" });
  });
});

test("a machine with an older agent neither copies nor forwards, and the error says how to change that", async () => {
  shop.world.protocols.set("bundle-1", 3);
  const id = await shop.run();
  const refusal = {
    code: "failed_precondition",
    message: expect.stringContaining(`hibernaut machine update ${id} --yes`),
  };
  await expect(connect(id)).rejects.toMatchObject(refusal);
  await expect(shop.platform.fileCopies.stat("shop", id, "/")).rejects.toMatchObject(refusal);
  expect(await shop.platform.commands.run("shop", id, { args: ["cat"] }).exit).toMatchObject({ code: 0 });
});

test("a copy does not wake a machine, like a command", async () => {
  const id = await shop.sleeper();
  await expect(shop.platform.fileCopies.read("shop", id, "/a", never)).rejects.toMatchObject({
    code: "failed_precondition",
  });
  expect(stateOf(id)).toBe("suspended");
});

test.each([
  [CopyExit.notFound, "/a: No such file\n", "not_found", "/a: No such file. Check the path in the machine."],
  [CopyExit.refused, "x leads out\n", "invalid_argument", "x leads out. Nothing more was copied."],
  [
    CopyExit.failed,
    "a: No space left\n",
    "aborted",
    "a: No space left. What was copied before that is complete. Try again.",
  ],
  [9, "", "aborted", "The copy ended with 9. What was copied before that is complete. Try again."],
])("exit code %i of a copy", (code, said, error, message) => {
  const failure = copyFailure({ code, signal: 0, timedOut: false, failure: undefined }, said);
  expect({ code: failure.code, message: failure.message }).toEqual({ code: error, message });
});
