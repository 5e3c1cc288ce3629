import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { runAsNobody } from "../../platform/test/helpers/nobody.ts";
import { cannotListen } from "../src/listening.ts";

const FIRST_FREE = Number(readFileSync("/proc/sys/net/ipv4/ip_unprivileged_port_start", "utf8"));
const LISTENING = join(import.meta.dirname, "../src/listening.ts");

// Where every port is free, as in some containers, there is no such refusal.
test.skipIf(FIRST_FREE <= 1)(
  "a low port is refused, and the error names the privilege it needs and the alternatives",
  async () => {
    const port = FIRST_FREE - 1;
    const message = await runAsNobody<string>({
      imports: [LISTENING, "node:net"],
      code: `
      const [{ cannotListen }, { createServer }] = modules;
      const error = await new Promise((resolve, reject) =>
        createServer().on("error", resolve).listen(${port}, "127.0.0.1", () => reject(new Error("it listens"))));
      return (await cannotListen("The proxy", { host: "127.0.0.1", port: ${port} }, "HIBERNAUT_PROXY_LISTEN", error)).message;`,
      cwd: "/",
    });
    expect(message).toBe(
      `The proxy cannot listen on 127.0.0.1:${port}: ports below ${FIRST_FREE} need root or CAP_NET_BIND_SERVICE. Give the service AmbientCapabilities=CAP_NET_BIND_SERVICE (docs/operate.md), or set HIBERNAUT_PROXY_LISTEN to port ${FIRST_FREE} or higher.`,
    );
  },
);

test("the error about a port in use names the setting", async () => {
  const server = createServer();
  const again = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  const error = await new Promise((resolve) => again.on("error", resolve).listen(port, "127.0.0.1"));
  server.close();
  const { code, message } = await cannotListen("The API", { host: "127.0.0.1", port }, "HIBERNAUT_API_LISTEN", error);
  expect({ code, message }).toEqual({
    code: "unavailable",
    message: `The API cannot listen on 127.0.0.1:${port}: another program is listening there. Set HIBERNAUT_API_LISTEN to another host:port.`,
  });
});
