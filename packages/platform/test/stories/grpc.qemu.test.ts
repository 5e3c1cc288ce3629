/**
 * A gRPC service in a machine: calls wake it, streams keep it awake, and it keeps what it knew while it slept.
 *
 * @module-tag again
 */
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Client, type ClientDuplexStream, credentials, type Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freePort } from "../../../../scripts/lib/free-port.mjs";
import { certificate } from "../../../proxy/test/http/secured.ts";
import { PATIENT } from "../helpers/patient.ts";
import { COUNTER_IMAGE } from "../helpers/qemu-world.ts";
import { Place } from "../helpers/served.ts";
import { useTempFolder } from "../helpers/temp.ts";

/** Only a fault reaches it: a cold start with Node on a busy host. */
const START_LIMIT_S = 240;

/**
 * A gRPC service on bare `node:http2`: messages are texts of less than 256 bytes behind the prefix of 5 bytes that gRPC
 * has. Each call counts, and the chat answers each text with that count.
 */
const SERVICE = `
import { createServer } from "node:http2";
let count = 0;
const framed = (text) => Buffer.concat([Buffer.from([0, 0, 0, 0, text.length]), Buffer.from(text)]);
createServer().on("stream", (stream, headers) => {
  stream.on("error", () => {});
  const trailers = { "grpc-status": headers[":path"] === "/shop.Shop/Refuse" ? "7" : "0", "grpc-message": "not%20today" };
  stream.on("wantTrailers", () => stream.sendTrailers(trailers));
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
  let bytes = Buffer.alloc(0);
  stream.on("data", (piece) => {
    bytes = Buffer.concat([bytes, piece]);
    while (bytes.length >= 5 && bytes.length >= 5 + bytes[4]) {
      count += 1;
      stream.write(framed(bytes.subarray(5, 5 + bytes[4]) + " " + count));
      bytes = bytes.subarray(5 + bytes[4]);
    }
  });
  stream.on("end", () => stream.end());
}).listen(8080, "0.0.0.0");
`;

const folder = useTempFolder("certificates");
let client: Client;
const port = await freePort();
beforeAll(async () => {
  const { key, cert } = certificate("shop.localhost", ["-addext", "subjectAltName=DNS:shop.localhost"]);
  await writeFile(join(folder.path, "default.key"), key);
  await writeFile(join(folder.path, "default.crt"), cert);
  client = new Client(`127.0.0.1:${port}`, credentials.createSsl(Buffer.from(cert)), {
    "grpc.ssl_target_name_override": "shop.localhost",
    "grpc.default_authority": `shop.localhost:${port}`,
  });
});
afterAll(async () => {
  client.close();
});
const place = Place.forTests(() => ({
  ...PATIENT,
  HIBERNAUT_PROXY_TLS_LISTEN: `127.0.0.1:${port}`,
  HIBERNAUT_PROXY_TLS_FOLDER: folder.path,
  HIBERNAUT_IDLE_CHECK_INTERVAL: "1",
}));

const bytes = (text: string) => Buffer.from(text);
const text = (reply: Buffer) => reply.toString();

/** One call: its answer, and how the proxy says that the machine came to answer. */
function call(method: string, request: string): Promise<{ reply: string; wake: string }> {
  return new Promise((resolve, reject) => {
    let head: Metadata | undefined;
    const deadline = Date.now() + START_LIMIT_S * 1000;
    const sent = client.makeUnaryRequest(`/shop.Shop/${method}`, bytes, text, request, { deadline }, (error, reply) =>
      error ? reject(error) : resolve({ reply: reply ?? "", wake: String(head?.get("hibernaut-wake")[0]) }),
    );
    sent.on("metadata", (metadata) => (head = metadata));
  });
}

test("a call wakes the service, which continues to count; an open stream keeps it awake", {
  timeout: START_LIMIT_S * 2000,
}, async () => {
  const { machine_id: id } = await place.machine({
    image: COUNTER_IMAGE,
    init: { cmd: ["/opt/service.mjs"] },
    files: [{ guest_path: "/opt/service.mjs", raw_value: Buffer.from(SERVICE).toString("base64") }],
    services: [{ internal_port: 8080, autostop: "suspend", idle_timeout: 1, http_options: { h2_backend: true } }],
  });
  await place.reach(id, "running", "suspended");
  expect((await call("Greet", "anna")).reply).toBe("anna 1");
  await place.reach(id, "suspended");
  // The client's connection has stayed open, and so had the proxy's to the app, until the machine slept.
  const woken = await call("Greet", "bob");
  expect(woken).toEqual({ reply: "bob 2", wake: expect.stringMatching(/^(warm|resume);/) });

  const chat: ClientDuplexStream<string, string> = client.makeBidiStreamRequest("/shop.Shop/Chat", bytes, text);
  chat.write("hello");
  expect(await once(chat, "data")).toEqual(["hello 3"]);
  // It would have fallen asleep after a second without the stream.
  await expect(place.client.waitForMachine(place.app, id, { state: ["suspended"], timeout: 4 })).rejects.toMatchObject({
    code: "deadline_exceeded",
  });
  chat.write("still there");
  expect(await once(chat, "data")).toEqual(["still there 4"]);
  chat.end();
  await once(chat, "end");
  await place.reach(id, "suspended");

  const refused = (await call("Refuse", "carla").catch((error: unknown) => error)) as ServiceError;
  expect(refused).toMatchObject({ code: status.PERMISSION_DENIED, details: "not today" });
  await place.reach(id, "suspended");
  const answers = await Promise.all(Array.from({ length: 20 }, (_, at) => call("Greet", String(at))));
  expect(answers.map(({ reply }) => Number(reply.split(" ")[1])).toSorted((a, b) => a - b)).toEqual(
    Array.from({ length: 20 }, (_, at) => 6 + at),
  );
});
