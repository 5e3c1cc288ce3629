/** The built CLI, in the process of the tests or as a child, against the real API and platform on a fake host. */
import { type ChildProcessWithoutNullStreams, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { startApi, type TestApi } from "../../api/test/helpers.ts";
import { type Ended, needsProcess, runInProcess } from "./in-process.ts";

/** The program that the tests start. */
export const PROGRAM = join(import.meta.dirname, "../bin/hibernaut.js");

/** The proxy's addresses with the default settings. */
const PROXY = {
  url: () => "http://127.0.0.1:8080",
  urlsOf: (app: string) => [`http://${app}.localhost:8080/`],
};

/** For machines whose services do not matter: one without any gets 2 s more to show whether its app is broken. */
export const SERVICE = "--port 8080";

/** As someone types them, or one by one where a word has a space in it. */
type Words = string | readonly string[];
type Variables = Readonly<Record<string, string | undefined>>;

interface Running {
  child: ChildProcessWithoutNullStreams;
  ended: Promise<Ended>;
}

type Changes = Parameters<typeof startApi>[0];

export interface TestCli {
  readonly server: TestApi;
  /** Runs the words, in the process of the tests unless the variables are those of a whole process. */
  hibernaut(words: Words, environment?: Variables, input?: string): Promise<Ended>;
  /** The same in a process, which is there to talk to. */
  begin(words: Words, environment?: Variables): Running;
  /** On a terminal, as `stty` sets it: `rows 6 cols 60`. Standard output is what the terminal shows. */
  onTerminal(words: string, stty?: string, environment?: Variables): Running;
  /** Runs with --json, and fails unless there is exactly one document. */
  // oxlint-disable-next-line typescript/no-explicit-any -- what a test expects of it differs from test to test
  json(words: Words, environment?: Variables): Promise<{ code: number; document: any }>;
  /** Starts a machine in the app `shop`, and returns its id. */
  run(options?: string): Promise<string>;
  /** Deploys an app file. */
  deploy(appFile: string, options?: string, environment?: Variables): Promise<Ended>;
  close(): Promise<void>;
}

/** A platform that has an app `shop`, for all tests of a file or group. `changes` replace parts of it. */
export function useCli(changes?: Changes): TestCli {
  return between(beforeAll, afterAll, changes);
}

/** The same, and a new one for each test. */
export function freshCli(changes?: Changes): TestCli {
  return between(beforeEach, afterEach, changes);
}

type Hook = (work: () => Promise<void>) => void;

function between(before: Hook, after: Hook, changes?: Changes): TestCli {
  let cli: TestCli;
  before(async () => {
    cli = await startCli(changes);
  });
  after(() => cli.close());
  return {
    get server() {
      return cli.server;
    },
    hibernaut: (...given) => cli.hibernaut(...given),
    begin: (...given) => cli.begin(...given),
    onTerminal: (...given) => cli.onTerminal(...given),
    json: (...given) => cli.json(...given),
    run: (...given) => cli.run(...given),
    deploy: (...given) => cli.deploy(...given),
    close: () => cli.close(),
  };
}

/** The same, for the caller to close. */
export async function startCli(changes: Changes = {}): Promise<TestCli> {
  const server = await startApi({ proxy: PROXY, ...changes });
  server.platform.apps.create("shop");
  // Empty, so that no file of the user's is in the way.
  const folder = mkdtempSync(join(tmpdir(), "hibernaut-cli-"));
  const place = { folder, url: server.url, token: server.token };

  const begin = (words: Words, environment: Variables = {}) => runCli(words, place, environment);
  const hibernaut = (words: Words, environment: Variables = {}, input?: string) => {
    if (!needsProcess(environment))
      return runInProcess(wordsOf(words), {
        folder,
        environment: { ...variables(place), ...environment },
        input,
      });
    const { child, ended } = begin(words, environment);
    if (input !== undefined) child.stdin.end(input);
    return ended;
  };

  const json = async (words: Words, environment?: Variables) => {
    const { code, stdout } = await hibernaut([...wordsOf(words), "--json"], environment);
    return { code, document: JSON.parse(stdout) };
  };

  return {
    server,
    hibernaut,
    begin,
    json,
    onTerminal(words, stty = "cols 300 rows 50", environment = {}) {
      const command = `stty ${stty}; exec "${process.execPath}" "${PROGRAM}" ${words}`;
      // util-linux' own way to give a program a terminal.
      const env = { ...variables(place), TERM: "xterm", ...environment };
      const child = spawn("script", ["-qefc", command, "/dev/null"], { env });
      const all = Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
      return { child, ended: all.then(([stdout, stderr, [code]]) => ({ code: code as number, stdout, stderr })) };
    },
    async run(options = "") {
      const { code, document } = await json(`machine run app:1 ${SERVICE} ${options}`);
      if (code !== 0) throw new Error(`no machine was started: ${document.message}`);
      return document.id;
    },
    async deploy(appFile, options = "", environment = {}) {
      const file = join(folder, "hibernaut.toml");
      writeFileSync(file, appFile);
      return hibernaut(`deploy --config ${file} ${options}`, environment);
    },
    async close() {
      await server.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Where a command runs, and the platform that it talks to. */
interface CliPlace {
  folder: string;
  url: string;
  token: string;
}

/** Runs the built CLI for the app `shop`. */
export function runCli(words: Words, place: CliPlace, environment: Variables = {}): Running {
  const { promise: ended, resolve } = Promise.withResolvers<Ended>();
  const options = { env: { ...variables(place), ...environment }, cwd: place.folder, timeout: 30_000 };
  const child = execFile(process.execPath, [PROGRAM, ...wordsOf(words)], options, (error, stdout, stderr) => {
    const code = error === null ? 0 : typeof error.code === "number" ? error.code : -1;
    resolve({ code, stdout, stderr });
  });
  return { child: child as ChildProcessWithoutNullStreams, ended };
}

function variables({ folder, url, token }: CliPlace): Variables {
  return {
    PATH: process.env.PATH,
    HOME: folder,
    // Whatever the zone of this host is.
    TZ: "UTC",
    HIBERNAUT_API_URL: url,
    HIBERNAUT_API_TOKEN: token,
    HIBERNAUT_APP: "shop",
  };
}

function wordsOf(words: Words): readonly string[] {
  return typeof words === "string" ? words.split(" ").filter(Boolean) : words;
}
