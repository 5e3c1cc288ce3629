/** A network between browser and platform that can be cut without a word: nothing arrives, and nothing is closed. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { onTestFinished } from "vitest";

/** Forwards connections from a port of its own to a port of loopback, until the test ends. */
export async function openRelay(port: number) {
  const sockets = new Set<Socket>();
  let held = false;
  const carry = (from: Socket, to: Socket) => {
    sockets.add(from);
    from.on("data", (chunk) => {
      if (!held) to.write(chunk);
    });
    from.on("error", () => {});
    from.on("close", () => {
      sockets.delete(from);
      if (!held) to.destroy();
    });
  };
  const server = createServer((near) => {
    const far = connect(port, "127.0.0.1");
    carry(near, far);
    carry(far, near);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  /** Repairs the network. Connections from before the cut have lost data, so they end. */
  const release = () => {
    held = false;
    for (const socket of sockets) socket.destroy();
  };
  onTestFinished(() => {
    release();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Cuts the network: what is sent from now on is lost. */
    hold: () => void (held = true),
    release,
  };
}
