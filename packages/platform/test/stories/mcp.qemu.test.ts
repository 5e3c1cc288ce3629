/** Sandboxes on real QEMU as tools of an agent, used by the client that the protocol's makers publish, unchanged. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { request } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sandboxImage } from "../helpers/sandbox-image.ts";
import { Place } from "../helpers/served.ts";

const CLI = join(import.meta.dirname, "../../../cli/bin/hibernaut.js");
const image = await sandboxImage();
const place = Place.forTests({ HIBERNAUT_SANDBOX_LISTEN: "127.0.0.1:0" });

/** A tenant with an app, its template, and a token for nothing else. */
async function tenant(app: string): Promise<string> {
  await place.client.createApp(app);
  await place.client.createTemplate(app, { name: "base", from: { image, guest: { memory_mb: 256 } } });
  const { token } = await place.client.createToken(`${app}'s`, { apps: [app], scopes: ["deploy", "exec"] });
  return token;
}

let agents: string;
let rivals: string;
beforeAll(async () => {
  agents = await tenant("agents");
  rivals = await tenant("rivals");
});

const environment = (token?: string) => ({
  PATH: String(process.env["PATH"]),
  HOME: "/nonexistent",
  HIBERNAUT_API_URL: place.served.apiUrl,
  ...(token !== undefined && { HIBERNAUT_API_TOKEN: token }),
});

function overStdio(token: string, ...words: string[]): StdioClientTransport {
  return new StdioClientTransport({
    command: process.execPath,
    args: [CLI, "mcp", ...words],
    env: environment(token),
    stderr: "inherit",
  });
}

async function connected(transport: StdioClientTransport | StreamableHTTPClientTransport): Promise<Client> {
  const client = new Client({ name: "test", version: "1" });
  await client.connect(transport);
  return client;
}

interface Said {
  content: { text: string }[];
  isError?: boolean;
}

/** Calls a tool, and returns its text; an error begins with `Error: `. */
async function use(client: Client, name: string, given: object = {}, signal?: AbortSignal): Promise<string> {
  const call = { name, arguments: { ...given } };
  const { content, isError } = (await client.callTool(call, undefined, { ...(signal && { signal }) })) as Said;
  return `${isError === true ? "Error: " : ""}${content.map(({ text: one }) => one).join("\n")}`;
}

const idIn = (line: string) => line.slice(0, 14);

test("an agent uses a computer over standard input and output", async () => {
  const client = await connected(overStdio(agents, "--app", "agents", "--max-output", "1"));
  const { tools } = await client.listTools();
  expect(tools.filter(({ annotations }) => annotations?.destructiveHint === true).map(({ name }) => name)).toEqual([
    "kill",
    "run_command",
    "write_file",
  ]);

  const made = await use(client, "create_sandbox", { name: "desk", metadata: { task: "17" }, timeout_seconds: 600 });
  expect(made).toMatch(/^[0-9a-f]{14} \(desk\) is running, from template base, paused at 20.*, labels {"task":"17"}$/);
  const sandbox = idIn(made);
  expect(await use(client, "list_sandboxes")).toBe(made);

  expect(await use(client, "write_file", { sandbox, path: "/srv/new/a.txt", content: "h\u00e4llo\n" })).toMatch(
    /^Wrote 7 /,
  );
  expect(await use(client, "read_file", { sandbox: "desk", path: "/srv/new/a.txt" })).toBe("h\u00e4llo\n");
  expect(await use(client, "list_files", { sandbox, path: "/srv", depth: 2 })).toMatch(
    /^directory {2}\d+ {2}\S+ {2}\/srv\/new\nfile {2}7 {2}\S+ {2}\/srv\/new\/a.txt$/,
  );
  expect(await use(client, "run_command", { sandbox, command: "cat /srv/new/a.txt; echo oh >&2; exit 4" })).toBe(
    "exit code 4\n--- stdout\nh\u00e4llo\n\n--- stderr\noh\n",
  );
  const loud = await use(client, "run_command", {
    sandbox,
    command: "echo first; head -c 100000 /dev/zero; echo last",
  });
  expect(loud).toMatch(/^exit code 0\n--- stdout\nfirst\n[^]*bytes were cut here[^]*last\n$/);
  expect(Buffer.byteLength(loud)).toBeLessThan(1024);
  expect(await use(client, "read_file", { sandbox, path: "/dev/null" })).toMatch(/^Error: .*not a file/);

  expect(await use(client, "pause", { sandbox })).toBe(`Sandbox ${sandbox} is paused.`);
  expect(await use(client, "list_sandboxes")).toContain("is suspended");
  const fork = idIn(await use(client, "fork", { sandbox }));
  expect(await use(client, "read_file", { sandbox: fork, path: "/srv/new/a.txt" })).toBe("h\u00e4llo\n");
  expect(await use(client, "snapshot", { sandbox: fork, name: "so-far" })).toContain("Template so-far");
  const child = idIn(await use(client, "create_sandbox", { template: "so-far", on_timeout: "kill" }));
  expect(await use(client, "read_file", { sandbox: child, path: "/srv/new/a.txt" })).toBe("h\u00e4llo\n");
  for (const one of [sandbox, fork, child]) expect(await use(client, "kill", { sandbox: one })).toContain("destroyed");
  expect(await use(client, "list_sandboxes")).toBe("There are no sandboxes. Make one with create_sandbox.");
  expect(await use(client, "read_file", { sandbox, path: "/etc/passwd" })).toMatch(
    /^Error: Sandbox .* destroyed\. Make another/,
  );
  await client.close();
});

