/** How a QEMU is reached that is still starting. */
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { tempFolder } from "../../platform/test/helpers/temp.ts";
import { Qmp } from "../src/qemu/qmp.ts";
import { standInQmp } from "./stand-in-qmp.ts";

const GREETING = { QMP: { version: { qemu: { major: 7, minor: 2, micro: 22 }, package: "stand-in" } } };
const patient = () => AbortSignal.timeout(30_000);

const send = (socket: Socket, message: object) => void socket.write(`${JSON.stringify(message)}\n`);

/** A QEMU that greets, and does this with each connection, as long as the test runs. */
async function greeting(onConnection: (socket: Socket) => void): Promise<{ path: string; sockets: Socket[] }> {
  const path = join(await tempFolder("qmp"), "qmp.sock");
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket.on("error", () => {}));
    send(socket, GREETING);
    onConnection(socket);
  });
  server.listen(path);
  await once(server, "listening");
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, "close");
  });
  return { path, sockets };
}

/**
 * A QEMU whose threads both began to accept the first connection: one greets, and the other, which answers, waits in
 * accept(2) for a second connection, and then takes that for the client.
 */
async function blocked() {
  const qemu = await greeting((socket) => {
    // What the first connection asked for is answered to the second, which then asks for it again.
    if (qemu.sockets.length === 2) send(socket, { return: {}, id: 1 });
    if (qemu.sockets.length < 2) return void socket.resume();
    socket.setEncoding("utf8").on("data", (text: string) => {
      for (const line of text.trim().split("\n")) {
        const { execute, id } = JSON.parse(line) as { execute: string; id: number };
        const desc = "Capabilities negotiation is already complete, command 'qmp_capabilities' ignored";
        send(socket, execute === "qmp_capabilities" ? { error: { desc }, id } : { return: { status: "paused" }, id });
      }
    });
  });
  return qemu;
}

test("a QEMU that waits for a second connection gets one, and answers on it", async () => {
  const { path, sockets } = await blocked();
  const qmp = await Qmp.connect(path, patient());
  expect(await qmp.execute("query-status")).toEqual({ status: "paused" });
  expect(sockets).toHaveLength(2);
  await expect.poll(() => sockets[0]?.destroyed).toBe(true);
  qmp.close();
});

test("a QEMU that answers has one connection", async () => {
  const path = join(await tempFolder("qmp"), "qmp.sock");
  await using qemu = await standInQmp(path);
  const qmp = await Qmp.connect(path, patient());
  expect([qmp.version, qemu.connections()]).toEqual(["7.2.22 (stand-in)", 1]);
  qmp.close();
});

test("one that never answers is given up, with what it did not answer", async () => {
  const { path } = await greeting((socket) => void socket.resume());
  await expect(Qmp.connect(path, patient(), { commandMs: 700 })).rejects.toThrow(
    "QEMU refused qmp_capabilities: no answer in time",
  );
});

test("one that ends in the middle is not waited for", async () => {
  const { path } = await greeting((socket) => void socket.once("data", () => socket.destroy()));
  await expect(Qmp.connect(path, patient())).rejects.toThrow(/the connection to QEMU ended/);
});

test.each([["rubbish"], ["null"], ['{"QMP":{}}'], ['{"event":"SHUTDOWN","data":7}{']])(
  "a QEMU that a guest has taken over may say anything (%s): that ends the connection, and nothing else",
  async (line) => {
    const { path } = await greeting((socket) => void socket.on("data", () => socket.write(`${line}\n`)));
    await expect(Qmp.connect(path, patient())).rejects.toThrow(/QEMU/);
  },
);

test("what goes wrong with commands is counted, and how a QEMU starts or is let go is not", async () => {
  const { path, sockets } = await greeting((socket) => {
    socket.setEncoding("utf8").on("data", (text: string) => {
      const { execute, id } = JSON.parse(text) as { execute: string; id: number };
      if (execute === "qmp_capabilities") send(socket, { return: {}, id });
      if (execute === "migrate") send(socket, { error: { desc: "not now" }, id });
    });
  });
  const counted: string[] = [];
  const options = { commandMs: 300, onFault: (fault: string) => void counted.push(fault) };
  const first = await Qmp.connect(path, patient(), options);
  await expect(first.execute("migrate")).rejects.toThrow("not now");
  await expect(first.execute("stop")).rejects.toThrow("no answer in time");
  const cut = first.execute("cont");
  sockets[0]?.destroy();
  await expect(cut).rejects.toThrow();
  expect(counted).toEqual(["refused", "timeout", "closed"]);
  const second = await Qmp.connect(path, patient(), options);
  const left = second.execute("cont");
  second.close();
  await expect(left).rejects.toThrow();
  await expect(Qmp.connect(`${path}.none`, AbortSignal.timeout(100), options)).rejects.toThrow();
  expect(counted).toHaveLength(3);
});
