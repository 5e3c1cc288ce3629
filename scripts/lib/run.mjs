/** Runs the setup's programs, keeps the end of their output for error messages, and ends them when we end. */
import { spawn } from "node:child_process";

/** An error that the user can do something about. Its message is shown without a stack. */
export class SetupError extends Error {
  /** @override */
  name = "SetupError";
}

/** Enough to include the reason of a failure, which programs print last. */
const TAIL_LINES = 15;
/** A program that ignores SIGTERM is killed after this. */
const GRACE_MS = 3000;

/** @type {Set<import("node:child_process").ChildProcess>} */
const children = new Set();
/** Set by the first signal. A program that ends after it has not failed. */
let ending = false;

/**
 * @typedef {object} RunOptions
 * @property {string} [cwd]
 * @property {NodeJS.ProcessEnv} [env]
 * @property {(line: string) => void} [onLine] Called with each line of output.
 * @property {string} [what] What to call the program in an error message, such as "apt-get update".
 * @property {string} [next] What the user can do if it fails; a sentence.
 */

/**
 * Runs a program without input and returns its standard output. Rejects with a SetupError that ends with the last lines
 * of the program's output.
 *
 * @param {string} program
 * @param {readonly string[]} args
 * @param {RunOptions} [options]
 * @returns {Promise<string>}
 */
export function run(program, args, { cwd, env = process.env, onLine, what = program, next = "" } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
    children.add(child);
    let stdout = "";
    /** @type {string[]} */
    const tail = [];
    child.stdout.setEncoding("utf8").on("data", (text) => {
      stdout += text;
    });
    for (const stream of [child.stdout, child.stderr]) {
      byLine(stream, (line) => {
        tail.push(line);
        if (tail.length > TAIL_LINES) tail.shift();
        onLine?.(line);
      });
    }
    child.on("error", (error) => {
      children.delete(child);
      reject(new SetupError(`Cannot start ${what}: ${error.message}`));
    });
    child.on("close", (code, signal) => {
      children.delete(child);
      if (ending) return;
      if (code === 0) resolve(stdout);
      else {
        const said = tail.map((line) => `\n  ${line}`).join("");
        reject(new SetupError(`${what} failed (${signal ?? `code ${code}`}).${said}${next && `\n${next}`}`));
      }
    });
  });
}

/**
 * Runs a program on this terminal, so that it can ask the user something. Returns whether it succeeded.
 *
 * @param {string} program
 * @param {readonly string[]} args
 * @returns {Promise<boolean>}
 */
export function ask(program, args) {
  return new Promise((resolve) => {
    // Its output goes to stderr, like everything that is not this command's result.
    const child = spawn(program, args, { stdio: ["inherit", 2, 2] });
    children.add(child);
    const end = (/** @type {boolean} */ good) => {
      children.delete(child);
      resolve(good);
    };
    child.on("error", () => end(false));
    child.on("close", (code) => end(code === 0));
  });
}

/**
 * Ends all running programs and then this process, with the exit code of an interrupted command.
 *
 * @param {NodeJS.Signals} signal
 */
export async function interrupted(signal) {
  ending = true;
  const ended = [...children].map((child) => new Promise((resolve) => child.once("close", resolve)));
  for (const child of children) child.kill("SIGTERM");
  const killer = setTimeout(() => {
    for (const child of children) child.kill("SIGKILL");
  }, GRACE_MS);
  // We cannot signal what sudo runs as root, but the terminal's Ctrl-C reaches it anyway.
  await Promise.race([Promise.all(ended), new Promise((resolve) => setTimeout(resolve, 2 * GRACE_MS))]);
  clearTimeout(killer);
  process.exit(signal === "SIGTERM" ? 143 : 130);
}

/**
 * @param {import("node:stream").Readable} stream
 * @param {(line: string) => void} onLine
 */
function byLine(stream, onLine) {
  let rest = "";
  stream.setEncoding("utf8").on("data", (text) => {
    const lines = (rest + text).split(/\r?\n|\r/);
    rest = lines.pop() ?? "";
    for (const line of lines) if (line.trim()) onLine(line);
  });
  stream.on("end", () => {
    if (rest.trim()) onLine(rest);
  });
}
