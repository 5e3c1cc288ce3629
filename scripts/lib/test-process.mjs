/** Runs the programs of a test run. Plain JavaScript for Node 18 and later. */
import { spawn } from "node:child_process";

/**
 * Runs a program, shows its output, and resolves to whether it succeeded. When the time is up, the program and
 * everything it started are killed.
 *
 * @param {string} command @param {string[]} args
 * @param {{cwd: string, env: NodeJS.ProcessEnv, deadlineMs: number, onInterrupt: () => void}} options `onInterrupt` is
 *   called before this process ends because of SIGINT or SIGTERM.
 * @returns {Promise<boolean>}
 */
export function runProgram(command, args, { cwd, env, deadlineMs, onInterrupt }) {
  return new Promise((done) => {
    // In its own process group, so that killing it leaves no worker behind.
    const child = spawn(command, args, { cwd, env, stdio: ["ignore", "inherit", "inherit"], detached: true });
    const end = () => {
      try {
        process.kill(-(child.pid ?? 0), "SIGKILL");
      } catch {
        // already gone
      }
    };
    const late = setTimeout(() => {
      console.log(`killed after ${deadlineMs / 60_000} minutes`);
      end();
    }, deadlineMs);
    const interrupted = () => {
      end();
      onInterrupt();
      process.exit(130);
    };
    process.once("SIGINT", interrupted).once("SIGTERM", interrupted);
    /** @param {boolean} ok */
    const finish = (ok) => {
      clearTimeout(late);
      process.off("SIGINT", interrupted).off("SIGTERM", interrupted);
      done(ok);
    };
    child.on("error", (error) => {
      console.log(error.message);
      finish(false);
    });
    child.on("close", (code) => finish(code === 0));
  });
}
