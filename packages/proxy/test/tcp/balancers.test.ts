/** The PROXY protocol at TCP ports: what an app is told about its clients, and whom the proxy believes. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { selfSigned } from "../../../platform/test/helpers/self-signed.ts";
import { useTempFolder } from "../../../platform/test/helpers/temp.ts";
import { type Origin, proxyHeader, readProxyHeader } from "../../src/proxy-protocol.ts";
import { RawClient } from "../http/helpers.ts";
import { plain, type RigApp, say, tcpRig } from "./tcp-rig.ts";

const ORIGIN: Origin = {
  source: { address: "203.0.113.9", port: 4444 },
  destination: { address: "198.51.100.1", port: 5432 },
};
const CHECK = Buffer.concat([proxyHeader("v2", ORIGIN).subarray(0, 12), Buffer.from([0x20, 0, 0, 0])]);
const BALANCER = ["127.0.0.0/8"];

const folder = useTempFolder("certificates");
beforeAll(async () => {
  selfSigned(folder.path, "db.test", ["db.test"]);
});

/** Answers with what its header says, and then echoes. */
function tells(socket: Socket): void {
  let bytes = Buffer.alloc(0);
  const read = (piece: Buffer) => {
    bytes = Buffer.concat([bytes, piece]);
    const reading = readProxyHeader(bytes);
    if (reading.kind === "more") return;
    socket.off("data", read);
    if (reading.kind === "bad") return void socket.end(reading.reason);
    const { address, port } = reading.origin?.source ?? { address: "nobody", port: 0 };
    socket.write(`${address} ${port};${bytes.subarray(reading.length).toString()}`);
    socket.pipe(socket);
  };
  socket.on("data", read);
}

describe("an app with the handler proxy_proto", () => {
  test.each(["v1", "v2"] as const)("learns the client's address first, in version %s", async (proxyProtocol) => {
    const { port, log } = await tcpRig({ apps: { db: { proxyProtocol, serve: tells } }, folder: folder.path });
    const socket = await plain(port);
    const client = new RawClient(socket).send("hello");
    await client.sees(`127.0.0.1 ${socket.localPort};hello`);
    socket.end();
    await client.ends();
    // The header is not the client's.
    await vi.waitFor(() => expect(log[0]).toMatchObject({ bytesIn: 5, clientAddress: "127.0.0.1" }));
  });

  test("learns it also through TLS, and from a balancer in front", async () => {
    const db: RigApp = { tls: "tls", hostnames: ["db.test"], proxyProtocol: "v2", serve: tells };
    const { port, log } = await tcpRig({ apps: { db }, folder: folder.path, balancers: BALANCER });
    const socket = await plain(port);
    socket.write(proxyHeader("v1", ORIGIN));
    const tls = connectTls({ socket, servername: "db.test", rejectUnauthorized: false });
    onTestFinished(() => void tls.destroy());
    await once(tls, "secureConnect");
    expect(await say(tls, "hello")).toBe("203.0.113.9 4444;hello");
    tls.destroy();
    await vi.waitFor(() => expect(log[0]).toMatchObject({ clientAddress: "203.0.113.9", host: "db.test" }));
  });
});

describe("a balancer in front", () => {
  test.each(["v1", "v2"] as const)(
    "is believed in version %s, and what follows its header is the client's",
    async (version) => {
      const { port, heads } = await tcpRig({ apps: { db: {} }, folder: folder.path, balancers: BALANCER });
      const socket = await plain(port);
      expect(await say(socket, Buffer.concat([proxyHeader(version, ORIGIN), Buffer.from("hello")]))).toBe("db hello");
      expect(heads[0]).toMatchObject({ clientAddress: "203.0.113.9" });
    },
  );

  test("may send its header byte by byte", async () => {
    const { port, heads } = await tcpRig({ apps: { db: {} }, folder: folder.path, balancers: BALANCER });
    const client = new RawClient(await plain(port));
    await client.sendSlowly(proxyHeader("v2", ORIGIN));
    await client.send("hi").sees("db hi");
    expect(heads[0]).toMatchObject({ clientAddress: "203.0.113.9" });
  });

  test("that sends no header is refused, and logged", async () => {
    const { port, log, heads } = await tcpRig({ apps: { db: {} }, folder: folder.path, balancers: BALANCER });
    const client = new RawClient(await plain(port)).send("hello");
    expect(await client.ends()).toBe("");
    expect(log[0]).toMatchObject({ error: "proxy_header_invalid", clientAddress: "127.0.0.1" });
    expect(heads).toEqual([]);
  });

  test("that is silent is refused in time", async () => {
    const limits = { handshakeMs: 50 };
    const { port, log } = await tcpRig({ apps: { db: {} }, folder: folder.path, balancers: BALANCER, limits });
    await new RawClient(await plain(port)).ends();
    expect(log[0]).toMatchObject({ error: "request_timeout" });
  });

  test("may look whether the port is open, which needs no machine and no line in the log", async () => {
    const { port, log, heads } = await tcpRig({ apps: { db: {} }, folder: folder.path, balancers: BALANCER });
    const check = await plain(port);
    check.end(CHECK);
    await once(check.resume(), "end");
    expect([log, heads]).toEqual([[], []]);
    // It may also talk to the app, as itself.
    expect(await say(await plain(port), Buffer.concat([CHECK, Buffer.from("are you there")]))).toBe("db are you there");
    expect(heads).toMatchObject([{ clientAddress: "127.0.0.1" }]);
  });

  test("is not believed from any other address", async () => {
    const { port, heads } = await tcpRig({ apps: { db: {} }, folder: folder.path, balancers: ["127.0.0.2"] });
    const header = proxyHeader("v1", ORIGIN);
    expect(await say(await plain(port), header)).toBe(`db ${header.toString()}`);
    expect(heads[0]).toMatchObject({ clientAddress: "127.0.0.1" });
    const believed = connect({ host: "127.0.0.1", port, localAddress: "127.0.0.2" });
    onTestFinished(() => void believed.destroy());
    expect(await say(believed, Buffer.concat([header, Buffer.from("hi")]))).toBe("db hi");
    expect(heads[1]).toMatchObject({ clientAddress: "203.0.113.9" });
  });
});
