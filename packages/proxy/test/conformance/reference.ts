/** nginx and HAProxy as they are, in front of the same app: what the engine's answers are measured by. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../../../../scripts/lib/free-port.mjs";
import { findTool, toolEnvironment } from "../../../../scripts/lib/test-tools.mjs";
import type { ReferenceName } from "./case.ts";

const START_LIMIT_MS = 10_000;
/** Another process may take a free port before the program does. */
const TRIES = 3;

export interface Reference {
  readonly port: number;
  /** Ends the program and removes its directory. */
  stop(): Promise<void>;
}

/** A proxy to compare with. */
export interface Kind {
  program: string;
  config(folder: string, port: number, appPort: number): string;
  args(folder: string, file: string): string[];
}

const KINDS: Record<ReferenceName, Kind> = {
  nginx: {
    program: findTool("nginx"),
    config: nginxConfig,
    args: (folder, file) => ["-p", folder, "-e", "stderr", "-c", file],
  },
  HAProxy: {
    program: findTool("haproxy"),
    config: haproxyConfig,
    args: (_folder, file) => ["-db", "-f", file],
  },
};

/** Starts HAProxy with a configuration of one's own, for the port that it is given. */
export function startHaproxy(config: (port: number) => string): Promise<Reference> {
  return startProgram({ ...KINDS.HAProxy, config: (_folder, port) => config(port) }, 0);
}

/** Starts the proxy in front of the app. */
export function startReference(name: ReferenceName, appPort: number): Promise<Reference> {
  return startProgram(KINDS[name], appPort);
}

/** Starts the program on a port of its own. A process that dies before `stop` takes it along. */
export async function startProgram({ program, config, args }: Kind, appPort: number): Promise<Reference> {
  const folder = mkdtempSync(join(tmpdir(), "hibernaut-reference-"));
  let child: ChildProcess | undefined;
  const clean = () => {
    child?.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  };
  process.once("exit", clean);
  const stop = async () => {
    if (child !== undefined) await end(child);
    process.removeListener("exit", clean);
    clean();
  };
  const file = join(folder, "config");
  const log = join(folder, "log");
  try {
    for (let tries = 1; ; tries += 1) {
      const port = await freePort();
      writeFileSync(file, config(folder, port, appPort));
      const output = openSync(log, "a");
      child = spawn(program, args(folder, file), { stdio: ["ignore", output, output], env: toolEnvironment() });
      closeSync(output);
      const problem = await untilReady(child, port);
      if (problem === undefined) return { port, stop };
      if (tries === TRIES || child.pid === undefined) throw new Error(complaint(program, problem, log));
      await end(child);
    }
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Waits until the port answers. Returns why it never will. */
async function untilReady(child: ChildProcess, port: number): Promise<string | undefined> {
  let problem: string | undefined;
  child.once("error", (error) => (problem = error.message));
  child.once("exit", (code, signal) => (problem = `it ended (${code ?? signal}).`));
  const deadline = performance.now() + START_LIMIT_MS;
  while (performance.now() < deadline) {
    const answered = await answers(port);
    // Another program may answer, if this one found its port taken.
    if (problem !== undefined || answered) return problem;
    await sleep(10);
  }
  return `its port did not answer in ${START_LIMIT_MS} ms.`;
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port });
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}

function complaint(program: string, problem: string, log: string): string {
  const said = readFileSync(log, "utf8").trim();
  return `${basename(program)}, with which the engine is compared, does not start: ${problem} ${said}
If it is missing, \`npm run setup -- --tests\` gets it.`;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}

/** As a careful operator has it in front of an app that streams. */
function nginxConfig(folder: string, port: number, appPort: number): string {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((what) => `${what}_temp_path ${folder}/${what};`)
    .join(" ");
  return `
daemon off;
master_process off;
pid ${folder}/pid;
events { worker_connections 256; }
http {
  access_log off;
  ${temporary}
  map $http_upgrade $connection_upgrade { default upgrade; "" ""; }
  upstream app { server 127.0.0.1:${appPort}; keepalive 8; }
  server {
    listen 127.0.0.1:${port};
    client_max_body_size 0;
    location / {
      proxy_pass http://app;
      proxy_http_version 1.1;
      proxy_set_header Host $host;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $connection_upgrade;
      proxy_buffering off;
      proxy_request_buffering off;
    }
  }
}
`;
}

function haproxyConfig(_folder: string, port: number, appPort: number): string {
  return `
global
  nbthread 1
  maxconn 256
defaults
  mode http
  option http-no-delay
  timeout connect 5s
  timeout client 20s
  timeout server 20s
  timeout http-request 20s
  timeout tunnel 20s
frontend clients
  bind 127.0.0.1:${port}
  default_backend app
backend app
  server app 127.0.0.1:${appPort}
`;
}
