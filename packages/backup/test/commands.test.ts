/** What apps do before they are backed up. */
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { runningMachine } from "../../platform/test/helpers/fake-world.ts";
import { BackupCommands } from "../src/commands.ts";
import { Home, patient } from "./targets/helpers.ts";

let home: Home;
/** Which machines were asked to dump, and how that ends. */
let asked: string[];
let code: number;

beforeEach(async () => {
  home = await Home.open();
  [asked, code] = [[], 0];
  home.world.host.answer = (id, { args }) => {
    if (args[0] !== "dump") return undefined;
    asked.push(id);
    return { ends: "at once", code };
  };
});
afterEach(() => home.close());

const CONFIG = { backup: { command: ["dump", "to", "/data"] } };

test("a machine that runs is asked once, and one that sleeps is left alone", async () => {
  const { machines } = home.platform;
  const id = await runningMachine(home.platform, CONFIG);
  const commands = new BackupCommands(home.platform);
  expect(await commands.before(id, patient())).toBeUndefined();
  expect(await commands.before(id, patient())).toBeUndefined();
  machines.suspend("shop", id);
  await machines.wait("shop", id, ["suspended"], { timeoutMs: 5000 });
  expect(await new BackupCommands(home.platform).before(id, patient())).toBeUndefined();
  expect(asked).toEqual([id]);
  expect(machines.get("shop", id).record.state).toBe("suspended");
});

test("a command that fails is told, and the machine is backed up nevertheless", async () => {
  code = 3;
  const { backups } = home.platform;
  const id = await runningMachine(home.platform, CONFIG);
  for await (const chunk of backups.create(patient())) void chunk;
  const { state, machines, failedCommands } = backups.get();
  expect({ state, machines, failedCommands }).toMatchObject({
    state: "complete",
    machines: 1,
    failedCommands: [
      { id, app: "shop", reason: expect.stringMatching(/^`dump to \/data` in machine .* exit code 3$/) },
    ],
  });
});

test("a command that never ends is ended by the host, whatever the guest says of the time", async () => {
  const { machines } = home.platform;
  home.world.host.answer = () => ({ ends: "when killed" });
  const id = await runningMachine(home.platform, { backup: { command: ["dump"], timeout: 1 } });
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const failed = new BackupCommands(home.platform).before(id, patient());
  await vi.advanceTimersByTimeAsync(60_000);
  expect(await failed).toMatchObject({ id, reason: expect.stringMatching(/did not end within 1 s/) });
  expect(machines.get("shop", id).record.state).toBe("running");
});
