/** `hibernaut events`: everything that changes on the platform. */
import type { StreamEntry, StreamGap, StreamMissing } from "@hibernaut/client";
import { command } from "../command.ts";
import { printEntries, SHORT_ID } from "../entries.ts";
import { localWord } from "../local-time.ts";
import { given } from "../option-values.ts";
import { NO_PAGER } from "../pager.ts";
import { style } from "../terminal.ts";

/** As wide as most types. */
const TYPE_WIDTH = 20;
/** What an event says for people, besides what the line shows anyway. */
const SHOWN_ELSEWHERE = new Set(["name", "event", "from", "to", "details", "start"]);

export const events = command({
  name: "events",
  summary: "Show what changes on the platform: machines, deploys, checks, certificates and more",
  description:
    "Each line shows the time in your time zone, what happened, the host in a cluster, the app, the machine, and what else is known, oldest first. Without --follow, the last events are printed. With --follow, new ones are printed as they come until you press Ctrl-C (exit code 130); after a lost connection it continues where it was. With --json, each line is a JSON document with its sequence number, and in a cluster with its position. Any host of a cluster tells the events of all hosts.",
  options: [
    { flags: "-f, --follow", description: "keep printing new events" },
    // Unlike the --app of other commands: without it, the events of all apps are shown.
    { flags: "-a, --app <name>", names: "app", description: "only events of this app" },
    {
      flags: "-m, --machine <id>",
      names: "machine",
      description: "only events of this machine of the app: id, name, or beginning of the id",
    },
    {
      flags: "--type <type>",
      description: "only this type, such as machine.suspended, or group, such as machine; repeat for several",
      repeats: true,
    },
    {
      flags: "--since <position>",
      description:
        "only events after the one with this sequence number, or in a cluster with this position; 0: all that are kept",
    },
    {
      flags: "-n, --limit <count>",
      description: "begin with the last events, this many (default: 100, or 0 with --follow)",
      minimum: 0,
      maximum: 1000,
    },
    NO_PAGER,
  ],
  examples: [
    "hibernaut events",
    "hibernaut events --follow --app shop",
    "hibernaut events -f --type machine.suspended --type machine.running --json | jq .data.start",
  ],
  async run(context, _args, { follow = false, machine, type, since, limit, pager }) {
    const { namedApp: app } = context;
    const client = await context.client();
    const options = given({ app, machine, type, since, tail: limit });
    const onLost = ({ message }: Error) => context.say(`${message} Connecting again...`);
    const entries = follow ? client.followEvents({ ...options, onLost }) : client.readEvents(options);
    return printEntries(context, entries, lineOf, { follow, pager });
  },
});

function lineOf(event: StreamEntry): string {
  if (event.type === "missing") return missingText((event as StreamMissing).hosts);
  if (!("sequence" in event)) {
    const { after, until, host } = event as StreamGap;
    return `events ${after + 1} to ${until}${host === undefined ? "" : ` of host ${host}`} are no longer kept`;
  }
  const { at, type, app_name: app, machine_id: machine, data, host } = event;
  const { stdout } = process;
  const parts = [
    style("dim", localWord(at), stdout),
    style(type.endsWith("failed") || type.endsWith("critical") ? "red" : "bold", type.padEnd(TYPE_WIDTH), stdout),
    [host, app, machine?.slice(0, SHORT_ID)].filter((word) => word !== null && word !== undefined).join(" "),
    details(data),
  ];
  return parts.filter((part) => part !== "").join(" ");
}

function missingText(hosts: readonly string[]): string {
  return hosts.length === 0 ? "all hosts are heard again" : `not heard at present: ${hosts.join(", ")}`;
}

/** What else is known, as words. How a machine was started comes first. */
function details(data: Readonly<Record<string, unknown>>): string {
  const start = data["start"] as { kind: string; duration_ms: number } | undefined;
  const rest = Object.entries({ ...data, ...(data["details"] as object | undefined) })
    .filter(([name, value]) => !SHOWN_ELSEWHERE.has(name) && value !== null)
    .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`);
  return [...(start === undefined ? [] : [`${start.kind} in ${start.duration_ms} ms`]), ...rest].join(" ");
}
