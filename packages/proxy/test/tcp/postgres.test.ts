/** What PostgreSQL's clients do before TLS, by the bytes; real clients are in the stories. */
import { once } from "node:events";
import type { Socket } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { selfSigned } from "../../../platform/test/helpers/self-signed.ts";
import { useTempFolder } from "../../../platform/test/helpers/temp.ts";
import { readPostgresStart } from "../../src/tcp/postgres.ts";
import { RawClient } from "../http/helpers.ts";
import { number } from "./hello.ts";
import { plain, type RigApp, say, tcpRig } from "./tcp-rig.ts";

const request = (code: number) => Buffer.concat([number(8, 4), number(code, 4)]);
const SSL = request(80_877_103);
const GSS = request(80_877_104);
const CANCEL = Buffer.concat([number(16, 4), number(80_877_102, 4), number(1, 4), number(2, 4)]);
const STARTUP = Buffer.concat([number(23, 4), number(196_608, 4), Buffer.from("user\0postgres\0\0")]);

const db: RigApp = { tls: "pg_tls", hostnames: ["db.test"] };
const other: RigApp = { tls: "pg_tls", hostnames: ["other.test"] };
const web: RigApp = { tls: "tls", hostnames: ["web.test"] };

const folder = useTempFolder("certificates");
beforeAll(async () => {
  for (const name of ["db.test", "other.test", "web.test"]) selfSigned(folder.path, name, [name]);
});

/** Continues with TLS on a connection that the server is willing to have it on. */
function secured(socket: Socket, servername: string): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const tls = connectTls({ socket, servername, rejectUnauthorized: false });
    onTestFinished(() => void tls.destroy());
    tls.once("secureConnect", () => resolve(tls)).once("error", reject);
  });
}

describe("the handler pg_tls", () => {
  test("answers the request for TLS, and chooses the app by the hostname that follows", async () => {
    const { port } = await tcpRig({ apps: { db, other }, folder: folder.path });
    for (const [name, said] of [
      ["db.test", "db select"],
      ["other.test", "other select"],
    ] as const) {
      const socket = await plain(port);
      expect(await say(socket, SSL)).toBe("S");
      expect(await say(await secured(socket, name), "select")).toBe(said);
    }
  });

  test("declines GSSAPI, after which clients ask for TLS", async () => {
    const { port } = await tcpRig({ apps: { db }, folder: folder.path });
    const socket = await plain(port);
    expect(await say(socket, GSS)).toBe("N");
    expect(await say(socket, SSL)).toBe("S");
    expect(await say(await secured(socket, "db.test"), "select")).toBe("db select");
    const again = await plain(port);
    expect(await say(again, GSS)).toBe("N");
    again.write(GSS);
    await once(again.resume(), "end");
  });

  test("takes TLS without a request, and says so by ALPN", async () => {
    const { dial } = await tcpRig({ apps: { db }, folder: folder.path });
    const socket = await dial({ servername: "db.test", ALPNProtocols: ["postgresql"] });
    expect(socket.alpnProtocol).toBe("postgresql");
    expect(await say(socket, "select")).toBe("db select");
    await expect(dial({ servername: "db.test", ALPNProtocols: ["h2"] })).rejects.toThrow(/alert number 120/);
  });

  test("tells a client without TLS what to do, in PostgreSQL's words", async () => {
    const { port, log, heads } = await tcpRig({ apps: { db }, folder: folder.path });
    const client = new RawClient(await plain(port));
    client.send(STARTUP);
    expect(await client.ends()).toMatch(
      /^E\0\0\0.SFATAL\0VFATAL\0C28000\0MThis port requires TLS\..*sslmode=require\.\0\0$/s,
    );
    expect(log[0]).toMatchObject({ error: "tls_required" });
    expect(heads).toEqual([]);
  });

  test("passes on what cancels a query, which no client encrypts, if it is clear for whom", async () => {
    const alone = await tcpRig({ apps: { db }, folder: folder.path });
    expect(await say(await plain(alone.port), CANCEL)).toBe(`db ${CANCEL.toString()}`);
    const shared = await tcpRig({ apps: { db, other }, folder: folder.path });
    (await plain(shared.port)).write(CANCEL);
    await vi.waitFor(() => expect(shared.log[0]).toMatchObject({ error: "tls_required" }));
  });

  test("does not believe what came unencrypted together with the request", async () => {
    const { port, log } = await tcpRig({ apps: { db }, folder: folder.path });
    const socket = await plain(port);
    socket.write(Buffer.concat([SSL, Buffer.from("injected")]));
    const client = new RawClient(socket);
    expect(await client.ends()).toBe("");
    expect(log[0]).toMatchObject({ error: "tls_invalid" });
  });

  test("is not for the other apps of a port", async () => {
    const { port, log, dial } = await tcpRig({ apps: { db, web }, folder: folder.path });
    const socket = await plain(port);
    expect(await say(socket, SSL)).toBe("S");
    await expect(secured(socket, "web.test")).rejects.toThrow(/alert number 112/);
    expect(log[0]).toMatchObject({ error: "unknown_host", host: "web.test" });
    expect(await say(await dial({ servername: "web.test" }), "hi")).toBe("web hi");
  });
});

test("the first message is waited for until it is clear what it is", () => {
  expect(readPostgresStart(Buffer.alloc(0))).toEqual({ kind: "more" });
  expect(readPostgresStart(SSL.subarray(0, 7))).toEqual({ kind: "more" });
  expect(readPostgresStart(SSL)).toEqual({ kind: "ssl_request", length: 8 });
  expect(readPostgresStart(GSS)).toEqual({ kind: "gss_request", length: 8 });
  expect(readPostgresStart(CANCEL)).toEqual({ kind: "cancel" });
  expect(readPostgresStart(STARTUP)).toEqual({ kind: "plain" });
  expect(readPostgresStart(Buffer.from([22]))).toEqual({ kind: "tls" });
  expect(readPostgresStart(request(1))).toEqual({ kind: "plain" });
});
