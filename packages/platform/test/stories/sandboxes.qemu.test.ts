/** Sandboxes on real QEMU, used by the program that E2B publishes for it, unchanged. */
import { randomBytes } from "node:crypto";
import { type ConnectionOpts, NotFoundError, Sandbox, type SandboxOpts } from "e2b";
import { beforeAll, expect, test } from "vitest";
import { otherComputer } from "../../../network/test/rig.ts";
import { control, sandboxTemplate, tenant, WITH_SANDBOXES } from "../helpers/e2b.ts";
import { Place } from "../helpers/served.ts";

const place = Place.forTests(WITH_SANDBOXES);

let agents: ConnectionOpts;
beforeAll(async () => {
  agents = await tenant(place, "agents");
  await sandboxTemplate(place, "agents");
});

const create = (options: SandboxOpts = {}) => Sandbox.create({ ...agents, ...options });

test("an agent gets a computer, runs programs in it, keeps files there, and throws it away", async () => {
  const sandbox = await create({ envs: { GREETING: "hello" }, metadata: { conversation: "17" } });
  const { stdout, exitCode } = await sandbox.commands.run("echo $GREETING from $(pwd); id -un");
  expect({ stdout, exitCode }).toEqual({ stdout: "hello from /home/user\nuser\n", exitCode: 0 });

  await sandbox.files.write("notes/plan.txt", "first: sleep");
  expect(await sandbox.files.read("/home/user/notes/plan.txt")).toBe("first: sleep");
  expect((await sandbox.files.list("notes")).map(({ path, owner }) => [path, owner])).toEqual([
    ["/home/user/notes/plan.txt", "user"],
  ]);
  expect(await sandbox.files.remove("notes")).toBeUndefined();
  await expect(sandbox.files.read("notes/plan.txt")).rejects.toThrow(NotFoundError);

  const [listed] = await Sandbox.list({ ...agents, query: { metadata: { conversation: "17" } } }).nextItems();
  expect(listed).toMatchObject({ sandboxId: sandbox.sandboxId, state: "running" });
  expect((await place.client.listMachines("agents")).map(({ id }) => id)).toContain(sandbox.sandboxId);
  expect(await sandbox.kill()).toBe(true);
  expect(await sandbox.kill()).toBe(false);
  await expect(sandbox.commands.run("true")).rejects.toThrow(/not running anymore/);
});

test("a program runs on through a pause, and through the end of the platform that started it", async () => {
  const sandbox = await create();
  const counter = "n=0; while read -r line; do n=$((n+1)); echo $n $line; done";
  const started = await sandbox.commands.run(counter, { background: true, stdin: true });
  await sandbox.commands.sendStdin(started.pid, "one\n");
  expect(await sandbox.pause()).toBe(true);
  expect(await sandbox.pause()).toBe(false);
  expect((await place.client.getMachine("agents", sandbox.sandboxId)).state).toBe("suspended");
  await started.disconnect();

  await place.served.kill();
  await place.served.start();
  const again = await Sandbox.connect(sandbox.sandboxId, agents);
  expect((await again.commands.list()).map(({ pid }) => pid)).toContain(started.pid);

  // Killed while it runs, too: the next platform joins the guest and what runs in it.
  await place.served.kill();
  await place.served.start();
  const last = await Sandbox.connect(sandbox.sandboxId, agents);
  let heard = "";
  const joined = await last.commands.connect(started.pid, {
    onStdout: (text) => {
      heard += text;
    },
  });
  await last.commands.sendStdin(started.pid, "two\n");
  await expect.poll(() => heard, { timeout: 20_000 }).toContain("2 two\n");
  await joined.kill();
  await last.kill();
});

test("a paused sandbox that does not come back is started from its files alone", { tags: "again" }, async () => {
  const sandbox = await create();
  await sandbox.files.write("kept.txt", "on the disk");
  const { pid } = await sandbox.commands.run("sleep 1000", { background: true });
  await sandbox.pause();
  const again = await Sandbox.connect(sandbox.sandboxId, { ...agents, onResume: "reboot" });
  expect(await again.files.read("kept.txt")).toBe("on the disk");
  expect((await again.commands.list()).map((one) => one.pid)).not.toContain(pid);
  const { last_boot } = await place.client.getMachine("agents", sandbox.sandboxId);
  expect(last_boot).toMatchObject({ kind: "cold", reason: expect.stringContaining("memory_dropped") as string });
  await again.kill();
});

test("forks begin where their parent is, and none opens with the token of another", { tags: "again" }, async () => {
  const parent = await create();
  await parent.files.write("state.txt", "so far");
  const forks = await parent.fork({ count: 2 });
  const children = forks.filter((one) => one instanceof Sandbox);
  expect(children).toHaveLength(2);
  for (const child of children) expect(await child.files.read("state.txt")).toBe("so far");
  const [one, other] = children as [Sandbox, Sandbox];
  await one.files.write("state.txt", "one");
  expect(await other.files.read("state.txt")).toBe("so far");
  expect(await parent.files.read("state.txt")).toBe("so far");

  const { envdAccessToken: token } = await detailOf(one.sandboxId);
  expect(await inside(one.sandboxId, { "X-Access-Token": token })).toBe(200);
  expect(await inside(other.sandboxId, { "X-Access-Token": token })).toBe(401);
  expect(await inside(one.sandboxId, {})).toBe(401);
  await Promise.all([parent.kill(), one.kill(), other.kill()]);
});

