/** Requests between hosts when connections break, hosts go away, or a client's headers do not fit what is sent. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { expect, it, onTestFinished, vi } from "vitest";
import { startPeerPort } from "../../platform/test/helpers/peer-port.ts";
import type { Changed } from "../src/contract.ts";
import { KEYS } from "../src/keys.ts";
import { PeerClient } from "../src/peer-client.ts";

interface Peer {
  http: Server;
  client: PeerClient;
  /** How many connections the host has got. */
  connections(): number;
  /** The lease of host b ends. */
  goAway(): void;
}

type Answer = (...of: Parameters<RequestListener>) => Promise<void> | void;

/** Host b, and a client of it. */
async function hostB(answer: Answer): Promise<Peer> {
  const http = createServer((request, response) => void answer(request, response));
  const port = await startPeerPort((socket) => http.emit("connection", socket));
  const listeners: ((changes: readonly Changed[]) => void)[] = [];
  const client = new PeerClient({
    service: "api",
    peers: port.peers,
    view: {
      host: () => undefined,
      subscribe(_prefix, listener) {
        listeners.push(listener);
        return () => {};
      },
    },
  });
  onTestFinished(() => {
    client.close();
    port.close();
  });
  return {
    http,
    client,
    connections: () => port.sockets.size,
    goAway: () => listeners.forEach((each) => each([{ key: `${KEYS.hosts}b`, value: null, revision: 2 }])),
  };
}

/** Says which requests it has got, each with its body. */
function recorder(): { got: string[]; answer: Answer } {
  const got: string[] = [];
  return {
    got,
    async answer(request, response) {
      got.push(`${request.method} ${request.url} ${await text(request)}`);
      response.end("done");
    },
  };
}

async function all(response: IncomingMessage): Promise<string> {
  const body = await text(response);
  // The connection is kept once the agent has it back, one turn after the reply's end.
  await new Promise<void>((resolve) => {
    setImmediate(resolve);
  });
  return body;
}

it("a command whose connection breaks is not carried out twice", async () => {
  let commands = 0;
  const { client } = await hostB(async (request, response) => {
    if (request.method === "GET") return void response.end("ready");
    commands += 1;
    await text(request);
    request.socket.destroy();
  });
  await all(await client.send("b", { method: "GET", path: "/", headers: {} }));
  const command = client.send("b", { method: "POST", path: "/exec", headers: {}, body: Buffer.from("{}") });
  await expect(command).rejects.toMatchObject({ code: "host_unreachable" });
  expect(commands).toBe(1);
});

it("commands and questions go over one connection, one after the other", async () => {
  const { got, answer } = recorder();
  const { client, connections } = await hostB(answer);
  for (const [method, body] of [
    ["POST", Buffer.from("1")],
    ["GET", undefined],
    ["POST", Readable.from([Buffer.from("2")])],
    ["DELETE", undefined],
  ] as const)
    await all(await client.send("b", { method, path: "/", headers: {}, body }));
  expect(got).toEqual(["POST / 1", "GET / ", "POST / 2", "DELETE / "]);
  expect(connections()).toBe(1);
});

it("a body of which the host does not want the rest is not sent on, nor is its connection used again", async () => {
  const { client, connections } = await hostB((_request, response) => void response.end("enough"));
  const endless = new Readable({ read: () => void endless.push(Buffer.alloc(1024)) });
  expect(await all(await client.send("b", { method: "PUT", path: "/", headers: {}, body: endless }))).toBe("enough");
  await vi.waitFor(() => expect(endless.readableFlowing).toBe(false));
  await all(await client.send("b", { method: "GET", path: "/", headers: {} }));
  expect(connections()).toBe(2);
});

it("a question is asked again when the connection that was kept for it is closed", async () => {
  let questions = 0;
  const { client, connections } = await hostB((request, response) => {
    questions += 1;
    if (questions === 2) return void request.socket.destroy();
    response.end("answer");
  });
  const ask = async () => all(await client.send("b", { method: "GET", path: "/", headers: {} }));
  expect(await ask()).toBe("answer");
  expect(await ask()).toBe("answer");
  expect(questions).toBe(3);
  expect(connections()).toBe(2);
});

it("headers of a body that is not sent do not make the next request one", async () => {
  const { got, answer } = recorder();
  const { client, connections } = await hostB(answer);
  for (const path of ["/first", "/second"])
    await all(await client.send("b", { method: "GET", path, headers: { "content-length": "400" } }));
  expect(got).toEqual(["GET /first ", "GET /second "]);
  expect(connections()).toBe(1);
});

it.each(["GET", "DELETE", "PUT"])("a body of unknown length arrives whole with %s", async (method) => {
  const { got, answer } = recorder();
  const { client } = await hostB(answer);
  const body = Readable.from([Buffer.from("GET /other HTTP/1.1\r\n"), Buffer.from("\r\n")]);
  expect(await all(await client.send("b", { method, path: "/file", headers: {}, body }))).toBe("done");
  expect(got).toEqual([`${method} /file GET /other HTTP/1.1\r\n\r\n`]);
});

it("a WebSocket ends when its host goes away, and when this one stops", async () => {
  const { client, http, goAway } = await hostB((_request, response) => void response.end());
  http.on("upgrade", (_request, socket) =>
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"),
  );
  for (const end of [goAway, () => client.close()]) {
    const headers = { connection: "upgrade", upgrade: "websocket" };
    const upgraded = await client.upgrade("b", { method: "GET", path: "/", headers });
    if (!("socket" in upgraded)) throw new Error("not upgraded");
    const closed = once(upgraded.socket, "close");
    end();
    await closed;
  }
});
