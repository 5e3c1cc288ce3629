/** TLS at TCP ports: which app and which certificate a hostname gets, and what a client is told that gets neither. */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { Socket } from "node:net";
import { buffer, text } from "node:stream/consumers";
import { createServer as createTlsServer } from "node:tls";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { selfSigned } from "../../../platform/test/helpers/self-signed.ts";
import { openTempFolder, type TempFolder } from "../../../platform/test/helpers/temp.ts";
import { RawClient } from "../http/helpers.ts";
import { nodesHello } from "./hello.ts";
import { plain, type RigApp, say, tcpRig } from "./tcp-rig.ts";

let folders: TempFolder[];
let folder: string;
/** Without a certificate for every other name. */
let bare: string;
beforeAll(async () => {
  folders = await Promise.all([openTempFolder("certificates"), openTempFolder("certificates")]);
  [folder = "", bare = ""] = folders.map(({ path }) => path);
  selfSigned(folder, "db.test", ["db.test"]);
  selfSigned(folder, "_.apps.test", ["*.apps.test"]);
  selfSigned(folder, "default", ["default"]);
  selfSigned(bare, "db.test", ["db.test"]);
});

afterAll(async () => {
  for (const { dispose } of folders) await dispose();
});

const db: RigApp = { tls: "tls", hostnames: ["db.test", "db.apps.test"] };
const mail: RigApp = { tls: "tls", hostnames: ["mail.apps.test"] };

/** The alert that ends a handshake, as OpenSSL calls it. */
async function alertOf(dialed: Promise<unknown>): Promise<string> {
  const error: unknown = await dialed.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  return /alert number (\d+)/.exec(String((error as Error | undefined)?.message))?.[1] ?? String(error);
}

/** Answers each piece over TLS of its own. */
function ownTls(name: string): Pick<RigApp, "serve"> {
  const [cert, key] = ["crt", "key"].map((end) => readFileSync(`${folder}/db.test.${end}`));
  const server = createTlsServer({ ...(cert && { cert }), ...(key && { key }) }, (socket) => {
    socket.on("data", (piece) => socket.write(`${name} itself ${String(piece)}`)).on("error", () => {});
    socket.on("end", () => socket.end());
  });
  return { serve: (socket: Socket) => void server.emit("connection", socket) };
}

describe("the handler tls", () => {
  test("ends TLS with the certificate of the hostname; the app gets what is inside", async () => {
    const { dial, log, heads } = await tcpRig({ apps: { db }, folder });
    const named = await dial({ servername: "DB.test" });
    expect(named.getPeerCertificate().subject.CN).toBe("db.test");
    expect(await say(named, "hello")).toBe("db hello");
    named.destroy();
    const wild = await dial({ servername: "db.apps.test" });
    expect(wild.getPeerCertificate().subject.CN).toBe("*.apps.test");
    expect(await say(wild, "hello")).toBe("db hello");
    wild.destroy();
    await vi.waitFor(() => expect(log).toHaveLength(2));
    expect(log[0]).toMatchObject({ method: "TCP", host: "db.test", appName: "db", bytesIn: 5, bytesOut: 8 });
    expect(heads[0]).toMatchObject({ host: "db.test", clientAddress: "127.0.0.1" });
  });

  test("keeps half of a connection open after the other half has ended", async () => {
    const serve = (socket: Socket) => void text(socket).then((said) => socket.end(`all of it: ${said}`));
    const { dial, released } = await tcpRig({ apps: { db: { ...db, serve } }, folder });
    const socket = await dial({ servername: "db.test" });
    socket.end("first half");
    expect(await text(socket)).toBe("all of it: first half");
    await vi.waitFor(() => expect(released()).toBe(1));
  });

  test("carries megabytes both ways", async () => {
    const { dial } = await tcpRig({ apps: { db: { ...db, serve: (socket) => void socket.pipe(socket) } }, folder });
    const socket = await dial({ servername: "db.test" });
    const sent = Buffer.alloc(3_000_000, "0123456789");
    socket.end(sent);
    expect((await buffer(socket)).equals(sent)).toBe(true);
  });

  test("passes a break on in both directions", async () => {
    const theirs: Socket[] = [];
    const serve = (socket: Socket) => void theirs.push(socket);
    const { dial, log, port } = await tcpRig({ apps: { db: { ...db, serve } }, folder });
    const first = await dial({ servername: "db.test" });
    await vi.waitFor(() => expect(theirs).toHaveLength(1));
    const broken = once(first.resume(), "error");
    theirs[0]?.resetAndDestroy();
    expect((await broken)[0]).toMatchObject({ code: "ECONNRESET" });
    const raw = await plain(port);
    const second = await dial({ socket: raw, servername: "db.test" });
    await vi.waitFor(() => expect(theirs).toHaveLength(2));
    const torn = once((theirs[1] as Socket).resume(), "error");
    second.on("error", () => {});
    raw.resetAndDestroy();
    expect((await torn)[0]).toMatchObject({ code: "ECONNRESET" });
    await vi.waitFor(() => expect(log.map(({ error }) => error)).toEqual(["upstream_broke", "client_gone"]));
  });

  test("refuses versions before 1.2, and logs it", async () => {
    const { dial, log } = await tcpRig({ apps: { db }, folder });
    const old = { minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "ALL:@SECLEVEL=0" } as const;
    expect(await alertOf(dial({ servername: "db.test", ...old }))).toBe("70");
    await vi.waitFor(() => expect(log[0]).toMatchObject({ error: "tls_failed", host: "db.test" }));
  });
});