test("a sandbox ends when its time is over; one that pauses wakes when its port is asked", {
  tags: "again",
}, async () => {
  const short = await create();
  await short.setTimeout(1000);
  await expect.poll(() => short.isRunning(), { timeout: 30_000 }).toBe(false);
  await expect(Sandbox.getInfo(short.sandboxId, agents)).rejects.toThrow(/not found/);

  const web = await create({ lifecycle: { onTimeout: "pause", autoResume: true } });
  const server = `require("http").createServer((q, r) => r.end(q.method + " " + q.url + " " + process.pid)).listen(3000, "127.0.0.1")`;
  const { pid } = await web.commands.run(`exec node -e '${server}'`, { background: true });
  const ask = () => port(web.sandboxId, 3000);
  await expect.poll(async () => (await ask()).status, { timeout: 90_000 }).toBe(200);
  expect(await (await port(web.sandboxId, 3001)).json()).toMatchObject({ code: 502, port: 3001 });
  await web.setTimeout(1000);
  await expect.poll(async () => (await web.getInfo()).state, { timeout: 30_000 }).toBe("paused");
  await web.setTimeout(60_000);
  expect(await (await ask()).text()).toBe(`GET /path ${pid}`);
  await web.kill();
});

test("two tenants see nothing of each other, and what makes no sense is refused as such", {
  tags: "again",
}, async () => {
  const others = await tenant(place, "rivals");
  const mine = await create();
  await expect(Sandbox.connect(mine.sandboxId, others)).rejects.toThrow(/not found/);
  expect(await Sandbox.kill(mine.sandboxId, others)).toBe(false);
  expect(await Sandbox.list(others).nextItems()).toEqual([]);
  await expect(Sandbox.create("base", others)).rejects.toThrow(/404: There is no template 'base'/);

  const unknown = { apiKey: `e2b_${randomBytes(32).toString("hex")}` };
  await expect(Sandbox.create({ ...agents, ...unknown })).rejects.toThrow(/Unauthorized/);
  for (const body of ["{", "[]", '{"templateID":"base","timeout":-1}', '{"templateID":"base","metadata":{"a":{}}}'])
    expect((await control(agents, "POST", "/sandboxes", body)).status).toBe(400);
  for (const [what, status] of [
    [{ volumeMounts: [{ name: "x", path: "/x" }] }, 404],
    [{ network: { egressProxy: {} } }, 501],
  ] as const)
    expect((await control(agents, "POST", "/sandboxes", { templateID: "base", ...what })).status).toBe(status);
  expect((await control(agents, "GET", "/v2/sandboxes?nextToken=x")).status).toBe(400);
  expect((await control(agents, "GET", "/sandboxes/../v1/apps")).status).toBe(501);
  expect(await mine.isRunning()).toBe(true);
  await mine.kill();
});

test("two takers of the last sandbox in a pool get two, and wait for files to change in them", {
  tags: "again",
}, async () => {
  await sandboxTemplate(place, "agents", "pooled", 1);
  const ready = async () => (await place.client.getTemplate("agents", "pooled")).pool.ready;
  await expect.poll(ready, { timeout: 60_000 }).toBe(1);
  const [one, other] = await Promise.all([Sandbox.create("pooled", agents), Sandbox.create("pooled", agents)]);
  expect(one.sandboxId).not.toBe(other.sandboxId);

  const seen: string[] = [];
  const watch = await one.files.watchDir(".", ({ type, name }) => void seen.push(`${type} ${name}`), {
    recursive: true,
  });
  await one.files.write("new/file.txt", "x");
  await expect.poll(() => seen, { timeout: 20_000 }).toContain("create new");
  await watch.stop();
  await place.client.setTemplatePool("agents", "pooled", 0);
  await Promise.all([one.kill(), other.kill()]);
});

async function detailOf(id: string): Promise<{ envdAccessToken: string }> {
  const answer = await control(agents, "GET", `/sandboxes/${id}`);
  return (await answer.json()) as { envdAccessToken: string };
}

/** What a request for the list of its processes is answered with. */
async function inside(id: string, headers: Record<string, string>): Promise<number> {
  const { status } = await fetch(`${place.served.sandboxUrl}/process.Process/List`, {
    method: "POST",
    headers: { "E2b-Sandbox-Id": id, "Content-Type": "application/json", ...headers },
    body: "{}",
  });
  return status;
}

