/**
 * A file system that answers calls about chosen paths with an error. A test file brings it in with both lines:
 *
 *   vi.mock(import("node:fs"), async (original) => (await import("../helpers/faulty-fs.ts")).faultySync(original));
 *   vi.mock(import("node:fs/promises"), async (original) => (await import("../helpers/faulty-fs.ts")).faulty(original));
 */

/** The fault that is in the way now: what the calls that name such a path end with. */
let fault: { code: string; paths: RegExp } | undefined;

/** Calls about these paths end with the error, until {@link endFault}. */
export function beginFault(code: string, paths: RegExp): void {
  fault = { code, paths };
}

export function endFault(): void {
  fault = undefined;
}

function failIfFaulty(path: unknown, call: string): void {
  if (fault === undefined || typeof path !== "string" || !fault.paths.test(path)) return;
  const { code } = fault;
  throw Object.assign(new Error(`${code}: of the test, ${call} '${path}'`), { code, syscall: call, path });
}

/** What asks about files, and reads them. */
const ASKING = ["access", "stat", "lstat", "open", "readFile", "readdir", "realpath"] as const;

type Module = Record<string, unknown>;

export async function faulty<T extends object>(original: () => Promise<T>): Promise<T> {
  const real = (await original()) as Module;
  const replaced = ASKING.map((name) => [
    name,
    async (...args: unknown[]) => {
      failIfFaulty(args[0], name);
      return (real[name] as (...given: unknown[]) => unknown)(...args);
    },
  ]);
  return { ...real, ...Object.fromEntries(replaced) } as T;
}

export async function faultySync<T extends object>(original: () => Promise<T>): Promise<T> {
  const real = (await original()) as Module;
  const replaced = ASKING.map((name) => [
    `${name}Sync`,
    (...args: unknown[]) => {
      failIfFaulty(args[0], name);
      return (real[`${name}Sync`] as (...given: unknown[]) => unknown)(...args);
    },
  ]);
  // As the real one: what cannot be asked about is not there, for this function.
  const existsSync = (path: unknown) => {
    try {
      failIfFaulty(path, "access");
      return (real["existsSync"] as (given: unknown) => boolean)(path);
    } catch {
      return false;
    }
  };
  return { ...real, ...Object.fromEntries(replaced), existsSync } as T;
}
