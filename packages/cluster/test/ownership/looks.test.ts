/** Many machines are looked at at once: those that another host has taken do not wait for the others. */
import { expect, onTestFinished, test, vi } from "vitest";
import { Looks } from "../../src/ownership/looks.ts";

/** More than are looked at at a time. */
const MANY = 20;

function open() {
  const closing = new AbortController();
  const begun: string[] = [];
  const turns = Promise.withResolvers<boolean>();
  const warnings: string[] = [];
  const looks = new Looks({
    look(id) {
      begun.push(id);
      return turns.promise;
    },
    log: { warn: (_fields, message) => void warnings.push(message) },
    signal: closing.signal,
  });
  onTestFinished(() => closing.abort());
  for (let index = 0; index < MANY; index += 1) looks.at(`m${index}`);
  return { looks, begun, warnings, end: () => turns.resolve(true) };
}

test("a machine that another host has taken does not wait for the others, also when it waits already", async () => {
  const { looks, begun, warnings, end } = open();
  const waits = `m${MANY - 1}`;
  await vi.waitFor(() => expect(begun.length).toBeGreaterThan(1));
  expect(begun).not.toContain(waits);
  looks.at("new", { urgent: true });
  looks.at(waits, { urgent: true });
  await vi.waitFor(() => expect(begun).toEqual(expect.arrayContaining(["new", waits])));
  expect(begun).not.toContain(`m${MANY - 2}`);
  end();
  await vi.waitFor(() => expect(new Set(begun).size).toBe(MANY + 1));
  // What waited was looked at once: the change came before the look.
  expect(warnings).toEqual([]);
});

test("a machine that changes while it waits keeps its place", async () => {
  const { looks, begun, end } = open();
  await vi.waitFor(() => expect(begun.length).toBeGreaterThan(1));
  looks.at(`m${MANY - 2}`);
  end();
  await vi.waitFor(() => expect(new Set(begun).size).toBe(MANY));
  expect(begun.indexOf(`m${MANY - 2}`)).toBeLessThan(begun.indexOf(`m${MANY - 1}`));
});
