/** `hibernaut tokens` */
import type { Scope, Token } from "@hibernaut/client";
import { command, type Noun } from "../command.ts";
import { UsageError } from "../failure.ts";
import { listCommand } from "../listing.ts";
import { given, separated } from "../option-values.ts";
import { ago, until } from "../terminal.ts";

const SCOPES = ["read", "exec", "deploy", "admin"] as const satisfies readonly Scope[];

/** A minute and ten years, in seconds, as the API has them. */
const LIFE = { minimum: 60, maximum: 315_360_000, unit: "life" } as const;

const ID = [{ usage: "<id>", description: "the token's id, from `tokens list`", names: "token" }] as const;

const create = command({
  name: "create",
  summary: "Create a token",
  description:
    "The token is shown once: only its hash is stored. A scope says what it may do: `read` shows everything except secrets' values; `exec` also runs commands, copies files and forwards ports; `deploy` also changes apps, machines, secrets and names; `admin` does everything. With --app, it reaches only these apps, and not the platform itself. With --e2b, it is a key for programs that use E2B's clients, whose sandboxes are machines of the app: see `hibernaut sandbox`.",
  arguments: [{ usage: "<name>", description: "who or what the token is for" }],
  options: [
    { flags: "-s, --scope <scope>", description: `${SCOPES.join(", ")} (default: admin); may repeat`, repeats: true },
    { flags: "-a, --app <name>", description: "the only app it reaches; may repeat", repeats: true, names: "app" },
    {
      flags: "--previews",
      description: "reach only previews of these apps, and make them; with `deploy`, for CI jobs; needs --app",
    },
    { flags: "--expires <time>", description: "how long it is valid, such as 90d (default: forever)", ...LIFE },
    { flags: "--e2b", description: "make a key for E2B's clients, with the scopes deploy and exec; needs one --app" },
  ],
  examples: [
    "hibernaut tokens create ci --scope deploy --app shop --expires 90d",
    "hibernaut tokens create pull-requests --scope deploy --app shop --previews",
    "hibernaut tokens create agent --e2b --app agents",
    "HIBERNAUT_API_TOKEN=$(hibernaut tokens create ops --json | jq -r .token)",
  ],
  async run(context, [name = ""], { scope, app, previews, expires, e2b }) {
    const scopes = scope && separated(scope).map(scopeOf);
    const apps = app && separated(app);
    if (e2b) requireKeyOptions(scopes, apps);
    if (previews && (apps === undefined || e2b))
      throw new UsageError(
        "A token for previews names their app, and cannot be a key for E2B's clients. Add --app, or leave out --e2b.",
      );
    const client = await context.client();
    const token = await client.createToken(name, given({ scopes, apps, previews, expires_in: expires, e2b }));
    return { document: token, text: token.token };
  },
});

const list = listCommand({
  summary: "List tokens",
  examples: ["hibernaut tokens list", "hibernaut tokens list -o wide"],
  fetch: (client) => client.listTokens(),
  show: () => ({
    head: ["ID", "NAME", "SCOPES", "APPS", "LAST USED", "STATE"],
    row: (token) => [
      token.id,
      token.name,
      token.scopes.join(","),
      appsOf(token),
      token.last_used_at === null ? "never" : ago(token.last_used_at),
      stateOf(token),
    ],
    wide: {
      head: ["CREATED", "REPLACED BY"],
      row: ({ created_at, replaced_by }) => [ago(created_at), replaced_by ?? "-"],
    },
    id: ({ id }) => id,
    empty: "No tokens.",
  }),
});

const rotate = command({
  name: "rotate",
  summary: "Replace a token, with time to change it everywhere",
  description:
    "Creates a token with the same name and rights, and shows it once. The old one stays valid for a while, so that nothing fails in between.",
  arguments: ID,
  options: [
    {
      flags: "--keep <time>",
      description: "how long the old token stays valid (default: 24h)",
      minimum: 0,
      maximum: 2_592_000,
      unit: "life",
    },
    {
      flags: "--expires <time>",
      description: "how long the new token is valid (default: as long as the old one was at first)",
      ...LIFE,
    },
  ],
  examples: ["hibernaut tokens rotate 3f9c01ab22de", "hibernaut tokens rotate 3f9c01ab22de --keep 1h --expires 90d"],
  async run(context, [id = ""], { keep, expires }) {
    const rotated = await (await context.client()).rotateToken(id, given({ overlap: keep, expires_in: expires }));
    const { old, token } = rotated;
    context.say(`Token ${token.id} is in the place of ${old.id}, which stays valid until ${old.valid_until}.`);
    return { document: rotated, text: token.token };
  },
});

const revoke = command({
  name: "revoke",
  aliases: ["rm", "remove"],
  summary: "Revoke a token",
  arguments: ID,
  examples: ["hibernaut tokens revoke 3f9c01ab22de"],
  async run(context, [id = ""]) {
    await (await context.client()).revokeToken(id);
    return { document: { id, ok: true }, text: `Revoked token ${id}.` };
  },
});

/** What is given together with --e2b. */
function requireKeyOptions(scopes: readonly Scope[] | undefined, apps: readonly string[] = []): void {
  if (scopes !== undefined)
    throw new UsageError("A key for E2B's clients has the scopes deploy and exec. Leave out --scope.");
  if (apps.length !== 1)
    throw new UsageError(
      "A key for E2B's clients belongs to one app: its sandboxes are machines of that app. Give --app exactly once.",
    );
}

function appsOf({ apps, previews_of: of }: Token): string {
  if (of !== undefined) return `previews of ${of.join(",") || "none"}`;
  return apps === null ? "all" : apps.join(",") || "none";
}

function stateOf({ revoked_at, expires_at, replaced_by }: Token): string {
  if (revoked_at !== null) return `revoked ${ago(revoked_at)}`;
  if (expires_at === null) return "valid";
  if (Date.parse(expires_at) <= Date.now()) return `expired ${ago(expires_at)}`;
  return `${replaced_by === null ? "valid" : "rotated, valid"} for ${until(expires_at)}`;
}

function scopeOf(word: string): Scope {
  const scope = SCOPES.find((each) => each === word);
  if (scope !== undefined) return scope;
  throw new UsageError(`\`${word}\` is not a valid scope. Use ${SCOPES.join(", ")}.`);
}

export const tokens: Noun = {
  name: "tokens",
  aliases: ["token"],
  summary: "Manage API tokens",
  commands: [create, list, rotate, revoke],
};
