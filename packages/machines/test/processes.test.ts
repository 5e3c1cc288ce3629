/** Signals to apps, and lists of processes: what is asked of the agent, and what its answers mean, whatever they are. */
import { AppTaskExit, TASK_UNKNOWN } from "@hibernaut/guest";
import { expect, test } from "vitest";
import { processesOf } from "../src/processes.ts";
import { shopForEach } from "./shop.ts";

const shop = shopForEach();
const never = new AbortController().signal;
const send = (id: string, name: string) => shop.platform.processes.signal("shop", id, name, never);
const list = (id: string) => shop.platform.processes.list("shop", id, never);

/** A machine whose agent says this, and ends tasks so, and what it was asked. */
async function machine(code: number, said = "") {
  const id = await shop.run();
  const asked: unknown[] = [];
  const guest = shop.host.guest(id);
  if (guest === undefined) throw new Error("it does not run");
  guest.answer = (command) => {
    asked.push(command);
    return { ends: "at once", code, output: Buffer.from(said) };
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

const APP =
  "7\x001500\x002500\x001250\x004096\x00node server.js\x00/srv\x002\x00tcp\x000.0.0.0:80\x00udp6\x00[::1]:53\x00";

test("a list of processes is read to its end", async () => {
  const { id, asked } = await machine(0, `${APP}8\x000\x000\x000\x000\x00[sh]\x00\x000\x00`);
  expect(await list(id)).toEqual([
    {
      ...{ pid: 7, startedMs: 1500, ranMs: 2500, cpuMs: 1250, residentBytes: 4096 },
      ...{ command: "node server.js", directory: "/srv" },
      sockets: [
        { proto: "tcp", address: "0.0.0.0:80" },
        { proto: "udp6", address: "[::1]:53" },
      ],
    },
    { pid: 8, startedMs: 0, ranMs: 0, cpuMs: 0, residentBytes: 0, command: "[sh]", directory: "", sockets: [] },
  ]);
  expect(asked).toEqual([{ task: "ps", args: [] }]);
});

test.each([
  ["half a process", APP.slice(0, -5)],
  ["a number that is negative", APP.replace("1500", "-150")],
  ["a number that JavaScript has not", APP.replace("1500", "9".repeat(30))],
  ["more sockets than there may be", APP.replace("\x002\x00tcp", "\x00999999999\x00tcp")],
  ["a protocol of its own", APP.replace("udp6", "evil")],
  ["more processes than an agent lists", "1\x000\x000\x000\x000\x00x\x00\x000\x00".repeat(1001)],
  ["an address that is not one", APP.replace("[::1]:53", "<b>:1")],
])("%s is the guest's fault", async (_what, said) => {
  const { id } = await machine(0, said);
  await expect(list(id)).rejects.toMatchObject({ code: "aborted" });
});

test("a list that was cut ends with its last whole process", () => {
  const cut = Buffer.from(APP + APP + APP.slice(0, -5));
  expect(processesOf(cut, true).map(({ pid }) => pid)).toEqual([7, 7]);
});

test("an older agent does not know the list, and a machine that sleeps is not woken for it", async () => {
  const { id } = await machine(TASK_UNKNOWN);
  const old = { code: "failed_precondition", message: expect.stringMatching(/cannot list processes.*machine update/) };
  await expect(list(id)).rejects.toMatchObject(old);
  await shop.suspend(id);
  await expect(list(id)).rejects.toMatchObject({ code: "failed_precondition" });
  expect(shop.record(id).state).toBe("suspended");
});
