/**
 * A browser's WebSocket over HTTP/2 to an app in a machine: it wakes the machine, keeps it awake, and lets it sleep again.
 *
 * @module-tag again
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freePort } from "../../../../scripts/lib/free-port.mjs";
import { certificate } from "../../../proxy/test/http/secured.ts";
import { openBrowser } from "../helpers/browser.ts";
import { PATIENT } from "../helpers/patient.ts";
import { COUNTER_IMAGE } from "../helpers/qemu-world.ts";
import { NOTHING_LEFT, Place } from "../helpers/served.ts";
import { openTempFolder, type TempFolder } from "../helpers/temp.ts";

/** Only a fault reaches it: a cold start with Node on a busy host. */
const START_LIMIT_S = 240;

/** Answers each text of less than 126 bytes with itself and a count, and `/` with an empty page (RFC 6455). */
const APP = `
import { createHash } from "node:crypto";
import { createServer } from "node:http";
let count = 0;
const server = createServer((request, response) => response.writeHead(200, { "content-type": "text/html" }).end());
server.on("upgrade", (request, socket) => {
  socket.on("error", () => {});
  const key = request.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  const accept = createHash("sha1").update(key).digest("base64");
  const head = ["HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: websocket"];
  socket.write([...head, "Sec-WebSocket-Accept: " + accept, "", ""].join("\\r\\n"));
  let bytes = Buffer.alloc(0);
  socket.on("data", (piece) => {
    bytes = Buffer.concat([bytes, piece]);
    while (bytes.length >= 6 && bytes.length >= 6 + (bytes[1] & 127)) {
      const length = bytes[1] & 127;
      const text = Buffer.from(bytes.subarray(6, 6 + length).map((byte, at) => byte ^ bytes[2 + (at % 4)]));
      if ((bytes[0] & 15) === 8) return socket.end(Buffer.from([0x88, 0]));
      bytes = bytes.subarray(6 + length);
      const answer = Buffer.from(text + " " + (count += 1));
      socket.write(Buffer.concat([Buffer.from([0x81, answer.length]), answer]));
    }
  });
});
server.listen(8080, "0.0.0.0");
`;

let place: Place;
let browser: Browser;
let folder: TempFolder;
let tlsPort: number;
beforeAll(async () => {
  browser = await openBrowser();
  folder = await openTempFolder("certificates");
  const { key, cert } = certificate("shop.localhost");
  await writeFile(join(folder.path, "default.key"), key);
  await writeFile(join(folder.path, "default.crt"), cert);
  tlsPort = await freePort();
  place = await Place.open({
    ...PATIENT,
    HIBERNAUT_PROXY_TLS_LISTEN: `127.0.0.1:${tlsPort}`,
    HIBERNAUT_PROXY_TLS_FOLDER: folder.path,
    HIBERNAUT_IDLE_CHECK_INTERVAL: "1",
  });
});
afterAll(async () => {
  await browser.close();
  await folder.dispose();
  expect(await place.close()).toEqual(NOTHING_LEFT);
});

test("a WebSocket over HTTP/2 wakes its machine and keeps it awake until it is closed", {
  timeout: START_LIMIT_S * 2000,
}, async () => {
  const { machine_id: id } = await place.machine({
    image: COUNTER_IMAGE,
    init: { cmd: ["/opt/app.mjs"] },
    files: [{ guest_path: "/opt/app.mjs", raw_value: Buffer.from(APP).toString("base64") }],
    services: [{ internal_port: 8080, autostop: "suspend", idle_timeout: 1 }],
  });
  const address = `${place.app}.localhost:${tlsPort}`;
  const page = await browser.newPage({ ignoreHTTPSErrors: true });
  await page.goto(`https://${address}/`);
  const protocol = "performance.getEntriesByType('navigation')[0].nextHopProtocol";
  expect(await page.evaluate(protocol)).toBe("h2");
  await place.reach(id, "suspended");

  // The machine sleeps: the handshake waits for it.
  await page.evaluate(
    (url) =>
      new Promise<void>((resolve, reject) => {
        const socket = new WebSocket(url);
        Object.assign(globalThis, { socket });
        socket.addEventListener("open", () => resolve());
        socket.addEventListener("error", () => reject(new Error("no WebSocket")));
      }),
    `wss://${address}/chat`,
  );
  const say = (text: string) =>
    page.evaluate(
      (said) =>
        new Promise((resolve) => {
          const { socket } = globalThis as unknown as { socket: WebSocket };
          socket.addEventListener("message", ({ data }) => resolve(data), { once: true });
          socket.send(said);
        }),
      text,
    );
  expect(await say("hello")).toBe("hello 1");
  // It would have fallen asleep after a second without the WebSocket.
  await expect(place.client.waitForMachine(place.app, id, { state: ["suspended"], timeout: 4 })).rejects.toMatchObject({
    code: "deadline_exceeded",
  });
  expect(await say("still there")).toBe("still there 2");
  await page.evaluate("socket.close()");
  await place.reach(id, "suspended");
  await page.close();
});
