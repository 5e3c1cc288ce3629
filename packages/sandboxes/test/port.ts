/** The port of sandboxes on a free port, over a platform on a fake host. */
import { channel } from "node:diagnostics_channel";
import { once } from "node:events";
import { Agent, request as httpRequest, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { DescMessage } from "@bufbuild/protobuf";
import { createConnectRouter } from "@connectrpc/connect";
import type { ConnectionBudget } from "@hibernaut/connections";
import type { Scope } from "@hibernaut/domain/scopes";
import { openVault } from "@hibernaut/secrets/open";
import { readSettings } from "@hibernaut/settings";
import type { FastifyInstance } from "fastify";
import pino from "pino";
import { createToken, verifyToken } from "../../api/src/tokens.ts";
import type { Schema } from "../../api/test/wild-values.ts";
import type { FakeAnswer, FakeCommand } from "../../hypervisor/src/fake/guest.ts";
import { KeptCommands, openSandboxes } from "../../platform/src/sandboxes.ts";
import { budgetOf } from "../../platform/test/helpers/connections.ts";
import { newWorld, startPlatform } from "../../platform/test/helpers/fake-world.ts";
import { registerServices } from "../src/inside/services.ts";
import { ANSWERS } from "../src/inside/transfer.ts";
import * as scripts from "../src/volume/scripts.ts";

export const DOMAIN = "sbx.test";

export interface Reply {
  status: number;
  headers: IncomingMessage["headers"];
  body: string;
}

export interface Asked {
  headers?: Record<string, string | string[]>;
  body?: string | Buffer;
  /** Read no more of the reply than its first bytes: it has no end. */
  endless?: boolean;
  /** On a connection of its own. */
  alone?: boolean;
}

/** What a route of the control API accepts. */
export interface RouteSchema {
  body?: Schema;
  querystring?: Schema;
}

export type Port = Awaited<ReturnType<typeof openPort>>;

/** What is in the files of a fake guest. */
export const contentsOf = (machine: string) => `contents of ${machine}`;

let pids = 100;

/** What the scripts for volumes print, for a volume in which everything is there. */
function shellSays([, , script, , root = "", path = ""]: readonly string[]): string {
  const at = path === "/" ? root : `${root}${path}`;
  const entry = ["f", "1", "644", "1000", "1000", "0.5", "0.5", "0.5", at, ""].map((field) => `${field}\0`).join("");
  switch (script) {
    case scripts.STAT:
    case scripts.CHANGE:
      return entry;
    case scripts.LIST:
      return `${at}\0${entry.replaceAll(at, `${at}/b`)}`;
    case scripts.FIND_FILE:
    case scripts.MAY_WRITE:
    case scripts.MAY_MAKE:
    case scripts.MAY_REMOVE:
      return at;
    default:
      return "";
  }
}

/** Everything works. `stay` is a program that ends when it is killed; the others end at once. */
function answerOf(machine: string, { task, args }: FakeCommand, says: string): FakeAnswer {
  const fields = ["file", "1", "644", "user", "user", "0", `/home/user/of-${machine}`, "", "0"];
  const entry = Buffer.from(fields.map((field) => `${field}\0`).join(""));
  switch (task) {
    case undefined:
      if (args[0] === "/bin/sh") return { output: Buffer.from(shellSays(args)), ends: "at once" };
      return { pid: pids++, ends: args[0] === "stay" ? "when killed" : "at once" };
    case "fs-read":
      return { output: Buffer.from(contentsOf(machine)), ends: "at once" };
    case "fs-write":
      return { output: entry, ends: "with its input" };
    case "fs-watch":
      return { output: Buffer.from("start\0"), ends: "when killed" };
    case "connect":
      return { output: Buffer.from(says, "latin1"), ends: "when killed" };
    default:
      return { output: entry, ends: "at once" };
  }
}

/** `limits`: of connections and requests. */
export async function openPort(limits: Partial<ConnectionBudget["limits"]> = {}) {
  const world = await newWorld();
  /** What guests were asked to do. */
  const done: { machine: string; task: string | undefined }[] = [];
  world.host.answer = (machine, command) => {
    done.push({ machine, task: command.task });
    return answerOf(machine, command, listener.says);
  };
  /** What listens at every port of a sandbox answers this, whatever it is asked. */
  const listener = { says: "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nport" };
  const platform = await startPlatform(world);
  const logged: Record<string, unknown>[] = [];
  const log = pino({ level: "warn" }, { write: (line) => void logged.push(JSON.parse(line) as never) });
  const schemas = new Map<string, RouteSchema>();
  // Fastify says so of each server that it makes.
  const onServer = (message: unknown) =>
    (message as { fastify: FastifyInstance }).fastify.addHook("onRoute", ({ method, url, schema }) => {
      for (const one of [method].flat()) schemas.set(`${one} ${url}`, (schema ?? {}) as RouteSchema);
    });
  channel("fastify.initialization").subscribe(onServer);
  const settings = readSettings({
    ...{ HIBERNAUT_DATA_DIR: world.folder, XDG_CONFIG_HOME: world.folder },
    ...{ HIBERNAUT_SANDBOX_LISTEN: "127.0.0.1:0", HIBERNAUT_SANDBOX_DOMAIN: DOMAIN },
  });
  const opened = await openSandboxes(settings, {
    ...{
      resources: platform,
      builds: world.store.builds,
      volumes: platform.volumes,
      connections: budgetOf(limits),
      kept: new KeptCommands(),
      log,
    },
    verify: (key) => verifyToken(world.store.tokens, key),
    secret: () => Buffer.alloc(32, 1),
    vault: openVault({ store: world.store.secrets, keyFile: join(world.folder, "secrets.key") }),
    egressAuthority: async () => "",
  });
  channel("fastify.initialization").unsubscribe(onServer);
  if (opened === undefined) throw new Error("the port did not open");
  const { port } = new URL(opened.url);
  const agent = new Agent({ keepAlive: true, maxSockets: 16 });
  return {
    ...{ world, platform, logged, done, listener, port: Number(port) },
    /** Of the control API, as the server has them. */
    routes: [...schemas.keys()],
    schemas,
    key: (scopes: Scope[], apps: string[] | null) =>
      createToken(world.store.tokens, "test", { scopes, apps, e2b: true }).token,
    /** Sends a request as it is: nothing of the path is put in order before. */
    async ask(route: string, asked: Asked = {}): Promise<Reply> {
      const { headers = {}, body, endless = false, alone = false } = asked;
      const at = route.indexOf(" ");
      const [method, path] = [route.slice(0, at), route.slice(at + 1)];
      const all = { ...(body !== undefined && { "content-length": String(Buffer.byteLength(body)) }), ...headers };
      const target = { host: "127.0.0.1", port, method, path, agent: !alone && agent, setHost: !("host" in headers) };
      const request = httpRequest({ ...target, headers: all });
      request.end(body);
      const [response] = (await once(request, "response").catch((error: unknown) => [error])) as [IncomingMessage];
      // A connection that rests may be closed at any time.
      if (response instanceof Error && request.reusedSocket) return this.ask(route, { ...asked, alone: true });
      if (response instanceof Error) throw response;
      // What is left of a body that the port does not read.
      request.on("error", () => {});
      const { statusCode: status = 0 } = response;
      if (!endless || status !== 200) return { status, headers: response.headers, body: await text(response) };
      const [first] = (await once(response, "data")) as [Buffer];
      request.destroy();
      return { status, headers: response.headers, body: first.toString() };
    },
    async close() {
      agent.destroy();
      await opened.close();
      await platform.close();
      await world.dispose();
    },
  };
}

/** Of the services inside sandboxes: where each method is, whether it streams, and what it is sent. */
export function methods(): { path: string; kind: string; input: DescMessage }[] {
  const router = createConnectRouter();
  registerServices(router, () => {
    throw new Error("nobody asks");
  });
  return router.handlers.map(({ requestPath, method }) => ({
    path: requestPath,
    kind: method.methodKind,
    input: method.input,
  }));
}

/** What is answered inside sandboxes otherwise. */
export const plainRoutes = (): string[] => Object.keys(ANSWERS);

/** Messages of a stream, each in its envelope. */
export function enveloped(...messages: unknown[]): Buffer {
  return Buffer.concat(
    messages.map((message) => {
      const bytes = Buffer.from(JSON.stringify(message));
      const head = Buffer.alloc(5);
      head.writeUInt32BE(bytes.length, 1);
      return Buffer.concat([head, bytes]);
    }),
  );
}
