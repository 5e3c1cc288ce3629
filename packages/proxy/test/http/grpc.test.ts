/** gRPC through the proxy, with the usual library on both sides. */
import { once } from "node:events";
import {
  Client,
  type ClientDuplexStream,
  type ClientReadableStream,
  credentials,
  Metadata,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerReadableStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceError,
  type sendUnaryData,
  status,
} from "@grpc/grpc-js";
import { expect, onTestFinished, test } from "vitest";
import { ProxyRefusal } from "../../src/contract.ts";
import { type App, httpApp, type RigOptions, until } from "./helpers.ts";
import { secured } from "./secured.ts";

const text = {
  requestSerialize: (value: string) => Buffer.from(value),
  requestDeserialize: (bytes: Buffer) => bytes.toString(),
  responseSerialize: (value: string) => Buffer.from(value),
  responseDeserialize: (bytes: Buffer) => bytes.toString(),
};
const method = (name: string, requestStream: boolean, responseStream: boolean) => ({
  ...{ path: `/shop.Shop/${name}`, requestStream, responseStream },
  ...text,
});
const SHOP = {
  greet: method("Greet", false, false),
  list: method("List", false, true),
  count: method("Count", true, false),
  chat: method("Chat", true, true),
  wait: method("Wait", false, false),
};

/** What the service saw of calls that were given up. */
interface Shop extends App {
  cancelled: string[];
}

/** A gRPC service that listens without TLS. */
async function shop(): Promise<Shop> {
  const cancelled: string[] = [];
  const server = new Server();
  server.addService(SHOP, {
    greet(call: ServerUnaryCall<string, string>, done: sendUnaryData<string>) {
      if (call.request === "nobody") {
        const trailer = new Metadata();
        trailer.set("shop-hint", "ask again");
        return done({ code: status.NOT_FOUND, details: "there is no such person: é", metadata: trailer });
      }
      const head = new Metadata();
      head.set("shop-region", String(call.metadata.get("shop-region")[0]));
      head.set("shop-bin", Buffer.from([0, 255, 10]));
      call.sendMetadata(head);
      const trailer = new Metadata();
      trailer.set("shop-took", "1");
      done(null, `hello ${call.request} from ${call.getHost()}`, trailer);
    },
    list(call: ServerWritableStream<string, string>) {
      for (let at = 0; at < Number(call.request); at += 1) call.write(`${at} ${"x".repeat(1000)}`);
      call.on("cancelled", () => void cancelled.push("list"));
      if (call.request !== "3") call.end();
    },
    count(call: ServerReadableStream<string, string>, done: sendUnaryData<string>) {
      let bytes = 0;
      call.on("data", (piece: string) => (bytes += piece.length));
      call.on("end", () => done(null, String(bytes)));
    },
    chat(call: ServerDuplexStream<string, string>) {
      call.on("data", (said: string) => void call.write(`you said ${said}`));
      call.on("end", () => call.end());
    },
    wait(call: ServerUnaryCall<string, string>) {
      call.on("cancelled", () => void cancelled.push(`wait ${call.request}`));
    },
  });
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    ),
  );
  const stop = async () => server.forceShutdown();
  onTestFinished(stop);
  return { port, open: new Set(), accepted: 0, stop, cancelled };
}

const HTTP2: NonNullable<RigOptions["leaseFor"]> = async (_request, _signal, lease) => lease({ http2: true });

/** Calls of the service through a proxy in front of it. */
async function through(app: App, limits = {}, leaseFor = HTTP2) {
  const proxy = await secured(app, limits, { leaseFor });
  const client = new Client(`127.0.0.1:${proxy.port}`, credentials.createSsl(Buffer.from(proxy.cert)), {
    "grpc.default_authority": "shop.test",
  });
  onTestFinished(() => client.close());
  const unary = (name: keyof typeof SHOP, request: string, { metadata = new Metadata(), deadline = 0 } = {}) =>
    new Promise<{ reply: string; head: Metadata; trailer: Metadata }>((resolve, reject) => {
      const { path, requestSerialize, responseDeserialize } = SHOP[name];
      const got = { reply: "", head: new Metadata(), trailer: new Metadata() };
      const options = deadline > 0 ? { deadline: Date.now() + deadline } : {};
      const call = client.makeUnaryRequest(
        path,
        requestSerialize,
        responseDeserialize,
        request,
        metadata,
        options,
        (error, reply) => {
          if (error) return reject(error);
          got.reply = reply ?? "";
        },
      );
      call.on("metadata", (head) => (got.head = head));
      call.on("status", (end) => {
        got.trailer = end.metadata;
        if (end.code === status.OK) resolve(got);
      });
    });
  return { ...proxy, client, unary };
}

