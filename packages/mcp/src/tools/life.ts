/** Tools for the life of sandboxes: make, list, fork, keep, pause, end. */
import type { Machine } from "@hibernaut/client";
import { ApiError } from "@hibernaut/client";
import { z } from "zod";
import { withoutEnd } from "../answer.ts";
import { MOST_FORKS, MOST_LISTED, SANDBOX_TIMEOUT_S } from "../limits.ts";
import type { SandboxesOf } from "../sandboxes-of.ts";
import { sandbox, type Tool, tool } from "./define.ts";

/** Templates' names that an error mentions at most. */
const MOST_NAMES = 20;
const name = z.string().min(1).max(63);

const create = tool("create_sandbox", {
  title: "Create a sandbox",
  description:
    "Makes a Linux computer of your own, and returns its id once it runs. When its time is over, it is paused with its memory and files, unless on_timeout is kill. Whatever you ask of a paused sandbox wakes it.",
  input: {
    template: name.default("base").describe("The template that it is made from."),
    name: name.optional().describe("A name for it, unique within the app."),
    timeout_seconds: z
      .number()
      .int()
      .min(1)
      .max(86_400)
      .default(SANDBOX_TIMEOUT_S)
      .describe("How long it runs until its time is over."),
    on_timeout: z.enum(["pause", "kill"]).default("pause"),
    metadata: z.record(z.string(), z.string()).optional().describe("Labels of your own."),
  },
  annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
  async run({ template, timeout_seconds, on_timeout, metadata, ...named }, { sandboxes, signal }) {
    const { client } = sandboxes.place;
    const app = await sandboxes.app();
    const chosen = {
      ...{ template, timeout_s: timeout_seconds, on_timeout, auto_resume: on_timeout === "pause" },
      ...(metadata !== undefined && { metadata }),
      ...(named.name !== undefined && { name: named.name }),
    };
    const made = await client.createSandbox(app, chosen, { signal }).catch(async (error: unknown) => {
      throw await withTemplates(sandboxes, app, error);
    });
    return described(await made.get({ signal }));
  },
});

/** Says which templates there are, where the one that was asked for is not. */
async function withTemplates({ place }: SandboxesOf, app: string, error: unknown): Promise<unknown> {
  if (!(error instanceof ApiError) || error.code !== "not_found") return error;
  const templates = await place.client.listTemplates(app).catch(() => []);
  const names = templates.slice(0, MOST_NAMES).map((template) => template.name);
  const message = names.length === 0 ? error.message : `${error.message} There are: ${names.join(", ")}.`;
  return new ApiError({ code: error.code, message });
}

const list = tool("list_sandboxes", {
  title: "List sandboxes",
  description: "Lists the sandboxes of the app, the newest first, with what they do and when their time is over.",
  input: {},
  annotations: { readOnlyHint: true },
  async run(_input, { sandboxes, signal }) {
    const machines = await sandboxes.place.client.listMachines(await sandboxes.app(), { signal });
    const all = machines
      .filter(({ sandbox: facts, state }) => facts !== null && state !== "destroying")
      .toSorted((one, other) => (one.created_at < other.created_at ? 1 : -1));
    if (all.length === 0) return "There are no sandboxes. Make one with create_sandbox.";
    const lines = all.slice(0, MOST_LISTED).map(described);
    const more = all.length - lines.length;
    if (more > 0) lines.push(`[... ${more} more are not shown. Kill those that nobody needs ...]`);
    return withoutEnd(lines, sandboxes.place.outputBytes, "Kill those that nobody needs");
  },
});

const fork = tool("fork", {
  title: "Fork a sandbox",
  description:
    "Makes sandboxes that continue from where one is, with its memory, programs and files, and returns their ids. The sandbox itself runs on. Use it to try several things from one point.",
  input: { sandbox, count: z.number().int().min(1).max(MOST_FORKS).default(1).describe("How many to make.") },
  annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
  async run({ sandbox: word, count }, { sandboxes, signal }) {
    const { handle } = await sandboxes.get(word, signal);
    const forks = await handle.fork({ count }, { signal });
    return (await Promise.all(forks.map((one) => one.get({ signal })))).map(described).join("\n");
  },
});

const snapshot = tool("snapshot", {
  title: "Keep the state of a sandbox",
  description:
    "Keeps the memory and files that a sandbox has now as a template, from which create_sandbox makes others. The sandbox itself runs on.",
  input: { sandbox, name: name.optional().describe("A name for the template. Default: a generated one.") },
  annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
  async run({ sandbox: word, ...named }, { sandboxes, signal }) {
    const { machine } = await sandboxes.get(word, signal);
    const body = { from: machine.id, ...(named.name !== undefined && { name: named.name }) };
    const made = await sandboxes.place.client.createTemplate(machine.app_name, body, { signal });
    return `Template ${made.name} (${made.id}) has the state of sandbox ${machine.id}. Make others from it: create_sandbox with template ${made.name}.`;
  },
});

const pause = tool("pause", {
  title: "Pause a sandbox",
  description:
    "Suspends a sandbox to the disk, with its memory, programs and files. It takes no CPU and memory then, and is kept until it is killed. Whatever you ask of it later wakes it.",
  input: { sandbox },
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  async run({ sandbox: word }, { sandboxes, signal }) {
    const { machine, handle } = await sandboxes.get(word, signal);
    if (machine.state === "suspended") return `Sandbox ${machine.id} is paused already.`;
    await handle.pause({ signal });
    return `Sandbox ${machine.id} is paused.`;
  },
});

const kill = tool("kill", {
  title: "Destroy a sandbox",
  description: "Destroys a sandbox with all that is in it. This cannot be undone.",
  input: { sandbox },
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  async run({ sandbox: word }, { sandboxes, signal }) {
    const { machine, handle } = await sandboxes.get(word, signal);
    await handle.destroy({ signal });
    return `Sandbox ${machine.id} is destroyed.`;
  },
});

/** One line about a sandbox. */
function described({ id, name: called, state, sandbox: facts }: Machine): string {
  if (facts === null) return `${id} (${called}) is ${state}`;
  const end = `${facts.on_timeout === "kill" ? "destroyed" : "paused"} at ${facts.ends_at}`;
  const labels = Object.keys(facts.metadata).length === 0 ? "" : `, labels ${JSON.stringify(facts.metadata)}`;
  return `${id} (${called}) is ${state}, from template ${facts.template}, ${end}${labels}`;
}

/** In the order in which a program needs them. */
export const lifeTools: readonly Tool[] = [create, list, fork, snapshot, pause, kill];
