/** The built CLI as a child process, against the real API and platform on a fake host. */
import { type ChildProcess, execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startApi, type TestApi } from "../../api/test/helpers.ts";

const ROOT = join(import.meta.dirname, "../../..");
const PROGRAM = join(ROOT, "packages/cli/bin/hibernaut.js");

/** The proxy's addresses with the default settings. */
const PROXY = {
  url: () => "http://127.0.0.1:8080",
  urlsOf: (app: string) => [`http://${app}.localhost:8080/`],
};

/** For machines whose services do not matter: one without any gets 2 s more to show whether its app is broken. */
export const SERVICE = ["--port", "8080"];

interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

export interface TestCli {
  server: TestApi;
  hibernaut(args: string[], environment?: Record<string, string>): Promise<Ended>;
  /** The same, with the process itself. */
  begin(args: string[], environment?: Record<string, string>): { child: ChildProcess; ended: Promise<Ended> };
  /** Runs with --json, and fails unless there is exactly one document. */
  // oxlint-disable-next-line typescript/no-explicit-any -- what a test expects of it differs from test to test
  json(args: string[], environment?: Record<string, string>): Promise<{ code: number; document: any }>;
  close(): Promise<void>;
}

/** Starts a platform that has an app `shop`. `changes` replace parts of it. */
export async function startCli(changes: Parameters<typeof startApi>[0] = {}): Promise<TestCli> {
  const server = await startApi({ proxy: PROXY, ...changes });
  server.platform.apps.create("shop");
  // Empty, so that no file of the user's is in the way.
  const folder = mkdtempSync(join(tmpdir(), "hibernaut-cli-"));

  const begin = (args: string[], environment: Record<string, string> = {}) =>
    runCli(args, { folder, url: server.url, token: server.token }, environment);
  const hibernaut = (args: string[], environment?: Record<string, string>) => begin(args, environment).ended;

  return {
    server,
    hibernaut,
    begin,
    async json(args, environment) {
      const { code, stdout } = await hibernaut([...args, "--json"], environment);
      return { code, document: JSON.parse(stdout) };
    },
    async close() {
      await server.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Runs the built CLI for the app `shop`, from a directory and against a platform. */
export function runCli(
  args: string[],
  { folder, url, token }: { folder: string; url: string; token: string },
  environment: Record<string, string> = {},
): { child: ChildProcess; ended: Promise<Ended> } {
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    // Whatever the zone of this host is.
    TZ: "UTC",
    HIBERNAUT_API_URL: url,
    HIBERNAUT_API_TOKEN: token,
    HIBERNAUT_APP: "shop",
    ...environment,
  };
  const { promise: ended, resolve } = Promise.withResolvers<Ended>();
  const options = { env, cwd: folder, timeout: 30_000 };
  const child = execFile(process.execPath, [PROGRAM, ...args], options, (error, stdout, stderr) => {
    const code = error === null ? 0 : typeof error.code === "number" ? error.code : -1;
    resolve({ code, stdout, stderr });
  });
  return { child, ended };
}
