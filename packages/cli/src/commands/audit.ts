/** `hibernaut audit`: who changed what. */
import type { AuditEntry } from "@hibernaut/client";
import { command } from "../command.ts";
import { LIMIT, printEntries, SINCE } from "../entries.ts";
import { localWord, writtenTime } from "../local-time.ts";
import { given } from "../option-values.ts";
import { NO_PAGER } from "../pager.ts";
import { style } from "../terminal.ts";

export const audit = command({
  name: "audit",
  summary: "Show who changed what",
  description:
    "Each change has two lines, with its time in your time zone: `begin` before it, and `end` with the status of the reply. `refused` says that the token may not do this. With --json, each line is a JSON document, with its time in UTC.",
  options: [
    { flags: "-a, --app <name>", description: "only what concerns this app", names: "app" },
    { flags: "--token <id>", description: "only what this token did: its id or its name", names: "token" },
    SINCE,
    LIMIT,
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
    const { namedApp: app } = context;
    const options = given({ app, token, since: since && writtenTime(since), limit, follow: follow || undefined });
    const entries = client.readAudit(options);
    return printEntries(context, entries, lineOf, { follow, pager });
  },
});

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
