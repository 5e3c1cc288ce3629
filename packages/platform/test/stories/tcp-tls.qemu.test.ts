/**
 * Two apps behind one TLS port, told apart by hostname, both asleep until a client names one: real guests.
 *
 * @module-tag again
 */
import { once } from "node:events";
import { connect as connectTcp } from "node:net";
import { text } from "node:stream/consumers";
import { connect, type TLSSocket } from "node:tls";
import type { Machine } from "@hibernaut/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freePort } from "../../../../scripts/lib/free-port.mjs";
import { proxyHeader } from "../../../proxy/src/proxy-protocol.ts";
import { selfSigned } from "../helpers/self-signed.ts";
import { Place } from "../helpers/served.ts";
import { SMALL_APP } from "../helpers/small-app/image.ts";
import { useTempFolder } from "../helpers/temp.ts";

/** The address from which the test plays a balancer. */
const BALANCER = "127.0.0.9";
const MAIL = "mail";

const port = await freePort();
const folder = useTempFolder("certificates");
let trusted: string;
let db: Machine;
let mail: string;

/** The small app: counts the lines of all connections in its memory, and answers each with its name, the count and the line. */
const config = (name: string, handlers: ("tls" | "proxy_proto")[]) => ({
  image: SMALL_APP,
  init: { cmd: ["--port", "9000", "--lines", name] },
  services: [
    { protocol: "tcp" as const, internal_port: 9000, autostop: "suspend" as const, ports: [{ port, handlers }] },
  ],
});

beforeAll(async () => {
  ({ cert: trusted } = selfSigned(folder.path, "_.localhost", ["*.localhost", "mail.test"]));
});
const place = Place.forTests(() => ({
  HIBERNAUT_PROXY_TLS_FOLDER: folder.path,
  HIBERNAUT_PROXY_PROTOCOL_FROM: BALANCER,
}));
beforeAll(async () => {
  db = await place.machine(config("db", ["tls"]));
  await place.client.createApp(MAIL);
  ({ machine_id: mail } = await place.client.createMachine(MAIL, { config: config("mail", ["tls", "proxy_proto"]) }));
  await place.client.waitForMachine(MAIL, mail, { timeout: 60 });
});
afterAll(() => place.client.destroyApp(MAIL, { force: true }));

/** Connects as a careful client does: the certificate must be that of the name. */
function dial(servername: string, options: object = {}): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const more = { host: "127.0.0.1", port, allowHalfOpen: true, ca: trusted, ...options };
    const socket = connect({ ...more, servername, checkServerIdentity: () => undefined });
    socket.once("secureConnect", () => resolve(socket)).once("error", reject);
  });
}

async function say(socket: TLSSocket, line: string): Promise<string> {
  socket.write(`${line}\n`);
  return String((await once(socket, "data"))[0]).trimEnd();
}

async function bothAsleep(): Promise<void> {
  await place.suspend(db.machine_id);
  await place.client.suspendMachine(MAIL, mail);
  await place.client.waitForMachine(MAIL, mail, { state: ["suspended"], timeout: 60 });
}

const states = async () => [(await place.get(db.machine_id)).state, (await place.client.getMachine(MAIL, mail)).state];

test("a client wakes the app that it names, and only that one", async () => {
  await bothAsleep();
  const socket = await dial("shop.localhost");
  expect(await say(socket, "hello")).toBe("db 1 hello");
  expect(await states()).toEqual(["running", "suspended"]);
  socket.end();
  expect(await text(socket)).toBe("bye\n");
  await bothAsleep();
  const again = await dial("shop.localhost");
  expect(await say(again, "hello again")).toBe("db 2 hello again");
  expect((await place.get(db.machine_id)).last_boot).toMatchObject({ kind: "resume" });
  again.destroy();
});

test("the other app hears who its client is, from a balancer in front and from the proxy", async () => {
  await bothAsleep();
  const balancer = connectTcp({ host: "127.0.0.1", port, localAddress: BALANCER });
  const source = { address: "203.0.113.9", port: 4444 };
  balancer.write(proxyHeader("v2", { source, destination: { address: "198.51.100.1", port } }));
  const socket = await dial("mail.localhost", { socket: balancer });
  expect(await say(socket, "hello")).toMatch(/^mail 1 PROXY TCP4 203\.0\.113\.9 198\.51\.100\.1 4444 \d+/);
  expect(await states()).toEqual(["suspended", "running"]);
  socket.destroy();
});

test("a name that nobody has wakes nothing", async () => {
  await bothAsleep();
  await expect(dial("nobody.localhost")).rejects.toThrow(/alert number 112/);
  expect(await states()).toEqual(["suspended", "suspended"]);
});
