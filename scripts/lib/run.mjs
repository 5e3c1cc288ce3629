/** Runs the programs of the set-up, remembers what they said last, and ends them with us. */
import { spawn } from "node:child_process";

/** A fault that people can do something about: its message is shown alone, without a stack. */
export class SetupError extends Error {
  /** @override */
  name = "SetupError";
}

/** Enough for the reason of a failure, which is at the end. */
const TAIL_LINES = 15;
/** A program that ignores a polite request to end is killed after this. */
const GRACE_MS = 3000;

/** @type {Set<import("node:child_process").ChildProcess>} */
const children = new Set();
/** Set by the first signal: what ends from then on has not failed. */
let ending = false;

/**
 * @typedef {object} RunOptions
 * @property {string} [cwd]
 * @property {NodeJS.ProcessEnv} [env]
 * @property {(line: string) => void} [onLine] Told every line of output as it comes.
 * @property {string} [what] What the program does, for the message when it fails: "apt-get update".
 * @property {string} [next] What to do when it fails; a sentence.
 */

/**
 * Runs a program without input and returns its standard output. Rejects with a SetupError that ends
 * with the last lines the program wrote.
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
      reject(new SetupError(`${what} could not be started: ${error.message}`));
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
 * Runs a program on this terminal, so that it can ask; true when it succeeded.
 *
 * @param {string} program
 * @param {readonly string[]} args
 * @returns {Promise<boolean>}
 */
export function ask(program, args) {
  return new Promise((resolve) => {
    // Its answers go to stderr, like everything that is not this command's result.
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
 * Ends all running programs and then this process, with the code of an interrupted command.
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
  // What root runs for us cannot be killed by us; the terminal's Ctrl-C reaches it all the same.
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
