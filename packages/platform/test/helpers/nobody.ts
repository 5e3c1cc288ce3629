/** Code of ours with the rights of a user who owns nothing, wherever the sources are. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** Debian's user `nobody`. */
export const NOBODY = 65534;

export interface NobodyOptions {
  /**
   * Files to import while the rights are still there: the repository may be in a directory that only root can enter. The
   * code has them as `modules`. What they load later must be among them, too.
   */
  imports: readonly string[];
  /** The body of an async function; what it returns is the answer. */
  code: string;
  cwd: string;
  env?: NodeJS.ProcessEnv;
}

/** Runs code in a process without rights: as {@link NOBODY} when the tests run as root, else as their user. */
export async function runAsNobody<T>({ imports, code, cwd, env = {} }: NobodyOptions): Promise<T> {
  const script = `
    const modules = await Promise.all(${JSON.stringify(imports)}.map((file) => import(file)));
    if (process.getuid() === 0) {
      process.setgroups([]);
      process.setgid(${NOBODY});
      process.setuid(${NOBODY});
    }
    const answer = await (async () => { ${code} })();
    console.log(JSON.stringify(answer));`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script], {
    cwd,
    env: { ...process.env, HOME: cwd, ...env },
  });
  return JSON.parse(stdout) as T;
}
