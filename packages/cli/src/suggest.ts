/** Guesses what the user meant: by spelling where it is close, otherwise from a list of names that other tools use. */
import { distance } from "./appfile/nearest.ts";

/** One typing error is allowed per this many letters. More errors make another word. */
const LETTERS_PER_SLIP = 3;

/**
 * What other tools call our commands, and the command to use instead.
 */
const ELSEWHERE: Readonly<Record<string, string>> = {
  auth: "For images: hibernaut registry login <host>. For the API: hibernaut tokens create <name>.",
  certs:
    "Certificates are files in a directory, see docs/proxy.md. Custom hostnames: hibernaut hostnames add <hostname>.",
  domains: "Custom hostnames: hibernaut hostnames add <hostname>.",
  env: "Set variables in the app file, or with hibernaut machine update [id] --env NAME=value. Secrets: hibernaut secrets set NAME=value.",
  info: "The platform: hibernaut status. A machine: hibernaut machine status [id].",
  init: "To write an app file for this directory: hibernaut launch.",
  login: "For images: hibernaut registry login <host>. For the API: hibernaut tokens create <name>.",
  rm: "hibernaut machine destroy <id>, hibernaut apps destroy <name> or hibernaut volumes destroy <id>.",
  rollback: "Deploy an older image: hibernaut deploy --image <reference>, with a reference from hibernaut releases.",
  run: "To run an image: hibernaut machine run <image> --app <name>.",
  server: "To start the platform: hibernaut serve.",
  sh: "A shell in a machine: hibernaut console [id].",
  shell: "A shell in a machine: hibernaut console [id].",
  ssh: "A shell in a machine: hibernaut console [id]. One command: hibernaut exec [id] -- <command>.",
  up: "To start the platform: hibernaut serve.",
  why: "hibernaut machine why [id].",
  update: "One machine: hibernaut machine update [id]. The whole app: hibernaut deploy.",
  "machine ssh": "A shell: hibernaut machine console [id].",
  "machine kill": "hibernaut machine stop [id], or hibernaut machine destroy <id> --force.",
  "machine logs": "hibernaut logs -m <id>.",
  "machine ps": "hibernaut machine list, or hibernaut ps for all apps.",
  "apps logs": "hibernaut logs --app <name>.",
  "scale vm": "Memory: hibernaut scale memory 512mb. CPUs: hibernaut machine update [id] --cpus 2.",
  "scale cpu": "hibernaut machine update [id] --cpus 2.",
  "scale cpus": "hibernaut machine update [id] --cpus 2.",
  "secrets show": "Values are never shown again. Names and digests: hibernaut secrets list.",
};

/** Options that people type by habit after flyctl's `launch` and `deploy`, and what to do instead. */
const OPTIONS_ELSEWHERE: Readonly<Record<string, string>> = {
  "launch --org": "Leave it out: a platform has no organizations.",
  "launch -o": "Leave it out: a platform has no organizations.",
  "launch --region": "Leave it out, and name the region when you deploy: hibernaut deploy --region <region>.",
  "launch -r": "Leave it out, and name the region when you deploy: hibernaut deploy --region <region>.",
  "launch --copy-config": "An app file that is there works as it is: leave out launch, and run hibernaut deploy.",
  "launch --generate-name":
    "Leave it out: the name is the package's or the directory's. --name <name> chooses another.",
  "launch --app": "The name of the app: --name <name>.",
  "launch -a": "The name of the app: --name <name>.",
  "launch --vm-size": "Use --vm-memory 512mb and --vm-cpus 2, or write size under [[vm]] in the app file.",
  "launch --vm-cpu-kind": "Leave it out: there is one kind of CPU.",
  "launch --ha": "Leave it out: one machine is created. For two: hibernaut scale count 2, after the first deploy.",
  "launch --dockerfile": 'Write dockerfile = "<path>" under [build] in the app file.',
  "launch --env": "Write it under [env] in the app file.",
  "launch -e": "Write it under [env] in the app file.",
  "launch --secret": "After the first deploy: hibernaut secrets set NAME=value.",
  "launch --local-only": "Leave it out: images are built on this machine.",
  "launch --remote-only": "Leave it out: images are built on this machine.",
  "launch --strategy": "Name it when you deploy: hibernaut deploy --strategy <strategy>.",
  "launch --from": "Clone the repository yourself, and run hibernaut launch in its directory.",
  "deploy --yes": "Leave it out: a deploy asks nothing.",
  "deploy -y": "Leave it out: a deploy asks nothing.",
  "deploy --now": "Leave it out: a deploy begins at once.",
  "deploy --ha": "Leave it out: a first deploy creates one machine. For two: hibernaut scale count 2.",
  "deploy --local-only": "Leave it out: images are built on this machine.",
  "deploy --remote-only": "Leave it out: images are built on this machine.",
  "deploy --no-cache": "To build everything again: --no-build-cache.",
  "deploy --detach": "Leave it out: a deploy waits until the new version works.",
};

/** What to use instead of a command that does not exist, such as `scale vm`, or of an option, such as `launch --org`. */
export function elsewhere(words: readonly string[]): string | undefined {
  const key = words.join(" ");
  const list = [ELSEWHERE, OPTIONS_ELSEWHERE].find((one) => Object.hasOwn(one, key));
  return list?.[key];
}

/**
 * The candidate that the word misspells; undefined when none is close.
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
