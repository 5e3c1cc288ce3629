/** Programs that a run of the tests starts. Plain JavaScript for Node 18 and later. */
import { spawn } from "node:child_process";

/**
 * Runs a program with its output shown, and resolves to whether it succeeded. It is ended, with everything it
 * started, when the time is up.
 *
 * @param {string} command @param {string[]} args
 * @param {{cwd: string, env: NodeJS.ProcessEnv, deadlineMs: number, onInterrupt: () => void}} options `onInterrupt` is
 *   called before this process ends because of SIGINT or SIGTERM.
 * @returns {Promise<boolean>}
 */
export function runProgram(command, args, { cwd, env, deadlineMs, onInterrupt }) {
  return new Promise((done) => {
    // A process group of its own, so that a run that must be ended leaves no worker behind.
    const child = spawn(command, args, { cwd, env, stdio: ["ignore", "inherit", "inherit"], detached: true });
    const end = () => {
      try {
        process.kill(-(child.pid ?? 0), "SIGKILL");
      } catch {
        // it has ended by itself
      }
    };
    const late = setTimeout(() => {
      console.log(`ended after ${deadlineMs / 60_000} minutes`);
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