const serverStream = (client: Client, request: string): ClientReadableStream<string> =>
  client.makeServerStreamRequest(SHOP.list.path, text.requestSerialize, text.responseDeserialize, request);
const chatStream = (client: Client): ClientDuplexStream<string, string> =>
  client.makeBidiStreamRequest(SHOP.chat.path, text.requestSerialize, text.responseDeserialize);

test("a call has its metadata both ways, and many share one connection to the app", async () => {
  const { unary, proxy, log } = await through(await shop());
  const metadata = new Metadata();
  metadata.set("shop-region", "north");
  const { reply, head, trailer } = await unary("greet", "anna", { metadata });
  expect(reply).toBe("hello anna from shop.test");
  expect([head.get("shop-region"), head.get("shop-bin")]).toEqual([["north"], [Buffer.from([0, 255, 10])]]);
  expect(head.get("hibernaut-wake")).toEqual(["running; dur=0"]);
  expect(trailer.get("shop-took")).toEqual(["1"]);
  await Promise.all(Array.from({ length: 100 }, (_, at) => unary("greet", String(at))));
  expect(proxy.stats().machineConnections).toBe(1);
  expect(log[0]).toMatchObject({ method: "POST", target: "/shop.Shop/Greet", httpVersion: "2.0", status: 200 });
});

test("the app's status, its details and its trailers arrive", async () => {
  const { unary } = await through(await shop());
  const error = await unary("greet", "nobody").catch((one: unknown) => one as ServiceError);
  expect(error).toMatchObject({ code: status.NOT_FOUND, details: "there is no such person: é" });
  expect((error as ServiceError).metadata.get("shop-hint")).toEqual(["ask again"]);
});

test("streams flow in both directions, at the same time", async () => {
  const { client } = await through(await shop());
  const listed = await Array.fromAsync(serverStream(client, "1000"), (one) => String(one).split(" ")[0]);
  expect(listed).toEqual(Array.from({ length: 1000 }, (_, at) => String(at)));

  const counted = new Promise<string>((resolve, reject) => {
    const { path } = SHOP.count;
    const call = client.makeClientStreamRequest(
      path,
      text.requestSerialize,
      text.responseDeserialize,
      (error, reply) => (error ? reject(error) : resolve(reply ?? "")),
    );
    for (let at = 0; at < 100; at += 1) call.write("y".repeat(10_000));
    call.end();
  });
  expect(await counted).toBe("1000000");

  const chat = chatStream(client);
  for (const word of ["one", "two", "three"]) {
    chat.write(word);
    // The answer comes while the request continues.
    expect(await once(chat, "data")).toEqual([`you said ${word}`]);
  }
  chat.end();
  await once(chat, "end");
});

test("a deadline and a cancellation end the call in the app too", async () => {
  const app = await shop();
  const { unary, client, log } = await through(app);
  const late = await unary("wait", "late", { deadline: 200 }).catch((one: unknown) => one);
  expect(late).toMatchObject({ code: status.DEADLINE_EXCEEDED });
  await until(() => app.cancelled.includes("wait late"), "the app to hear of the deadline");

  const list = serverStream(client, "3");
  await once(list, "data");
  const ended = once(list, "error");
  list.cancel();
  expect(await ended).toMatchObject([{ code: status.CANCELLED }]);
  await until(() => app.cancelled.includes("list"), "the app to hear of the cancellation");
  await until(() => log.length === 2, "both to be logged");
  expect(log.map(({ error }) => error)).toEqual(["client_gone", "client_gone"]);
});

test("a refusal of the proxy has a status of gRPC, and says why and what to do", async () => {
  const { unary, log } = await through(await httpApp((_request, response) => void response.end("I am HTTP/1.1")));
  expect(await unary("greet", "anna").catch((one: unknown) => one)).toMatchObject({
    code: status.UNAVAILABLE,
    details: expect.stringMatching(/^upstream_invalid: App shop does not speak HTTP\/2 .* Set h2_backend = false/),
  });
  expect(log).toMatchObject([{ status: 200, error: "upstream_invalid" }]);

  const refused = await through(await shop(), {}, async () => {
    throw new ProxyRefusal(404, "unknown_host", "No app answers for 100 % of é.");
  });
  expect(await refused.unary("greet", "anna").catch((one: unknown) => one)).toMatchObject({
    code: status.UNIMPLEMENTED,
    details: "unknown_host: No app answers for 100 % of é.",
  });
});
