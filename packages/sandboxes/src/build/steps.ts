/** What a build is made of, read from a request. Pure. */

import { ENV_VALUE_MAX_LENGTH } from "@hibernaut/domain/limits";
import type { ProgramDefaults } from "@hibernaut/domain/sandbox";
import { Refusal } from "../failure.ts";
import { MOST_ENV_BYTES } from "../life/limits.ts";
import { LONGEST_WORD, MOST_STEPS } from "./limits.ts";

/** What a step does. Paths may be relative: to the directory at that point of the build. */
export type Step =
  | { type: "RUN"; command: string; user?: string }
  | { type: "COPY"; source: string; target: string; hash: string; user?: string; mode?: number }
  | { type: "ENV"; env: Record<string, string> }
  | { type: "WORKDIR"; path: string }
  | { type: "USER"; user: string };

/** A step as it comes. */
export interface SentStep {
  type: string;
  args?: readonly string[];
  filesHash?: string;
}

/** A hash of files, as clients make it: SHA-256. */
export const HASH = /^[0-9a-f]{64}$/;
const ENV_NAME = /^[^=\0]+$/;
const USER = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,63})?$/;
const MODE = /^0?[0-7]{3,4}$/;

/** Reads the steps. Throws a {@link Refusal} that says which of them makes no sense. */
export function stepsOf(sent: readonly SentStep[]): Step[] {
  if (sent.length > MOST_STEPS) throw new Refusal(400, `A build has at most ${MOST_STEPS} steps.`);
  return sent.map((step, index) => {
    try {
      return stepOf(step);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      throw new Refusal(400, `Step ${index + 1} of the build: ${error.message}`);
    }
  });
}

function stepOf({ type, args = [], filesHash }: SentStep): Step {
  if (args.some((arg) => arg.includes("\0"))) throw new Refusal(400, "no argument can have a zero byte.");
  const [first = "", second = "", third = "", fourth = ""] = args;
  switch (type) {
    case "RUN":
      if (first === "") throw new Refusal(400, "there is no command to run.");
      return { type, command: first, ...userOf(second) };
    case "COPY": {
      if (filesHash === undefined || !HASH.test(filesHash))
        throw new Refusal(400, "`filesHash` is 64 hexadecimal digits.");
      const mode = fourth === "" ? {} : { mode: modeOf(fourth) };
      return { type, source: word(first), target: word(second), hash: filesHash, ...userOf(third), ...mode };
    }
    case "ENV":
      return { type, env: envOf(args) };
    case "WORKDIR":
      return { type, path: word(first) };
    case "USER": {
      const { user } = userOf(first);
      if (user === undefined) throw new Refusal(400, "the user has no name.");
      return { type, user };
    }
    default:
      throw new Refusal(400, `'${type.slice(0, 20)}' is not a step. Steps are RUN, COPY, ENV, WORKDIR and USER.`);
  }
}

function word(text: string): string {
  if (text === "") throw new Refusal(400, "a path is missing.");
  if (text.length > LONGEST_WORD) throw new Refusal(400, `a path has more than ${LONGEST_WORD} characters.`);
  return text;
}

function userOf(text: string): { user?: string } {
  if (text === "") return {};
  if (USER.test(text)) return { user: text };
  throw new Refusal(400, `'${text.slice(0, 40)}' cannot be a user, or a user and a group as in 'node:node'.`);
}

function modeOf(text: string): number {
  if (MODE.test(text)) return Number.parseInt(text, 8);
  throw new Refusal(400, `'${text.slice(0, 20)}' cannot be permissions, which are octal, as in 0644.`);
}

/** Name and value take turns. */
function envOf(args: readonly string[]): Record<string, string> {
  if (args.length % 2 !== 0) throw new Refusal(400, "a variable has no value.");
  const env = new Map<string, string>();
  for (let index = 0; index < args.length; index += 2) {
    const [name = "", value = ""] = args.slice(index, index + 2);
    if (!ENV_NAME.test(name)) throw new Refusal(400, `'${name.slice(0, 40)}' cannot be the name of a variable.`);
    if (value.length > ENV_VALUE_MAX_LENGTH)
      throw new Refusal(400, `the value of ${name.slice(0, 40)} has more than ${ENV_VALUE_MAX_LENGTH} characters.`);
    env.set(name, value);
  }
  return Object.fromEntries(env);
}

/** How programs begin after the step. Throws a {@link Refusal} when their variables are too many. */
export function after(defaults: ProgramDefaults, step: Step): ProgramDefaults {
  switch (step.type) {
    case "ENV": {
      const env = { ...defaults.env, ...step.env };
      if (Buffer.byteLength(JSON.stringify(env)) > MOST_ENV_BYTES)
        throw new Refusal(400, `The variables of a template have at most ${MOST_ENV_BYTES} bytes.`);
      return { ...defaults, env };
    }
    case "USER":
      return { ...defaults, user: step.user };
    default:
      // What a directory is called in full, the machine says.
      return defaults;
  }
}

/** A step in a few words, for the log. */
export function titleOf(step: Step): string {
  switch (step.type) {
    case "RUN":
      return `RUN ${step.command}${step.user === undefined ? "" : ` (as ${step.user})`}`;
    case "COPY":
      return `COPY ${step.source} ${step.target}`;
    case "ENV":
      return `ENV ${Object.keys(step.env).join(" ")}`;
    case "WORKDIR":
      return `WORKDIR ${step.path}`;
    case "USER":
      return `USER ${step.user}`;
  }
}
