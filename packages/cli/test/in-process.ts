/**
 * The built CLI in the process of the tests: what it makes of words, environment and input does not need a process of its
 * own, which takes twenty times as long to start as most commands take.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { createRequire } from "node:module";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { guarded } from "../../../scripts/lib/test-home.mjs";

export interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

/** What a program has of its process. */
interface Own {
  readonly stdin: PassThrough;
  readonly stdout: PassThrough;
  readonly stderr: PassThrough;
  readonly env: NodeJS.ProcessEnv;
  readonly folder: string;
}

type Variables = Readonly<Record<string, string | undefined>>;

/** Variables that are read once for a whole process, and those that make the CLI change what the process trusts. */
const OF_A_PROCESS = /^(TMPDIR|TZ|NODE_.*|HIBERNAUT_API_CA|HIBERNAUT_API_CLIENT_.*)$/;

/** Whether what a program does with these variables would also reach the tests around it. */
export function needsProcess(environment: Variables): boolean {
  return Object.keys(environment).some((name) => OF_A_PROCESS.test(name));
}

const own = new AsyncLocalStorage<Own>();

/** Loaded by Node, as the program is: once for all files that run in this process. */
const load = createRequire(import.meta.url);
const BUILT = join(import.meta.dirname, "../dist/run.js");

/**
 * Runs the words of a command line for a directory. Files in the words have absolute paths, as the process is elsewhere.
 * The input stays open unless there is one, as in a terminal.
 */
export async function runInProcess(
  words: readonly string[],
  { folder, environment, input }: { folder: string; environment: Variables; input?: string | undefined },
): Promise<Ended> {
  shareProcess();
  const { run } = load(BUILT) as { run: (words: string[]) => Promise<number> };
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  if (input !== undefined) stdin.end(input);
  const said = Promise.all([text(stdout), text(stderr)]);
  const env = atOwnHome(environment, folder);
  const code = await own.run({ stdin, stdout, stderr, env, folder }, () => run([...words]));
  stdin.destroy();
  stdout.end();
  stderr.end();
  const [out, err] = await said;
  return { code, stdout: out, stderr: err };
}

/** As programs get it from the guard of the tests. */
function atOwnHome(environment: Variables, home: string): NodeJS.ProcessEnv {
  const pairs = Object.entries(environment).flatMap(([name, value]) => (value === undefined ? [] : `${name}=${value}`));
  return Object.fromEntries(
    guarded(pairs, home).map((pair) => [pair.split("=", 1)[0], pair.slice(pair.indexOf("=") + 1)]),
  );
}

const SHARED = Symbol.for("hibernaut.cli-in-process");

/**
 * Lets code that a command calls find its streams, environment and directory where a program finds them, and everything
 * else those of the process. Commands may run at the same time, and their platform is in this process too.
 */
function shareProcess(): void {
  if (SHARED in process) return;
  Object.defineProperty(process, SHARED, { value: true });
  for (const name of ["stdin", "stdout", "stderr", "env"] as const) {
    const { get, value } = Object.getOwnPropertyDescriptor(process, name) ?? {};
    let replaced: unknown;
    Object.defineProperty(process, name, {
      configurable: true,
      get: () => own.getStore()?.[name] ?? replaced ?? get?.call(process) ?? value,
      set: (other) => {
        replaced = other;
      },
    });
  }
  const cwd = process.cwd.bind(process);
  process.cwd = () => own.getStore()?.folder ?? cwd();
}
