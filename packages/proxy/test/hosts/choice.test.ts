/** What hosts do with the rule by which a machine is chosen, which `rules.test.ts` has as tables. */
import { expect, test } from "vitest";
import { until } from "../http/helpers.ts";
import { APP, noFaults, startHosts } from "./hosts-world.ts";

test("many requests at one host are shared among the hosts by what each has open", async () => {
  const [a, b] = await startHosts("a", "b");
  const held: (() => void)[] = [];
  const waits = (name: string) => (_request: unknown, response: { end(text: string): void }) =>
    void held.push(() => response.end(name));
  const service = { concurrency: { soft_limit: 8 } };
  const one = await a.machine(waits("a"), { service });
  const two = await b.machine(waits("b"), { service });
  await Promise.all([a.hears(one.id, "running"), a.hears(two.id, "running")]);
  const asked = Array.from({ length: 12 }, () => a.ask("/"));
  await until(() => held.length === 12, "all to be at their machines");
  for (const answer of held) answer();
  const bodies = (await Promise.all(asked)).map(({ body }) => body);
  const here = bodies.filter((body) => body === "a").length;
  expect(here).toBeGreaterThanOrEqual(6);
  expect(here).toBeLessThanOrEqual(8);
});

test("when all that run are busy, a machine of another host is woken for the requests to come", async () => {
  const [a, b] = await startHosts("a", "b");
  const held: (() => void)[] = [];
  const service = { concurrency: { soft_limit: 2 } };
  await a.machine((_request, response) => void held.push(() => response.end("a")), { service });
  const two = await b.machine((_request, response) => response.end("b"), { service });
  await b.suspend(two.id);
  await a.hears(two.id, "suspended");
  const asked = [a.ask("/"), a.ask("/"), a.ask("/")];
  await b.platform.machines.wait(APP, two.id, ["running"], { timeoutMs: 5_000 });
  await a.hears(two.id, "running");
  // The third request did not wait for it.
  await until(() => held.length === 3, "three requests at host a");
  expect((await a.ask("/")).body).toBe("b");
  for (const answer of held) answer();
  expect((await Promise.all(asked)).map(({ body }) => body)).toEqual(["a", "a", "a"]);
  noFaults(a, b);
});
