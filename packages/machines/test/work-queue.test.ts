/** The order in which the work of one machine is done. */
import { expect, test } from "vitest";
import { type Task, WorkQueue } from "../src/work-queue.ts";

/** Work that ends when it is told to. */
function held() {
  const { promise, resolve } = Promise.withResolvers<void>();
  const work = {
    task: undefined as Task | undefined,
    end: resolve,
    run: (task: Task) => {
      work.task = task;
      return promise;
    },
  };
  return work;
}

test("work takes the place of what is in progress: that is told to end, and comes first", async () => {
  const queue = new WorkQueue();
  const [one, other] = [held(), held()];
  const first = queue.replace(one.run, { reason: "one" });
  await Promise.resolve();
  expect(one.task?.current).toBe(true);
  const second = queue.replace(other.run, { reason: "another was requested" });
  expect(one.task?.current).toBe(false);
  expect(one.task?.signal.reason).toEqual(new Error("another was requested"));
  expect(other.task).toBeUndefined();
  one.end();
  expect(await first).toBe(true);
  await expect.poll(() => other.task?.current).toBe(true);
  other.end();
  expect(await second).toBe(true);
  expect(queue.busy).toBe(false);
});

test("work that was replaced before it began is not done", async () => {
  const queue = new WorkQueue();
  const work = ["one", "two", "three"].map((name) => ({ name, ...held() }));
  const done = work.map(({ run, name }) => queue.replace(run, { reason: name }));
  for (const { end } of work) end();
  expect(await Promise.all(done)).toEqual([false, false, true]);
  expect(work[0]?.task).toBeUndefined();
});

test("patient work waits for what is in progress", async () => {
  const queue = new WorkQueue();
  const one = held();
  void queue.replace(one.run, { reason: "one" });
  await Promise.resolve();
  const patient = queue.replace(async () => {}, { reason: "update", patient: true });
  expect(one.task?.signal.aborted).toBe(false);
  expect(one.task?.current).toBe(false);
  one.end();
  expect(await patient).toBe(true);
});

test("added work is always done, in its turn, and takes nothing's place", async () => {
  const queue = new WorkQueue();
  const one = held();
  const order: string[] = [];
  void queue.replace(one.run, { reason: "one" });
  await Promise.resolve();
  void queue.add(async () => void order.push("added"));
  expect(one.task?.current).toBe(true);
  void queue.replace(async () => void order.push("other"), { reason: "other" });
  one.end();
  await queue.drained();
  expect(order).toEqual(["added", "other"]);
});

test("work that fails tells its caller, and holds up nothing", async () => {
  const queue = new WorkQueue();
  const failed = queue.replace(() => Promise.reject(new Error("no")), { reason: "one" });
  const added = queue.add(() => Promise.reject(new Error("neither")));
  await expect(failed).rejects.toThrow("no");
  await expect(added).rejects.toThrow("neither");
  expect(await queue.replace(async () => {}, { reason: "other" })).toBe(true);
  await queue.drained();
});

test("cancelled work still counts, abandoned work does not", async () => {
  const queue = new WorkQueue();
  const [one, other] = [held(), held()];
  void queue.replace(one.run, { reason: "one" });
  await Promise.resolve();
  queue.cancel("a start was requested");
  expect([one.task?.signal.aborted, one.task?.current]).toEqual([true, true]);
  one.end();
  await queue.drained();
  void queue.replace(other.run, { reason: "other" });
  await Promise.resolve();
  queue.abandon("the platform is shutting down");
  expect([other.task?.signal.aborted, other.task?.current]).toEqual([true, false]);
  other.end();
  await queue.drained();
});
