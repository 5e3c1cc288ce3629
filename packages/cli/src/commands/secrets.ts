/** `hibernaut secrets` */

import { buffer } from "node:stream/consumers";
import type { HibernautClient, SecretsEffect } from "@hibernaut/client";
import { command, type Noun, type Result } from "../command.ts";
import { agree, YES } from "../confirming.ts";
import type { Context } from "../context.ts";
import { UsageError } from "../failure.ts";
import { listCommand } from "../listing.ts";
import { parseSecrets, readSecrets, textOf } from "../secret-arguments.ts";
import { ago, lines } from "../terminal.ts";

const EFFECT =
  "Machines receive secrets as environment variables when they start from scratch. Suspended machines lose their snapshots, which hold the previous values; running machines see the change after a restart.";

const set = command({
  name: "set",
  summary: "Set secrets of an app",
  description: EFFECT,
  arguments: [
    {
      usage: "<NAME=value...>",
      description: "NAME=value; NAME=- reads the value from standard input, NAME=@file from a file",
    },
  ],
  options: [YES],
  ofApp: true,
  examples: [
    "hibernaut secrets set API_KEY=@key.txt LOG_TOKEN=abc --app shop",
    "pass show db | hibernaut secrets set DB_PASSWORD=- --app shop --yes",
  ],
  async run(context, words, { yes = false }) {
    const { values, usedStdin } = await readSecrets(words);
    return setAll(context, { values, yes, canAsk: !usedStdin });
  },
});

const importAll = command({
  name: "import",
  summary: "Set the secrets of a .env file on standard input",
  description: `Sets all of them or none. Secrets that are not in the file are kept. ${EFFECT}`,
  options: [YES],
  ofApp: true,
  examples: ["hibernaut secrets import --app shop < .env"],
  async run(context, _args, { yes = false }) {
    if (process.stdin.isTTY) throw new UsageError("Pass the file on standard input: hibernaut secrets import < .env");
    const values = parseSecrets(textOf("standard input", await buffer(process.stdin)));
    return setAll(context, { values, yes, canAsk: false });
  },
});

async function setAll(
  context: Context,
  { values, yes, canAsk }: { values: Record<string, string>; yes: boolean; canAsk: boolean },
): Promise<Result> {
  const { app } = context;
  const client = await context.client();
  await agreeTo(await client.setSecrets(app, values, { dry_run: true }), { yes, canAsk });
  const effect = await untilDiscarded(client, app, await client.setSecrets(app, values));
  const names = Object.keys(values);
  return { document: { secrets: names, ...effect }, text: effectText(`Set: ${names.join(", ")}.`, effect) };
}

const list = listCommand({
  summary: "List the secrets of an app, without their values",
  description: "Equal values have equal digests.",
  ofApp: true,
  examples: ["hibernaut secrets list --app shop"],
  fetch: (client, { app }) => client.listSecrets(app),
  show: ({ app }) => ({
    head: ["NAME", "DIGEST", "UPDATED"],
    row: ({ name, digest, updated_at }) => [name, digest, ago(updated_at)],
    id: ({ name }) => name,
    empty: `App ${app} has no secrets.`,
  }),
});

const unset = command({
  name: "unset",
  aliases: ["rm"],
  summary: "Unset secrets of an app",
  description: EFFECT,
  arguments: [{ usage: "<NAME...>", description: "names of the secrets", names: "secret" }],
  options: [YES],
  ofApp: true,
  examples: ["hibernaut secrets unset LOG_TOKEN --app shop"],
  async run(context, words, { yes = false }) {
    const names = [...new Set(words)];
    const client = await context.client();
    // Every name is looked up before the first one is unset.
    await agreeTo(await unsetAll(client, context.app, names, { dry_run: true }), { yes, canAsk: true });
    const effect = await untilDiscarded(client, context.app, await unsetAll(client, context.app, names));
    return { document: { secrets: names, ...effect }, text: effectText(`Unset: ${names.join(", ")}.`, effect) };
  },
});

async function unsetAll(
  client: HibernautClient,
  app: string,
  names: readonly string[],
  options?: { dry_run: boolean },
): Promise<SecretsEffect> {
  const effects: SecretsEffect[] = [];
  for (const name of names) effects.push(await client.unsetSecret(app, name, options));
  const every = (ids: (effect: SecretsEffect) => string[]) => [...new Set(effects.flatMap(ids))];
  return { discarded: every(({ discarded }) => discarded), pending: every(({ pending }) => pending) };
}

/** Says which snapshots would be discarded, and asks first on a terminal. */
async function agreeTo(
  { discarded }: SecretsEffect,
  { yes, canAsk }: { yes: boolean; canAsk: boolean },
): Promise<void> {
  if (discarded.length === 0) return;
  const warning = `The snapshots of ${discarded.join(", ")} will be discarded: these machines start from scratch next time.`;
  await agree(warning, { yes, canAsk, what: "changed" });
}

/** Waits until the snapshots are gone: until then a command that follows, such as an update, would be refused. */
async function untilDiscarded(client: HibernautClient, app: string, effect: SecretsEffect): Promise<SecretsEffect> {
  const states = ["settled", "destroyed"] as const;
  await Promise.all(effect.discarded.map((id) => client.waitForMachine(app, id, { state: states })));
  return effect;
}

function effectText(done: string, { discarded, pending }: SecretsEffect): string {
  return lines(
    done,
    discarded.length > 0 && `Snapshots discarded: ${discarded.join(", ")}.`,
    pending.length > 0 && `Running machines see the change after: hibernaut machine restart ${pending.join(" ")}`,
  );
}

export const secrets: Noun = {
  name: "secrets",
  aliases: ["secret"],
  summary: "Manage secrets",
  commands: [set, importAll, list, unset],
};
