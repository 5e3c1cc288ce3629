/** A balancer in front of HTTP and HTTPS that names the client by the PROXY protocol. */
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { describe, expect, onTestFinished, test } from "vitest";
import { selfSigned } from "../../../platform/test/helpers/self-signed.ts";
import { tempFolder } from "../../../platform/test/helpers/temp.ts";
import { type Origin, proxyHeader } from "../../src/proxy-protocol.ts";
import { CLOSE, httpApp, KEEP, parsed, RawClient, rig, until } from "./helpers.ts";

const ORIGIN: Origin = {
  source: { address: "203.0.113.9", port: 4444 },
  destination: { address: "198.51.100.1", port: 443 },
};
const BALANCERS = ["127.0.0.1"];
const HEADER = proxyHeader("v2", ORIGIN);
const CHECK = Buffer.concat([HEADER.subarray(0, 12), Buffer.from([0x20, 0, 0, 0])]);

const told = () => httpApp((request, response) => void response.end(String(request.headers["x-forwarded-for"])));

async function dial(port: number, localAddress = "127.0.0.1"): Promise<Socket> {
  const socket = connect({ host: "127.0.0.1", port, localAddress, noDelay: true });
  onTestFinished(() => void socket.destroy());
  await once(socket, "connect");
  return socket;
}

async function secured(port: number, protocol: string): Promise<TLSSocket> {
  const socket = await dial(port);
  socket.write(HEADER);
  const tls = connectTls({ socket, servername: "shop.test", rejectUnauthorized: false, ALPNProtocols: [protocol] });
  onTestFinished(() => void tls.destroy());
  await once(tls, "secureConnect");
  return tls;
}

async function tlsRig() {
  const folder = await tempFolder("certificates");
  selfSigned(folder, "shop.test", ["shop.test"]);
  return rig({ app: await told(), balancers: BALANCERS, tls: { folder } });
}

describe("a balancer in front", () => {
  test("names the client of all requests on its connection", async () => {
    const { port, log } = await rig({ app: await told(), balancers: BALANCERS });
    const client = new RawClient(await dial(port));
    client.send(Buffer.concat([HEADER, Buffer.from(`GET / HTTP/1.1\r\n${KEEP}`)]));
    await client.sees("203.0.113.9");
    client.send(`GET / HTTP/1.1\r\n${CLOSE}`);
    expect(await client.ends()).toMatch(/203\.0\.113\.9[^]*203\.0\.113\.9$/);
    expect(log.map(({ clientAddress }) => clientAddress)).toEqual(["203.0.113.9", "203.0.113.9"]);
  });

  test("names it before TLS, for HTTP/1.1 and HTTP/2", async () => {
    const { port, log } = await tlsRig();
    const client = new RawClient(await secured(port, "http/1.1")).send(`GET / HTTP/1.1\r\n${CLOSE}`);
    expect(parsed(await client.ends()).body).toBe("203.0.113.9");
    const tls = await secured(port, "h2");
    const session = connectHttp2("https://shop.test", { createConnection: () => tls });
    onTestFinished(() => session.destroy());
    const stream = session.request({ ":path": "/" });
    let body = "";
    stream.on("data", (piece) => (body += String(piece)));
    await once(stream, "end");
    expect(body).toBe("203.0.113.9");
    session.close();
    await until(() => log.length === 2, "both requests in the log");
  });

  test("may ask for itself, and look whether the port is open", async () => {
    const { port, log } = await rig({ app: await told(), balancers: BALANCERS });
    const client = new RawClient(await dial(port));
    client.send(Buffer.concat([CHECK, Buffer.from(`GET / HTTP/1.1\r\n${CLOSE}`)]));
    expect(parsed(await client.ends()).body).toBe("127.0.0.1");
    const check = new RawClient(await dial(port)).send(CHECK);
    check.socket.end();
    await check.ends();
    expect(log).toHaveLength(1);
  });

  test("without a header is refused, and logged", async () => {
    const { port, log, heads } = await rig({ app: await told(), balancers: BALANCERS });
    const client = new RawClient(await dial(port)).send(`GET / HTTP/1.1\r\n${CLOSE}`);
    expect(await client.ends()).toBe("");
    expect(log).toMatchObject([{ error: "proxy_header_invalid", clientAddress: "127.0.0.1" }]);
    expect(heads).toEqual([]);
  });

  test("that is silent is refused in time", async () => {
    const { port, log } = await rig({ app: await told(), balancers: BALANCERS, limits: { headMs: 50 } });
    await new RawClient(await dial(port)).ends();
    expect(log).toMatchObject([{ error: "request_timeout" }]);
  });

  test("is not believed from another address", async () => {
    const { port } = await rig({ app: await told(), balancers: BALANCERS });
    const client = new RawClient(await dial(port, "127.0.0.2")).send(`GET / HTTP/1.1\r\n${CLOSE}`);
    expect(parsed(await client.ends()).body).toBe("127.0.0.2");
    const liar = new RawClient(await dial(port, "127.0.0.2")).send(HEADER);
    expect(await liar.ends()).toMatch(/^HTTP\/1\.1 400 /);
  });
});
