/** What a client gets when another host, or its machine, does not do what was asked of it. */
import type { RequestListener } from "node:http";
import { connect } from "node:net";
import { KEYS } from "@hibernaut/cluster/keys";
import { expect, test } from "vitest";
import { RawClient, until } from "../http/helpers.ts";
import { APP, noFaults, startHost, startHosts, type TestHost } from "./hosts-world.ts";

const says =
  (text: string): RequestListener =>
  (request, response) => {
    request.resume();
    request.on("end", () => response.end(text));
  };

test("a host that is away: requests go to the app's machine on another host", async () => {
  const [a, b, c] = await startHosts("a", "b", "c");
  const one = await b.machine(says("b"));
  const two = await c.machine(says("c"));
  await Promise.all([a.hears(one.id, "running"), a.hears(two.id, "running")]);
  await c.suspend(two.id);
  await a.hears(two.id, "suspended");
  expect((await a.ask("/")).body).toBe("b");
  await b.cutPeers();
  // Nobody has heard yet that it is away.
  expect((await a.ask("/", { method: "POST", body: "x" })).body).toBe("c");
  await b.away();
  await c.suspend(two.id);
  await a.hears(two.id, "suspended");
  await a.hearsAway("b");
  const { body, headers } = await a.ask("/");
  expect(body).toBe("c");
  expect(headers["hibernaut-wake"]).toMatch(/^resume/);
});

test("a host that is away with all machines of an app: 503 host_unreachable, and when to try again", async () => {
  const [a, b] = await startHosts("a", "b");
  const { id } = await b.machine(says("b"));
  await b.suspend(id);
  await a.hears(id, "suspended");
  await b.cutPeers();
  const refused = { status: 503, headers: { "retry-after": "10" } };
  const unheard = await a.ask("/");
  expect(unheard).toMatchObject(refused);
  expect(JSON.parse(unheard.body)).toMatchObject({ error: "host_unreachable" });
  await b.away();
  await a.hearsAway("b");
  const heard = await a.ask("/");
  expect(heard).toMatchObject(refused);
  expect(JSON.parse(heard.body)).toMatchObject({
    error: "host_unreachable",
    message: expect.stringContaining("Host b") as string,
  });
  expect(a.log.at(-1)).toMatchObject({ status: 503, error: "host_unreachable" });
});

test("an app that listens where nobody comes: both hosts say so, as long as the machine's host is not away", async () => {
  const [a, b] = await startHosts("a", "b");
  const { id } = await b.machine(says("b"), { listens: "127.0.0.1" });
  await a.hears(id, "running");
  const told = async (host: TestHost) => {
    const { status, body } = await host.ask("/");
    const { request_id: _id, ...rest } = JSON.parse(body) as Record<string, unknown>;
    return { status, rest };
  };
  const far = await told(a);
  expect(far).toEqual(await told(b));
  expect(far).toMatchObject({
    status: 502,
    rest: { error: "upstream_unreachable", message: expect.stringContaining("listens on 127.0.0.1:8080 only") },
  });
  await b.away();
  await a.hearsAway("b");
  expect(await told(a)).toMatchObject({ status: 503, rest: { error: "host_unreachable" } });
});

test("a host that falls silent: requests that may be repeated go elsewhere once its lease has ended", async () => {
  const [a, b, c] = await startHosts("a", "b", "c");
  const one = await b.machine(() => {}, { service: { concurrency: { soft_limit: 100 } } });
  await a.hears(one.id, "running");
  const asked = a.ask("/");
  await until(() => b.proxies.load(one.id) === 1, "the request to be at its machine");
  const two = await c.machine(says("c"));
  await a.hears(two.id, "running");
  await b.away();
  expect((await asked).body).toBe("c");
});

test("a machine that cannot be started there: another host's machine takes the request, with its body", async () => {
  const [a, b, c] = await startHosts("a", "b", "c");
  const one = await b.machine(says("b"));
  await b.suspend(one.id);
  b.platform.drain.begin({});
  const two = await c.machine(says("c"));
  await c.suspend(two.id);
  await Promise.all([a.hears(one.id, "suspended"), a.hears(two.id, "suspended")]);
  const answers = await Promise.all([1, 2, 3].map(() => a.ask("/", { method: "POST", body: "x".repeat(50_000) })));
  expect(answers.map(({ status, body }) => ({ status, body }))).toEqual(
    [1, 2, 3].map(() => ({ status: 200, body: "c" })),
  );
});

test("a machine that stops while another host believes that it runs: the app's other machine takes the requests", async () => {
  const [a, b] = await startHosts("a", "b");
  const both = { one: await b.machine(says("one")), two: await b.machine(says("two")) };
  await Promise.all([a.hears(both.one.id, "running"), a.hears(both.two.id, "running")]);
  // The next request goes to the same one, as nothing is open on either.
  const { body: first } = await a.ask("/");
  const [stopped, left] = first === "one" ? [both.one, both.two] : [both.two, both.one];
  const hears = a.hearsNothing();
  await b.suspend(stopped.id);
  for (const ask of [{}, { method: "POST", body: "x".repeat(50_000) }]) {
    const { status, body } = await a.ask("/", ask);
    expect({ status, body }).toEqual({ status: 200, body: first === "one" ? "two" : "one" });
  }
  expect(b.state(stopped.id)).toBe("suspended");
  // With no other machine that runs, it is the one to wait for.
  await b.suspend(left.id);
  expect((await a.ask("/")).status).toBe(200);
  hears();
  noFaults(a, b);
});

