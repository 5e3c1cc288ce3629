/** Heavy work that waits its turn. */
import { expect, test } from "vitest";
import { Semaphore } from "../src/semaphore.ts";

test("work that is given up while it waits, also at the moment of its turn, keeps nobody else waiting", async () => {
  const semaphore = new Semaphore(1);
  const never = new AbortController().signal;
  const first = Promise.withResolvers<void>();
  const aborts = [new AbortController(), new AbortController()] as const;
  const running = semaphore.run(() => first.promise, never);
  const given = aborts.map(({ signal }) => semaphore.run(async () => "ran", signal));
  const last = semaphore.run(async () => "ran", never);
  aborts[0].abort();
  await expect(given[0]).rejects.toMatchObject({ name: "AbortError" });
  first.resolve();
  await running;
  aborts[1].abort(); // its turn has come already, or comes now
  expect(await last).toBe("ran");
  await Promise.allSettled(given);
  expect(semaphore.waiting).toBe(0);
});
