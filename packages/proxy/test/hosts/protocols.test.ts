/** What passes between hosts besides plain requests and responses. */
import { createServer as createHttp2Server } from "node:http2";
import { expect, test } from "vitest";
import { until } from "../http/helpers.ts";
import { APP, startHosts } from "./hosts-world.ts";

const NAMED = { service: { machine_hostnames: true } };

test("an app sends a request on to a machine of another host, with its body, and each may be on any host", async () => {
  const [a, b, c] = await startHosts("a", "b", "c");
  const answers = await c.machine((request, response) => {
    let bytes = 0;
    request.on("data", (piece: Buffer) => (bytes += piece.length));
    request.on("end", () => response.end(`${bytes} from ${String(request.headers["fly-replay-src"])}`));
  }, NAMED);
  const sends = await b.machine((request, response) => {
    request.resume();
    request.on("end", () => response.setHeader("fly-replay", `instance=${answers.id};state=ümlaut`).end());
  }, NAMED);
  await c.suspend(answers.id);
  await Promise.all([a.hears(answers.id, "suspended"), a.hears(sends.id, "running")]);
  const ask = { method: "POST", body: "x".repeat(20_000), headers: { "hibernaut-machine": sends.id } };
  const { status, body } = await a.ask("/", ask);
  expect(status).toBe(200);
  expect(body).toMatch(new RegExp(`^20000 from instance=${sends.id};app=${APP};t=\\d+;state=`));
  expect(a.forwarded).toEqual(["b", "c"]);
  expect(c.state(answers.id)).toBe("running");
});

test("an app that speaks HTTP/2 has its trailers passed on, as gRPC needs them", async () => {
  const [a, b] = await startHosts("a", "b");
  const server = createHttp2Server((request, response) => {
    request.resume();
    response.setHeader("trailer", "grpc-status");
    response.write(`te: ${String(request.headers.te)}`);
    response.addTrailers({ "grpc-status": "0" });
    response.end();
  });
  await b.machine(() => {}, {
    service: { http_options: { h2_backend: true } },
    onConnection: (socket) => void server.emit("connection", socket),
  });
  await a.ready();
  const { body, trailers } = await a.ask("/pkg.Service/Call", {
    method: "POST",
    headers: { te: "trailers" },
    body: "x",
  });
  expect(body).toBe("te: trailers");
  expect(trailers).toMatchObject({ "grpc-status": "0" });
});

test("a browser is shown the wake page while a machine of another host cold starts", async () => {
  const [a, b] = await startHosts("a", "b");
  const { id } = await b.machine((_request, response) => response.end("awake"), { service: { wake_page: true } });
  b.platform.machines.stop(APP, id);
  await a.hears(id, "stopped");
  const release = b.world.holdBoots();
  const page = await a.ask("/", { headers: { accept: "text/html" } });
  expect(page).toMatchObject({ status: 503, headers: { "content-type": "text/html; charset=utf-8" } });
  release();
  await a.hears(id, "running");
  expect((await a.ask("/", { headers: { accept: "text/html" } })).body).toBe("awake");
});

test("early hints, HEAD and 304 pass as the app sends them", async () => {
  const [a, b] = await startHosts("a", "b");
  await b.machine((request, response) => {
    if (request.url === "/304") response.writeHead(304, { etag: '"x"' }).end();
    else {
      response.writeEarlyHints({ link: "</style.css>; rel=preload; as=style" });
      response.setHeader("content-length", 5).end("hello");
    }
  });
  await a.ready();
  expect(await a.ask("/", { method: "HEAD" })).toMatchObject({
    status: 200,
    headers: { "content-length": "5" },
    body: "",
  });
  expect(await a.ask("/304")).toMatchObject({ status: 304, headers: { etag: '"x"' } });
  await until(() => a.server.stats().requests === 0, "all requests to end");
});