test("a machine that stops while the app's other one is full: the request wakes it, and does not wait for the full one", async () => {
  const [a, b] = await startHosts("a", "b");
  const far = await b.machine(says("far"));
  await a.hears(far.id, "running");
  const held: (() => void)[] = [];
  const service = { concurrency: { soft_limit: 1, hard_limit: 1 } };
  const near = await a.machine((_request, response) => void held.push(() => response.end("near")), { service });
  await a.hears(near.id, "running");
  const busy = a.ask("/");
  await until(() => held.length === 1, "a request at the near machine");
  const hears = a.hearsNothing();
  await b.suspend(far.id);
  const { status, body } = await a.ask("/");
  expect({ status, body }).toEqual({ status: 200, body: "far" });
  for (const answer of held) answer();
  expect((await busy).body).toBe("near");
  hears();
  noFaults(a, b);
});

test("what the other host says is what the client gets when nothing else can take the request", async () => {
  const [a, b] = await startHosts("a", "b");
  const { id } = await b.machine(says("b"));
  await b.suspend(id);
  await a.hears(id, "suspended");
  b.platform.drain.begin({});
  const far = await a.ask("/");
  const near = await b.ask("/");
  const told = ({ status, headers, body }: typeof far) => {
    const { request_id: _id, ...rest } = JSON.parse(body) as Record<string, unknown>;
    return { status, rest, retry: headers["retry-after"], type: headers["content-type"] };
  };
  expect(told(far)).toEqual(told(near));
  expect(told(far)).toMatchObject({ status: 503, rest: { error: "draining" } });
});

test("an app that dies with a request that may not be repeated: 502, as on one host", async () => {
  const [a, b] = await startHosts("a", "b");
  await b.machine((request) => request.socket.destroy());
  await a.ready();
  const answer = await a.ask("/", { method: "POST", body: "x" });
  expect(answer.status).toBe(502);
  expect(JSON.parse(answer.body)).toMatchObject({ error: "upstream_closed" });
});

test("an app that breaks off in the middle: the client does not take it for whole", async () => {
  const [a, b] = await startHosts("a", "b");
  await b.machine((_request, response) => {
    response.write("half");
    setImmediate(() => response.destroy());
  });
  await a.ready();
  const client = new RawClient(connect(a.port, "127.0.0.1"));
  client.send(`GET / HTTP/1.1\r\nHost: ${APP}.localhost\r\n\r\n`);
  await client.ends();
  expect(client.text).not.toContain("\r\n0\r\n\r\n");
  await until(() => a.log.length === 1, "the log's line");
  expect(a.log[0]).toMatchObject({ status: 200, error: "upstream_broke" });
});

test("a machine that has moved: the first host looks again, and the request arrives with its body", async () => {
  const [a, b] = await startHosts("a", "b");
  const { id } = await b.machine(says("answered"), { service: { machine_hostnames: true } });
  await b.suspend(id);
  await a.hears(id, "suspended");
  const c = await startHost("c", b.file, b.moving(id));
  // Host a hears later than host b that the machine is host c's.
  const hears = a.hearsNothing();
  await c.claim(id, 2);
  await until(() => b.view.owner(id)?.host === "c", "host b to hear of the move");
  const asked = a.ask("/", { method: "POST", body: "x".repeat(1000), headers: { "hibernaut-machine": id } });
  await until(() => b.peerConnections === 1, "host b to be asked");
  hears();
  expect(await asked).toMatchObject({ status: 200, body: "answered" });
  expect(c.state(id)).toBe("running");
  expect(a.forwarded).toEqual(["c"]);
});

test("a machine that moves while a request waits for it: the request follows", async () => {
  const [a, b] = await startHosts("a", "b");
  const { id } = await b.machine(says("answered"));
  b.platform.machines.stop(APP, id);
  await a.hears(id, "stopped");
  const release = b.world.holdBoots();
  const asked = [a.ask("/"), b.ask("/")];
  await until(() => b.held() === 2, "two requests to wait at host b");
  const c = await startHost("c", b.file, b.moving(id));
  await c.claim(id, 2);
  expect((await Promise.all(asked)).map(({ status, body }) => ({ status, body }))).toEqual([
    { status: 200, body: "answered" },
    { status: 200, body: "answered" },
  ]);
  release();
});

test("a machine that is gone for good: 404 when it was asked for, as on one host", async () => {
  const [a, b] = await startHosts("a", "b");
  const stays = await b.machine(says("stays"), { service: { machine_hostnames: true } });
  const { id } = await b.machine(says("goes"), { service: { machine_hostnames: true } });
  await Promise.all([a.hears(stays.id, "running"), a.hears(id, "running")]);
  b.platform.machines.destroy(APP, id, { force: true });
  await until(() => a.view.value(`${KEYS.states}${id}`) === undefined, "the machine to be gone");
  await b.write(`${KEYS.machines}${id}`, null);
  await until(() => a.view.owner(id) === undefined, "host a to hear of it");
  await a.settled();
  const { status, body } = await a.ask("/", { headers: { "hibernaut-machine": id } });
  expect({ status, error: (JSON.parse(body) as { error: string }).error }).toEqual({
    status: 404,
    error: "unknown_machine",
  });
});
