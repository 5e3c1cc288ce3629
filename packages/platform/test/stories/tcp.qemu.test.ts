/** A database that sleeps until something connects: TCP services on real guests. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { beforeAll, expect, test } from "vitest";
import { freePort } from "../../../../scripts/lib/free-port.mjs";
import { sandboxImage } from "../helpers/sandbox-image.ts";
import { Place } from "../helpers/served.ts";

const place = Place.forTests();
const port = await freePort();
let id: string;
beforeAll(async () => {
  ({ machine_id: id } = await place.machine({
    // The small app: counts the lines of all connections in its memory, and answers each with the count and the line.
    init: { cmd: ["--port", "9000", "--lines", ""] },
    services: [{ protocol: "tcp", internal_port: 9000, ports: [{ port }], autostop: "suspend" }],
  }));
});

/** Sends a line and returns the program's. */
async function say(socket: Socket, line: string): Promise<string> {
  socket.write(`${line}\n`);
  return String((await once(socket, "data"))[0]).trimEnd();
}

async function dial(): Promise<Socket> {
  const socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true });
  await once(socket, "connect");
  return socket;
}

test("a connection wakes its machine, which continues to count where it was", async () => {
  const first = await dial();
  expect(await say(first, "awake")).toBe("1 awake");
  first.end();
  expect(String((await once(first, "data"))[0])).toBe("bye\n");
  for (let cycle = 2; cycle < 5; cycle += 1) {
    await place.suspend(id);
    const socket = await dial();
    expect(await say(socket, "again")).toBe(`${cycle} again`);
    socket.destroy();
  }
  expect((await place.get(id)).last_boot).toMatchObject({ kind: "resume" });
});

test("an open connection keeps it awake, and survives a suspend by hand: what is sent next wakes it", async (context) => {
  if ((await place.client.getHealth()).network.mode !== "bridge") return context.skip();
  const socket = await dial();
  expect(await say(socket, "before")).toMatch(/before$/);
  await place.suspend(id);
  expect(await say(socket, "after")).toMatch(/after$/);
  // The guest may answer a moment before its machine is said to be running.
  await place.reach(id, "running");
  socket.destroy();
});

test("a machine of the app wakes it by name, and one of another app is not let in", {
  tags: "again",
}, async (context) => {
  if ((await place.client.getHealth()).network.mode !== "bridge") return context.skip();
  const sleeper = { image: await sandboxImage(), services: [] };
  const { machine_id: web } = await place.machine(sleeper);
  await place.client.createApp("guest");
  const { machine_id: stranger } = await place.client.createMachine("guest", { config: sleeper });
  await place.client.waitForMachine("guest", stranger, { timeout: 60 });
  await place.suspend(id);
  // Bash says it in a tenth of the time that Node takes to start under emulation.
  const ask = `exec 3<>/dev/tcp/${place.app}.flycast/${port} && echo inside >&3 && read -r line <&3; echo $line`;
  const from = async (app: string, machine: string) => {
    const { stdout, stderr } = await place.client.runExec(app, machine, { command: ["bash", "-c", ask], timeout: 60 });
    return `${stdout}${stderr}`.trim();
  };
  expect(await from("guest", stranger)).toMatch(/Connection reset by peer$/);
  expect((await place.get(id)).state).toBe("suspended");
  expect(await from(place.app, web)).toMatch(/^\d+ inside$/);
  await place.client.destroyMachine(place.app, web, { force: true });
  await place.client.destroyApp("guest", { force: true });
});