function port(id: string, number: number): Promise<Response> {
  return fetch(`${place.served.sandboxUrl}/path`, {
    headers: { "E2b-Sandbox-Id": id, "E2b-Sandbox-Port": String(number) },
  });
}

test("an agent that may reach one computer reaches no other, from its first moment, until its program is told otherwise", {
  tags: "again",
}, async () => {
  const one = { here: "203.0.113.17", there: "203.0.113.18" };
  const two = { here: "203.0.113.21", there: "203.0.113.22" };
  for (const cable of [one, two]) await otherComputer(cable, [7000]);
  const everything = "0.0.0.0/0";
  // One from the pool sleeps with the rules of its template until it is taken.
  await place.client.setTemplatePool("agents", "base", 1);
  const ready = async () => (await place.client.getTemplate("agents", "base")).pool?.ready;
  await expect.poll(ready, { timeout: 60_000, interval: 100 }).toBe(1);
  const sandbox = await create({ network: { allowOut: [one.there], denyOut: [everything] } });
  await place.client.setTemplatePool("agents", "base", 0);
  const reaches = async ({ there }: { there: string }) =>
    (await sandbox.commands.run(`(exec 3<>/dev/tcp/${there}/7000) 2>/dev/null && echo yes || echo no`)).stdout.trim();
  expect([await reaches(one), await reaches(two)]).toEqual(["yes", "no"]);
  expect((await sandbox.getInfo()).network).toMatchObject({ allowOut: [one.there], denyOut: [everything] });

  await sandbox.updateNetwork({ denyOut: [one.there] });
  expect([await reaches(one), await reaches(two)]).toEqual(["no", "yes"]);
  await sandbox.pause();
  await place.served.kill();
  await place.served.start();
  const again = await Sandbox.connect(sandbox.sandboxId, agents);
  const later = await again.commands.run(`(exec 3<>/dev/tcp/${one.there}/7000) 2>/dev/null && echo yes || echo no`);
  expect(later.stdout.trim()).toBe("no");
  const told = async () =>
    (await place.client.listMachineEvents("agents", sandbox.sandboxId))
      .filter(({ type }) => type === "egress_refused")
      .map(({ details }) => details);
  await expect.poll(told, { timeout: 20_000, interval: 100 }).toContainEqual({
    ...{ destination: one.there, protocol: "tcp", port: 7000 },
  });
  await expect(create({ ...agents, network: { allowOut: ["example.com"] } })).rejects.toThrow(
    /Add 0.0.0.0\/0 to `denyOut`/,
  );
  await again.kill();
});

/** Asks a name over TLS at an address, and prints what it heard, or why not. */
const ASK = `require("https").get({ host: process.argv[1], servername: process.argv[2], headers: { host: process.argv[2] } }, (answer) => {
  answer.setEncoding("utf8").on("data", (text) => console.log(answer.statusCode, text.trim()));
}).on("error", ({ code, message }) => console.log(code || message));`;

test("what is added to an agent's requests is added behind its back, over a connection that its programs trust", {
  tags: "again",
}, async () => {
  const secret = `Bearer ${randomBytes(16).toString("hex")}`;
  const rules = { "api.example.com": [{ transform: { headers: { Authorization: secret } } }] };
  const network = { allowOut: ["*.example.com"], denyOut: ["0.0.0.0/0"], rules };
  const sandbox = await Sandbox.create({ ...agents, network });
  // TEST-NET-3. No name server says where the name is, so the gate cannot pass the request on: it says so over TLS.
  const asked = (name: string) => sandbox.commands.run(`node -e '${ASK}' 203.0.113.9 ${name}`);
  expect((await asked("api.example.com")).stdout).toMatch(/^502 api\.example\.com was not reached/);
  expect((await asked("www.example.com")).stdout).toMatch(/^ECONNRESET/);
  await sandbox.pause();
  const again = await Sandbox.connect(sandbox.sandboxId, agents);
  expect((await again.commands.run(`node -e '${ASK}' 203.0.113.9 api.example.com`)).stdout).toMatch(/^502 /);
  const everything = await again.commands.run(
    "env; cat /proc/*/environ; cat /etc/ssl/certs/* /usr/local/share/ca-certificates/*",
    {
      user: "root",
    },
  );
  expect(everything.stdout).toContain("NODE_EXTRA_CA_CERTS=");
  // Once for itself, and once in the list of all.
  const own = await again.files.read("/usr/local/share/ca-certificates/hibernaut-egress.crt");
  expect(everything.stdout.split(own.trim())).toHaveLength(3);
  expect(everything.stdout).not.toContain(secret);
  const told = [await again.getInfo(), await place.client.getMachine("agents", sandbox.sandboxId)];
  expect(JSON.stringify(told)).not.toContain(secret);

  await again.updateNetwork({ allowOut: ["*.example.com"], denyOut: ["0.0.0.0/0"] });
  expect((await again.commands.run(`node -e '${ASK}' 203.0.113.9 api.example.com`)).stdout).not.toMatch(/^502/);
  await again.kill();
});
