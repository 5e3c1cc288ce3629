/** `hibernaut tokens` */
import type { Token } from "@hibernaut/client";
import { command, type Noun } from "../command.ts";
import { LISTING, listText } from "../listing.ts";
import { ago } from "../terminal.ts";

const create = command({
  name: "create",
  summary: "Create a token",
  description: "The token is shown once: only its hash is stored. It grants full access to the API.",
  arguments: [{ usage: "<name>", description: "who or what the token is for" }],
  examples: ["hibernaut tokens create ci", "HIBERNAUT_API_TOKEN=$(hibernaut tokens create ci --json | jq -r .token)"],
  async run(context, [name = ""]) {
    const token = await (await context.client()).createToken(name);
    return { document: token, text: token.token };
  },
});

const list = command({
  name: "list",
  aliases: ["ls"],
  summary: "List tokens",
  options: LISTING,
  examples: ["hibernaut tokens list"],
  async run(context, _args, options) {
    const tokens = await (await context.client()).listTokens();
    const listing = {
      head: ["ID", "NAME", "CREATED", "STATE"],
      row: ({ id, name, created_at, revoked_at }: Token) => [
        id,
        name,
        ago(created_at),
        revoked_at ? `revoked ${ago(revoked_at)}` : "live",
      ],
      id: ({ id }: Token) => id,
      empty: "No tokens.",
    };
    return { document: tokens, text: listText(tokens, listing, options) };
  },
});

const revoke = command({
  name: "revoke",
  aliases: ["rm"],
  summary: "Revoke a token",
  arguments: [{ usage: "<id>", description: "the token's id, from `tokens list`", names: "token" }],
  examples: ["hibernaut tokens revoke 3f9c01ab22de"],
  async run(context, [id = ""]) {
    await (await context.client()).revokeToken(id);
    return { document: { id, ok: true }, text: `Revoked token ${id}.` };
  },
});

/** The commands about tokens. */
export const tokens: Noun = {
  name: "tokens",
  aliases: ["token"],
  summary: "Manage API tokens",
  commands: [create, list, revoke],
};
