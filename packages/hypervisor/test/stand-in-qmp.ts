/** Speaks QMP in the place of a QEMU, so that tests can have it report what no guest here can bring about. */
import { once } from "node:events";
import { createServer, type Socket } from "node:net";

/** Answers every command with nothing, except for those that `answers` has something for. */
export async function standInQmp(path: string, answers: Record<string, unknown> = {}) {
  const sockets = new Set<Socket>();
  const send = (socket: Socket, message: object) => void socket.write(`${JSON.stringify(message)}\n`);
  const server = createServer((socket) => {
    sockets.add(socket);
    send(socket, { QMP: { version: { qemu: { major: 7, minor: 2, micro: 22 }, package: "stand-in" } } });
    socket.setEncoding("utf8").on("data", (text: string) => {
      for (const line of text.split("\n").filter((each) => each !== "")) {
        const { execute, id } = JSON.parse(line) as { execute: string; id: number };
        send(socket, { return: answers[execute] ?? {}, id });
      }
    });
    socket.on("error", () => {});
  });
  server.listen(path);
  await once(server, "listening");
  return {
    /** How many there have been. */
    connections: () => sockets.size,
    event: (event: string, data: object = {}) => sockets.forEach((socket) => send(socket, { event, data })),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
