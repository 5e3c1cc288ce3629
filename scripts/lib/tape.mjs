/**
 * The README's tour as a recording: which commands it has, what they print on a real terminal, and what of that may
 * differ from run to run. Only `record` does anything; the rest is pure.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { ROOT } from "./node.mjs";

/** Where the recording is, relative to the repository. */
export const TAPE = "docs/tour.txt";

/** The README's own addresses, which the recording has whatever the platform's are. */
const README_PROXY = "localhost:8080";
const README_ROOT = "/srv/hibernaut/";

/** Wide enough that no table of the tour is shortened. */
const WINDOW = "stty cols 140 rows 100";

/** A command, and the lines that it printed. @typedef {{ command: string, output: string[] }} Entry */

/**
 * The commands that the tour by hand has you type, once the platform runs.
 *
 * @param {string} readme
 * @returns {string[]}
 */
export function tourOf(readme) {
  const [, tour = ""] =
    /^In another terminal, in the same directory,([^]*?)^For an app of your own,/m.exec(readme) ?? [];
  return [...tour.matchAll(/^ {4}(\S.*)$/gm)].map(([, command = ""]) => command);
}

/**
 * Types the commands into a shell on a terminal, and returns what it showed. Rejects if the shell fails.
 *
 * @param {readonly string[]} commands
 * @param {{ proxyUrl: string, env: NodeJS.ProcessEnv }} platform
 * @returns {Promise<Entry[]>}
 */
export async function record(commands, { proxyUrl, env }) {
  const proxy = `localhost:${new URL(proxyUrl).port}`;
  const child = spawn("script", ["-qefc", `${WINDOW}; exec sh -c "$TOUR"`, "/dev/null"], {
    cwd: ROOT,
    env: {
      ...env,
      PATH: `${join(ROOT, "node_modules/.bin")}:${env.PATH}`,
      ...{
        TOUR: shellScript(commands.map((command) => command.replaceAll(README_PROXY, proxy))),
        TZ: "UTC",
        TERM: "xterm",
        NO_COLOR: "1",
        HIBERNAUT_PAGER: "cat",
      },
    },
    stdio: ["pipe", "pipe", "inherit"],
  });
  let raw = "";
  let asked = 0;
  child.stdout.setEncoding("utf8").on("data", (text) => {
    raw += text;
    // `apps destroy` lists what it will destroy, and asks.
    const questions = raw.split("[y/N] ").length - 1;
    if (questions > asked) child.stdin.write("y\n");
    asked = questions;
  });
  const [code] = await once(child, "close");
  const entries = entriesOf(raw, commands, { proxy, root: ROOT });
  if (code !== 0) throw new Error(`the tour ended with ${code}:\n${tapeText(entries)}`);
  return entries;
}

/** Separates the commands in the output: no program prints this character. */
const MARK = "\u001e";
/** What the tour sleeps for, so that a busy host may take longer. */
const ASLEEP = "hibernaut machine wait --state suspended > /dev/null";

/**
 * @param {readonly string[]} commands
 * @returns {string}
 */
function shellScript(commands) {
  const woken = commands.findIndex((command) => command.startsWith("curl -i"));
  const lines = commands.flatMap((command, index) => [
    `printf '${MARK}'`,
    // Reading the rest must not take so long on a busy host that the app sleeps again. A peek is not counted.
    ...(index === woken + 1
      ? [`(while :; do curl -s '${urlIn(commands[woken])}?peek'; sleep 2; done) > /dev/null &`]
      : []),
    ...(index === woken + 1 ? ["PEEKING=$!"] : []),
    command.replace(/^sleep \d+;/, `${ASLEEP};`),
  ]);
  return ["set -e", "PEEKING=", "trap '[ -z \"$PEEKING\" ] || kill $PEEKING' EXIT", ...lines, ""].join("\n");
}

/** @param {string | undefined} command */
function urlIn(command = "") {
  return /http:\S+/.exec(command)?.[0] ?? "";
}

/**
 * @param {string} raw
 * @param {readonly string[]} commands
 * @param {{ proxy: string, root: string }} here
 * @returns {Entry[]}
 */
function entriesOf(raw, commands, { proxy, root }) {
  const outputs = raw.split(MARK).slice(1);
  return outputs.map((text, index) => ({
    command: commands[index] ?? "",
    output: aligned(screenText(text.replaceAll(proxy, README_PROXY).replaceAll(root, README_ROOT))),
  }));
}

/**
 * A table whose columns are as wide as their cells, now that a path in it is another one. Other lines stay as they are.
 *
 * @param {string[]} lines
 */
function aligned(lines) {
  const rows = lines.map((line) => line.split(/ {2,}/));
  const isTable =
    /^[A-Z]+(?: {2,}[A-Z]+)+$/.test(lines[0] ?? "") && rows.every(({ length }) => length === rows[0]?.length);
  if (!isTable) return lines;
  const width = (/** @type {number} */ column) => Math.max(...rows.map((row) => row[column]?.length ?? 0));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(width(column)))
      .join("  ")
      .trimEnd(),
  );
}

/**
 * The lines that are left on a terminal after some were erased and written again. Empty ones are left out.
 *
 * @param {string} raw
 */
