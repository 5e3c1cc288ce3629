/** The built command line as a child process, against a real API over the double. */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Resources } from "../../platform/src/machines/open.ts";
import type { Volumes } from "../../platform/src/volumes/index.ts";
import { startApi, type TestApi } from "../../platform/test/api/helpers.ts";
import { newWorld, startPlatform, type World } from "../../platform/test/helpers/fake-world.ts";

const ROOT = join(import.meta.dirname, "../../..");
const PROGRAM = join(ROOT, "packages/cli/bin/hibernaut.js");

/** What a platform with the usual settings says of its proxy. */
const PROXY = {
  url: () => "http://127.0.0.1:8080",
  urlsOf: (app: string) => [`http://${app}.localhost:8080/`],
};

interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

export interface TestCli {
  server: TestApi;
  hibernaut(args: string[], environment?: Record<string, string>): Promise<Ended>;
  /** Runs with --json, and fails unless there is exactly one document. */
  // oxlint-disable-next-line typescript/no-explicit-any -- what a test expects of it differs from test to test
  json(args: string[], environment?: Record<string, string>): Promise<{ code: number; document: any }>;
  close(): Promise<void>;
}

/** Builds the command line when it is not current, and starts an API that has an app `shop`. */
export async function startCli(): Promise<TestCli> {
  await build();
  const server = await startApi({ proxy: PROXY });
  server.machines.createApp("shop");
  return cliOf(server);
}

/** The command line with the real machines and volumes behind the API; only the hypervisor is a double. */
export interface WorldCli extends TestCli {
  world: World;
  platform: Resources;
  volumes: Volumes;
}

/** The same with real machines and volumes behind the API, on a fake host. */
export async function startWorldCli(): Promise<WorldCli> {
  await build();
  const world = await newWorld();
  let volumes: Volumes | undefined;
  const platform = await startPlatform(world, {
    wrap: (deps) => {
      volumes = deps.volumes as Volumes;
      return deps;
    },
  });
  if (volumes === undefined) throw new Error("the platform has no volumes");
  platform.apps.create("shop");
  const cli = cliOf(await startApi({ ...platform, volumes, proxy: PROXY }));
  return {
    ...cli,
    world,
    platform,
    volumes,
    async close() {
      await cli.close();
      await platform.close();
      await world.dispose();
    },
  };
}

async function build(): Promise<void> {
  await promisify(execFile)(process.execPath, [join(ROOT, "scripts/build.mjs")]);
}

function cliOf(server: TestApi): TestCli {
  // Empty, so that no file of the user's is in the way.
  const folder = mkdtempSync(join(tmpdir(), "hibernaut-cli-"));

  function hibernaut(args: string[], environment: Record<string, string> = {}): Promise<Ended> {
    const env = {
      PATH: process.env.PATH,
      HOME: folder,
      HIBERNAUT_API_URL: server.url,
      HIBERNAUT_API_TOKEN: server.token,
      HIBERNAUT_APP: "shop",
      ...environment,
    };
    return new Promise((resolve) => {
      execFile(process.execPath, [PROGRAM, ...args], { env, cwd: folder, timeout: 30_000 }, (error, stdout, stderr) => {
        const code = error === null ? 0 : typeof error.code === "number" ? error.code : -1;
        resolve({ code, stdout, stderr });
      });
    });
  }

  return {
    server,
    hibernaut,
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
