/** `hibernaut logs`: what apps print and what happens to their machines. */
import type { LogEntry } from "@hibernaut/client";
import { command } from "../command.ts";
import { LIMIT, printEntries, SHORT_ID, SINCE } from "../entries.ts";
import { localWord, writtenTime } from "../local-time.ts";
import { given } from "../option-values.ts";
import { NO_PAGER } from "../pager.ts";
import { style } from "../terminal.ts";

const STREAMS = ["stdout", "stderr", "hooks", "platform"] as const;
const COLOURS = { stdout: "green", stderr: "red", hooks: "dim", platform: "yellow" } as const;
/** As wide as the longest name of a stream. */
const STREAM_WIDTH = 8;

export const logs = command({
  name: "logs",
  summary: "Show what an app prints and what happens to its machines",
  description:
    "Each line shows its time in your time zone, the beginning of the machine's id, the stream and the text, oldest first. With --follow, new lines are printed until the machines are destroyed or you press Ctrl-C (exit code 130). With --json, each line is a JSON document, with its time in UTC.",
  options: [
    {
      flags: "-m, --machine <id>",
      names: "machine",
      description: "only this machine: id, name, or beginning of the id; repeat for several (default: all)",
      repeats: true,
    },
    { flags: "-f, --follow", description: "keep printing new lines, across suspends and from machines created later" },
    SINCE,
    LIMIT,
    { flags: "--tail <count>", description: "the same as --limit", minimum: 0, hidden: true },
    {
      flags: "--stream <name>",
      description: `one of ${STREAMS.join(", ")}; repeat for several (default: all)`,
      repeats: true,
    },
    {
      flags: "--raw",
      description: "print colours and all other control sequences of the app, which can change your terminal",
    },
    NO_PAGER,
  ],
  ofApp: true,
  examples: [
    "hibernaut logs --app shop",
    "hibernaut logs --app shop -m 3f9c01 --follow",
    "hibernaut logs --app shop --since 10m --stream stderr --json | jq .text",
  ],
  async run(context, _args, { machine, follow = false, since, tail, limit = tail, stream, raw = false, pager }) {
    const client = await context.client();
    const streams = stream as LogEntry["stream"][] | undefined;
    const options = given({ machine, since: since && writtenTime(since), limit, stream: streams });
    const entries = follow ? client.followLogs(context.app, options) : client.readLogs(context.app, options);
    return printEntries(context, entries, lineOf, { follow, pager, raw });
  },
});

function lineOf({ at, machine, stream, text }: LogEntry): string {
  const { stdout } = process;
  const parts = [
    style("dim", localWord(at), stdout),
    style("bold", machine.slice(0, SHORT_ID), stdout),
    style(COLOURS[stream] ?? "dim", stream.padEnd(STREAM_WIDTH), stdout),
  ];
  return `${parts.join(" ")} ${text}`;
}