export function screenText(raw) {
  const lines = raw.split(/\r*\n/).map((line) => line.replace(ERASED, "").replace(OTHER_CONTROLS, ""));
  return lines.filter((line) => line !== "");
}

// What a terminal does is said with control characters.
const ERASED = /^[^]*(?:\r\u001b\[2K|\u001b\[1G\u001b\[0J)/; // oxlint-disable-line no-control-regex
const OTHER_CONTROLS = /\u001b\[[\d;?]*[A-Za-z]|\r/g; // oxlint-disable-line no-control-regex

/**
 * The text of a recording.
 *
 * @param {readonly Entry[]} entries
 */
export function tapeText(entries) {
  return entries.map(({ command, output }) => [`$ ${command}`, ...output, ""].join("\n")).join("\n");
}

/**
 * The entries of a recording's text, or of the block of a document.
 *
 * @param {string} text
 * @returns {Entry[]}
 */
export function parseTape(text) {
  const parts = text.split(/^\$ /m).slice(1);
  return parts.map((part) => {
    const [command = "", ...output] = part.split("\n");
    return { command, output: output.filter((line) => line !== "") };
  });
}

/**
 * The recording with everything masked that is different in every run: names, times, measurements. What the app counts
 * is not, because that is the point of the tour. Log lines of the app and of the platform arrive in any order.
 *
 * @param {readonly Entry[]} entries
 * @returns {string}
 */
export function masked(entries) {
  return tapeText(
    entries.map(({ command, output }) => {
      const lines = output.map(maskedLine);
      return { command, output: command === "hibernaut logs" ? lines.toSorted() : lines };
    }),
  );
}

/** @type {readonly (readonly [RegExp, string])[]} */
const MASKS = [
  [/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, "<nonce>"],
  [/\b[0-9a-f]{64}\b/g, "<digest>"],
  [/\b[0-9a-f]{16}\b/g, "<bundle>"],
  [/\b[0-9a-f]{14}\b/g, "<id>"],
  [/\b[0-9A-HJKMNP-TV-Z]{26}\b/g, "<version>"],
  [/\b[a-z]+-[a-z]+-\d{4,6}\b/g, "<name>"],
  [/\b\d{4}-\d\d-\d\d[T ][\d:.]+(?:Z| [+-]\d\d:\d\d)/g, "<time>"],
  [/\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} [\d:]+ GMT/g, "<time>"],
  [/\b\d+ (?:s|min|h) ago\b/g, "<ago>"],
  [/(?<!"count":)(?<![\d.])\d+(?:\.\d+)*/g, "N"],
  // A paused virtual machine may be gone earlier where the host is short of memory. Nothing depends on it.
  [/ \(warm\)|(?<=resumed) warm\b/g, ""],
  [/(?<=Hibernaut-Wake: |"kind":")warm\b/g, "resume"],
  // Columns are as wide as their cells.
  [/ {2,}/g, "  "],
];

/** @param {string} line */
function maskedLine(line) {
  // The first six digits of an id, in front of each line of a log.
  const short = line.replace(/^(\S+Z) [0-9a-f]{6} /, "$1 <id> ");
  return MASKS.reduce((text, [mask, name]) => text.replace(mask, name), short);
}

/**
 * A document in which the first block of recorded commands, and what the text says about its numbers, is that of the
 * tape. A line that ends with ` ...}` is the beginning of one. Throws where the block shows what the tape does not have.
 *
 * @param {string} document
 * @param {readonly Entry[]} tape
 */
export function withExcerpt(document, tape) {
  const [block = "", inside = ""] = /^```\n(\$ [^]*?)```$/m.exec(document) ?? [];
  let from = 0;
  const shown = parseTape(inside).map(({ command, output }) => {
    const at = tape.findIndex(
      (entry, index) =>
        index >= from && entry.command === command && output.every((line) => found(line, entry) !== undefined),
    );
    const entry = tape[at];
    if (entry === undefined) throw new Error(`The tour does not show this:\n$ ${command}\n${output.join("\n")}`);
    from = at + 1;
    return { command, output: output.map((line) => found(line, entry) ?? line) };
  });
  // The answer is apart from the headers.
  const text = tapeText(shown).replace(/^(Hibernaut-Wake: .*)$/m, "$1\n");
  const [old = [], now = []] = [inside, text].map((part) => /Hibernaut-Wake: .*dur=(\d+)/.exec(part) ?? []);
  return document
    .replace(block, () => `\`\`\`\n${text}\`\`\``)
    .replaceAll(old[0] ?? "", now[0] ?? "")
    .replaceAll(`${old[1]} ms`, `${now[1]} ms`);
}

/**
 * The line of the tape that this is, cut in the same place.
 *
 * @param {string} line
 * @param {Entry} entry
 */
function found(line, { output }) {
  const [begin = "", cut] = line.split(/( \.\.\.}?)$/);
  if (cut === undefined) return output.find((one) => maskedLine(one) === maskedLine(line));
  const wanted = maskedLine(begin);
  for (const one of output)
    for (let length = 1; length <= one.length; length += 1)
      if (one[length - 1] === begin.at(-1) && maskedLine(one.slice(0, length)) === wanted)
        return `${one.slice(0, length)}${cut}`;
  return undefined;
}
