/** `hibernaut logs`: what apps print, and what becomes of their machines. */
import type { LogEntry, LogsOptions as ReadOptions } from "@hibernaut/client";
import { command } from "../command.ts";
import { style } from "../terminal.ts";

interface LogsOptions {
  machine?: string[];
  follow?: boolean;
  since?: string;
  limit?: number;
  tail?: number;
  stream?: string[];
}

/** As much of an id as tells the machines of an app apart. */
const SHORT_ID = 6;
const STREAMS = ["stdout", "stderr", "hooks", "platform"] as const;
const COLOURS = { stdout: "green", stderr: "red", hooks: "dim", platform: "yellow" } as const;
/** As wide as the longest name of a stream. */
const STREAM_WIDTH = 8;

/** Shows logs. */
export const logs = command<LogsOptions>({
  name: "logs",
  summary: "Show what an app prints, and what becomes of its machines",
  description:
    "A line has its time, the beginning of the machine's id, the stream and the text, oldest first. --follow goes on until the machines are destroyed; Ctrl-C ends it like any other program, which a shell calls 130. With --json each line is a JSON document.",
  options: [
    {
      flags: "-m, --machine <id>",
      description: "only this machine, by id, name or the beginning of the id; repeat it for more (default: all)",
      repeats: true,
    },
    { flags: "-f, --follow", description: "go on with what comes, also after a suspend and of machines made later" },
    { flags: "--since <when>", description: "lines from then on: 30s, 10m, 2h, 1d ago, or 2026-01-31T12:00:00Z" },
    {
      flags: "-n, --limit <count>",
      description: "the last so many lines (default: 100, or 10000 with --since)",
      minimum: 0,
    },
    { flags: "--tail <count>", description: "the same as --limit", minimum: 0, hidden: true },
    {
      flags: "--stream <name>",
      description: `one of ${STREAMS.join(", ")}; repeat it for more (default: all)`,
      repeats: true,
    },
  ],
  ofApp: true,
  examples: [
    "hibernaut logs --app shop",
    "hibernaut logs --app shop -m 3f9c01 --follow",
    "hibernaut logs --app shop --since 10m --stream stderr --json | jq .text",
  ],
  async run(context, _args, { machine, follow, since, tail, limit = tail, stream }) {
    const client = await context.client();
    const options: ReadOptions = {
      ...(machine !== undefined && { machine }),
      ...(since !== undefined && { since }),
      ...(limit !== undefined && { limit }),
      ...(stream !== undefined && { stream: stream as LogEntry["stream"][] }),
    };
    const lines = follow === true ? client.followLogs(context.app, options) : client.readLogs(context.app, options);
    for await (const entry of lines) await write(context.json ? JSON.stringify(entry) : lineOf(entry));
    return { document: undefined, text: "" };
  },
});

/** Waits while the terminal, or whoever reads us, is slow. */
async function write(line: string): Promise<void> {
  if (!process.stdout.write(`${line}\n`)) await new Promise((resolve) => process.stdout.once("drain", resolve));
}

function lineOf({ at, machine, stream, text }: LogEntry): string {
  const { stdout } = process;
  const parts = [
    style("dim", at, stdout),
    style("bold", machine.slice(0, SHORT_ID), stdout),
    style(COLOURS[stream] ?? "dim", stream.padEnd(STREAM_WIDTH), stdout),
  ];
  return `${parts.join(" ")} ${text}`;
}