test("a port is reached at the URL that the tool gives, and a call that is given up ends its command", {
  tags: "again",
}, async () => {
  const client = await connected(overStdio(agents));
  const sandbox = idIn(await use(client, "create_sandbox"));
  const server = `require("http").createServer((q, r) => r.end("served")).listen(3000)`;
  await use(client, "run_command", { sandbox, command: `node -e '${server}' > /tmp/log 2>&1 &` });
  const url = new URL(await use(client, "expose_port", { sandbox, port: 3000 }));
  expect(url.hostname).toBe(`3000-${sandbox}.localhost`);
  await expect.poll(() => asked(url), { timeout: 30_000 }).toBe("served");

  const stop = new AbortController();
  const command = "echo $$ > /tmp/pid; exec sleep 600";
  const running = use(client, "run_command", { sandbox, command, timeout_seconds: 600 }, stop.signal);
  const handle = place.client.machine("agents", sandbox);
  await expect.poll(() => handle.files.stat("/tmp/pid"), { timeout: 20_000 }).toBeDefined();
  stop.abort("enough");
  await expect(running).rejects.toThrow("enough");
  const alive = "kill -0 $(cat /tmp/pid)";
  await expect.poll(async () => (await handle.commands.run(alive)).exit_code, { timeout: 20_000 }).not.toBe(0);
  await use(client, "kill", { sandbox });
  await client.close();
});

/** What a program in a sandbox answers at a URL, whose name no resolver of the test's host has to know. */
async function asked({ host, port, pathname }: URL): Promise<string> {
  const sent = request({ host: "127.0.0.1", port, path: pathname, headers: { host } }).end();
  const [response] = (await once(sent, "response")) as [NodeJS.ReadableStream];
  return text(response);
}

test("over HTTP, each client has the rights of its own token, and no machine but sandboxes", {
  tags: "again",
}, async () => {
  const { url, end } = await serveHttp();
  const over = (token: string) =>
    connected(
      new StreamableHTTPClientTransport(url, { requestInit: { headers: { authorization: `Bearer ${token}` } } }),
    );
  const [mine, theirs] = await Promise.all([over(agents), over(rivals)]);
  const sandbox = idIn(await use(mine, "create_sandbox"));
  expect(await use(mine, "run_command", { sandbox, command: "echo here" })).toContain("here");
  expect(await use(theirs, "list_sandboxes")).toContain("There are no sandboxes");
  for (const tool of ["kill", "pause", "fork", "snapshot"])
    expect(await use(theirs, tool, { sandbox })).toMatch(/^Error: App rivals has no machine/);
  expect(await use(theirs, "read_file", { sandbox, path: "/etc/passwd" })).toMatch(/^Error: App rivals has no machine/);

  const { id } = await place.client.createMachine("rivals", { name: "web", config: { image }, skip_launch: true });
  expect(await use(theirs, "kill", { sandbox: "web" })).toMatch(/^Error: Machine .* is not a sandbox/);
  expect((await place.client.getMachine("rivals", id)).state).toBe("created");
  expect(await use(theirs, "create_sandbox", { template: "none" })).toMatch(
    /^Error: There is no template 'none'.* base\.$/,
  );
  await use(mine, "kill", { sandbox });
  await place.client.destroyMachine("rivals", id);
  await Promise.all([mine.close(), theirs.close()]);
  await end();
});

let serving: ChildProcess | undefined;
afterAll(() => void serving?.kill());

/** `hibernaut mcp --http`, which has no token of its own. */
async function serveHttp(): Promise<{ url: URL; end(): Promise<void> }> {
  const words = [CLI, "mcp", "--http", "127.0.0.1:0", "--json"];
  const child = spawn(process.execPath, words, { env: environment(), stdio: ["ignore", "pipe", "inherit"] });
  serving = child;
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  const { url } = JSON.parse(line.toString()) as { url: string };
  const end = async () => {
    const ended = once(child, "exit");
    child.kill("SIGTERM");
    await ended;
  };
  return { url: new URL(url), end };
}