describe("a hostname", () => {
  test("chooses among the apps that share the port, whatever each does with TLS", async () => {
    const own = { tls: "tls_passthrough", hostnames: ["own.test"], ...ownTls("own") } as const;
    const { dial, log, heads } = await tcpRig({ apps: { db, mail, own }, folder });
    for (const [servername, said] of [
      ["db.test", "db hi"],
      ["mail.apps.test", "mail hi"],
      ["own.test", "own itself hi"],
    ] as const) {
      const socket = await dial({ servername });
      expect(await say(socket, "hi")).toBe(said);
      socket.destroy();
    }
    await vi.waitFor(() => expect(log).toHaveLength(3));
    expect(heads.map(({ host }) => host)).toEqual(["db.test", "mail.apps.test", "own.test"]);
  });

  test("may be that by which the app's own machines know it", async () => {
    const { dial } = await tcpRig({ apps: { db, mail }, folder });
    const socket = await dial({ servername: "mail.flycast" });
    expect(socket.getPeerCertificate().subject.CN).toBe("default");
    expect(await say(socket, "hi")).toBe("mail hi");
    expect(await alertOf(dial({ servername: "nobody.flycast" }))).toBe("112");
  });

  test("that no app with this port has is refused with an alert, and logged", async () => {
    const { dial, log, heads } = await tcpRig({ apps: { db, mail }, folder });
    expect(await alertOf(dial({ servername: "nobody.test" }))).toBe("112");
    expect(log[0]).toMatchObject({ error: "unknown_host", host: "nobody.test", appName: undefined });
    expect(heads).toEqual([]);
  });

  test("without a certificate is refused with an alert, and logged", async () => {
    const { dial, log } = await tcpRig({ apps: { mail, db }, folder: bare });
    expect(await alertOf(dial({ servername: "mail.apps.test" }))).toBe("112");
    expect(log[0]).toMatchObject({ error: "no_certificate", host: "mail.apps.test" });
  });

  test("is necessary where apps share the port, and where there is no default certificate", async () => {
    const shared = await tcpRig({ apps: { db, mail }, folder });
    expect(await alertOf(shared.dial())).toBe("109");
    expect(shared.log[0]).toMatchObject({ error: "tls_name_missing", host: "" });
    const without = await tcpRig({ apps: { db }, folder: bare });
    expect(await alertOf(without.dial())).toBe("109");
    expect(without.log[0]).toMatchObject({ error: "no_certificate" });
    const alone = await tcpRig({ apps: { db }, folder });
    const socket = await alone.dial();
    expect(socket.getPeerCertificate().subject.CN).toBe("default");
    expect(await say(socket, "hi")).toBe("db hi");
  });
});

describe("a client that is slow or does not speak TLS", () => {
  test("is heard byte by byte, and in many records", async () => {
    const own = { tls: "tls_passthrough", hostnames: ["own.test"] } as const;
    const serve = (socket: Socket) => {
      let size = 0;
      socket.on("data", (piece) => {
        size += piece.length;
        socket.write(`${size}.`);
      });
    };
    const { port, heads } = await tcpRig({ apps: { own: { ...own, serve } }, folder });
    const hello = await nodesHello("own.test");
    const client = new RawClient(await plain(port));
    await client.sendSlowly(hello);
    await client.sees(`${hello.length}.`);
    expect(heads[0]?.host).toBe("own.test");
  });

  test("is cut off when it has not begun in time", async () => {
    const { port, log } = await tcpRig({ apps: { db }, folder, limits: { handshakeMs: 50 } });
    const socket = await plain(port);
    socket.write((await nodesHello("db.test")).subarray(0, 40));
    await once(socket.resume(), "end");
    await vi.waitFor(() => expect(log[0]).toMatchObject({ error: "request_timeout" }));
    const stuck = await plain(port);
    // The handshake has begun, and does not continue.
    stuck.write(await nodesHello("db.test"));
    await once(stuck.resume(), "end");
    await vi.waitFor(() => expect(log[1]).toMatchObject({ error: "request_timeout" }));
  });

  test("is told so, and the log has it", async () => {
    const { port, log, heads } = await tcpRig({ apps: { db }, folder });
    const socket = await plain(port);
    const came = once(socket, "data");
    socket.write("GET / HTTP/1.1\r\nHost: db.test\r\n\r\n");
    expect([...((await came)[0] as Buffer)]).toEqual([21, 3, 3, 0, 2, 2, 70]);
    await once(socket.resume(), "end");
    expect(log[0]).toMatchObject({ error: "tls_invalid", host: "" });
    expect(heads).toEqual([]);
  });

  test("that leaves first is logged as gone", async () => {
    const { port, log } = await tcpRig({ apps: { db }, folder });
    (await plain(port)).end();
    await vi.waitFor(() => expect(log[0]).toMatchObject({ error: "client_gone" }));
  });
});

test("the ports close with the proxy: TLS that is quiet is cut off, what moves has its time", async () => {
  const serve = (socket: Socket) => void socket.pipe(socket);
  const { dial, fronts } = await tcpRig({ apps: { db: { ...db, serve } }, folder });
  const [quiet, busy] = [await dial({ servername: "db.test" }), await dial({ servername: "db.test" })];
  quiet.on("error", () => {}).resume();
  let came = 0;
  busy
    .on("error", () => {})
    .on("data", () => {
      came += 1;
      // Far longer than a quiet one is left alone.
      if (came < 100) setTimeout(() => busy.write("ping"), 10);
      else busy.end();
    });
  busy.write("ping");
  const gone = once(quiet, "end");
  await fronts.close(60_000);
  await gone;
  expect(came).toBe(100);
});
