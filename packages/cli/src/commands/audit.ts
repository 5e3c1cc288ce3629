/** `hibernaut audit`: who changed what. */
import type { AuditEntry, AuditOptions } from "@hibernaut/client";
import { command } from "../command.ts";
import { localWord, writtenTime } from "../local-time.ts";
import { NO_PAGER, printLines } from "../pager.ts";
import { style } from "../terminal.ts";

/** Prints the audit log. */
export const audit = command({
  name: "audit",
  summary: "Show who changed what",
  description:
    "Each change has two lines, with its time in your time zone: `begin` before it, and `end` with the status of the reply. `refused` says that the token may not do this. With --json, each line is a JSON document, with its time in UTC.",
  options: [
    { flags: "-a, --app <name>", description: "only what concerns this app", names: "app" },
    { flags: "--token <id>", description: "only what this token did: its id or its name", names: "token" },
    {
      flags: "--since <when>",
      description: "only lines since then: 30s, 10m, 2h or 1d ago, or 2026-01-31 12:00 in your time zone",
    },
    {
      flags: "-n, --limit <count>",
      description: "only the last lines, this many (default: 100, or 10000 with --since)",
      minimum: 0,
    },
    { flags: "-f, --follow", description: "keep printing new lines" },
    NO_PAGER,
  ],
  examples: [
    "hibernaut audit --since 1d",
    "hibernaut audit --app shop --token ci",
    "hibernaut audit --follow --json | jq 'select(.status >= 400)'",
  ],
  async run(context, _args, { token, since, limit, follow = false, pager }) {
    const client = await context.client();
    const app = context.namedApp;
    const options: AuditOptions = {
      ...(app !== undefined && { app }),
      ...(token !== undefined && { token }),
      ...(since !== undefined && { since: writtenTime(since) }),
      ...(limit !== undefined && { limit }),
      ...(follow && { follow }),
    };
    const paged = !follow && !context.json && pager !== false;
    const text = context.json ? JSON.stringify : lineOf;
    await printLines(linesOf(client.readAudit(options), text), { paged, start: "end" });
    return { document: undefined, text: "" };
  },
});

async function* linesOf(
  entries: AsyncIterable<AuditEntry>,
  text: (entry: AuditEntry) => string,
): AsyncGenerator<string> {
  for await (const entry of entries) yield text(entry);
}

/** As wide as `refused 403`. */
const RESULT_WIDTH = 11;

function lineOf({ at, phase, token, from, method, route, app, target, status }: AuditEntry): string {
  const { stdout } = process;
  const path = route.replaceAll(/:(\w+)/g, (part, name: string) => {
    const value = name === "app_name" ? app : target[name];
    return typeof value === "string" ? value : part;
  });
  const rest = Object.entries(target).filter(([name]) => !route.includes(`:${name}`));
  const named = app !== null && !route.includes(":app_name") ? [["app", app] as const] : [];
  const details = [...named, ...rest].map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  const result = `${phase}${status === null ? "" : ` ${status}`}`.padEnd(RESULT_WIDTH);
  const colour = status !== null && status >= 400 ? "red" : "dim";
  const who = `${token.name} (${token.id}) from ${from}`;
  return [style("dim", localWord(at), stdout), style(colour, result, stdout), who, method, path, ...details].join(" ");
}
