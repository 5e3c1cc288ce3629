/** Where a request may go that an app sends on. */
import { expect, test } from "vitest";
import type { ReplayOrder } from "../src/contract.ts";
import { replayTarget } from "../src/replay-target.ts";

const machine = (id: string, replayFrom: string[] = []) => ({ id, policy: { replayFrom } });
const APPS: Record<string, ReturnType<typeof machine>[]> = {
  router: [machine("r1"), machine("r2")],
  open: [machine("o1", ["router"]), machine("o2", ["other", "router"])],
  mixed: [machine("x1"), machine("x2", ["router"])],
  closed: [machine("c1", ["other"])],
};
const directory = {
  ofApp: (app: string) => ({ all: APPS[app] ?? [] }),
  find: (app: string, word: string) => APPS[app]?.find(({ id }) => id === word),
};

test.each<[Partial<ReplayOrder>, string]>([
  [{ machine: "r2" }, "router r2"],
  [{ machine: "R2" }, "router r2"],
  [{ machine: "r2", app: "router" }, "router r2"],
  [{ app: "router" }, "router any"],
  [{ machine: "o1" }, "replay_unknown_machine"],
  [{ machine: "gone" }, "replay_unknown_machine"],
  [{ app: "open" }, "open any"],
  [{ app: "open", machine: "o2" }, "open o2"],
  [{ app: "open", machine: "gone" }, "replay_unknown_machine"],
  [{ app: "mixed", machine: "x2" }, "mixed x2"],
  [{ app: "mixed", machine: "x1" }, "replay_not_allowed"],
  [{ app: "closed" }, "replay_not_allowed"],
  [{ app: "closed", machine: "c1" }, "replay_not_allowed"],
  [{ app: "closed", machine: "guess" }, "replay_not_allowed"],
  [{ app: "nobody" }, "replay_unknown_app"],
  [{ app: "nobody", machine: "r1" }, "replay_unknown_app"],
])("%j: %s", (order, expected) => {
  const found = replayTarget({ app: undefined, machine: undefined, state: undefined, ...order }, "router", directory);
  expect("code" in found ? found.code : `${found.app} ${found.machineId ?? "any"}`).toBe(expected);
});

test("a refusal says what to do", () => {
  const order = { app: "closed", machine: undefined, state: undefined };
  expect(replayTarget(order, "router", directory)).toMatchObject({
    message: expect.stringContaining('Set replay_from = ["router"] for the service in the app file of closed'),
  });
});
