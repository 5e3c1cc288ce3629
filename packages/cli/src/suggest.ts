/** What somebody probably meant: by spelling only where it is really close, else from a list of known other words. */
import { distance } from "./appfile/nearest.ts";

/** One slip of the finger in so many letters. More of them make another word. */
const LETTERS_PER_SLIP = 3;

/**
 * What other tools call what we have, by the words that are typed. The answer is what we have.
 */
const ELSEWHERE: Readonly<Record<string, string>> = {
  auth: "For images: hibernaut registry login <host>. For the API: hibernaut tokens create <name>.",
  certs: "Certificates are files in a folder, see docs/proxy.md. Host names: hibernaut hostnames add <hostname>.",
  domains: "Host names of an app: hibernaut hostnames add <hostname>.",
  env: "Variables stand in the app file, or: hibernaut machine update [id] --env NAME=value. Secrets: hibernaut secrets set NAME=value.",
  info: "The platform: hibernaut status. A machine: hibernaut machine status [id].",
  init: "An app file for this folder: hibernaut launch.",
  login: "For images: hibernaut registry login <host>. For the API: hibernaut tokens create <name>.",
  open: "The address of an app is printed by hibernaut deploy and hibernaut machine run.",
  rm: "hibernaut machine destroy <id>, hibernaut apps destroy <name> or hibernaut volumes destroy <id>.",
  rollback: "Deploy the older image again: hibernaut deploy --image <reference>, with one of hibernaut releases.",
  run: "A machine of an image: hibernaut machine run <image> --app <name>.",
  server: "The platform is started by hibernaut serve.",
  sh: "A shell in a machine: hibernaut console [id].",
  shell: "A shell in a machine: hibernaut console [id].",
  ssh: "A shell in a machine: hibernaut console [id]. One command: hibernaut exec [id] -- <command>.",
  top: "The machines of all apps: hibernaut ps.",
  up: "The platform is started by hibernaut serve.",
  update: "One machine: hibernaut machine update [id]. The whole app: hibernaut deploy.",
  "machine ssh": "A shell: hibernaut machine console [id].",
  "machine kill": "hibernaut machine stop [id], or hibernaut machine destroy <id> --force.",
  "machine logs": "hibernaut logs -m <id>.",
  "machine ps": "hibernaut machine list, or hibernaut ps for all apps.",
  "apps logs": "hibernaut logs --app <name>.",
  "scale vm": "Memory: hibernaut scale memory 512mb. CPUs: hibernaut machine update [id] --cpus 2.",
  "scale cpu": "hibernaut machine update [id] --cpus 2.",
  "scale cpus": "hibernaut machine update [id] --cpus 2.",
  "secrets show": "Nobody is shown a value again. Names and digests: hibernaut secrets list.",
};

/** What there is in place of a command that there is not, e.g. for `scale vm`. */
export function elsewhere(words: readonly string[]): string | undefined {
  const key = words.join(" ");
  return Object.hasOwn(ELSEWHERE, key) ? ELSEWHERE[key] : undefined;
}

/**
 * The candidate that a word misspells; undefined when none is close.
 *
 * @example
 * closest("strat", ["start", "stop"]); // "start"
 * closest("open", ["tokens"]); // undefined
 */
export function closest(word: string, candidates: readonly string[]): string | undefined {
  const ranked = candidates
    .map((candidate) => ({ candidate, edits: distance(word.toLowerCase(), candidate.toLowerCase()) }))
    .filter(({ candidate, edits }) => edits <= Math.floor(Math.max(word.length, candidate.length) / LETTERS_PER_SLIP))
    .sort((a, b) => a.edits - b.edits);
  return ranked[0]?.candidate;
}
