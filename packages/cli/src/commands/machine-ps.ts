/** `hibernaut machine ps`: what runs in a machine. */
import type { GuestProcess } from "@hibernaut/client";
import { command } from "../command.ts";
import { given } from "../option-values.ts";
import { outputTable, TABLE } from "../output-format.ts";
import { megabytes } from "../terminal.ts";
import { MACHINE, machineOf } from "../which-machine.ts";

const HEAD = ["PID", "CPU", "MEMORY", "RUNS FOR", "LISTENS AT", "COMMAND"];
const SORTS = { pid: "asc", cpu: "desc", rss: "desc", rtime: "desc", command: "asc" } as const;
const MINUTE_S = 60;
const HOUR_S = 3600;

/** The command. */
export const ps = command({
  name: "ps",
  summary: "List the processes of a running machine",
  description: "Without those of its kernel. CPU is what a process had on average since it began.",
  arguments: [MACHINE],
  options: [
    {
      flags: "--sort <by>",
      description: "what to sort by, for all but pid and command the most first (default: pid)",
      choices: Object.keys(SORTS),
    },
    ...TABLE,
  ],
  ofApp: true,
  examples: ["hibernaut machine ps 3f9c01ab22de41 --app shop", "hibernaut machine ps web-1 --sort rss"],
  async run(context, [word], { sort, ...output }) {
    const { id } = await machineOf(context, word);
    const by = sort as keyof typeof SORTS | undefined;
    const order = given({ sort_by: by, order: by && SORTS[by] });
    const processes = await (await context.client()).listProcesses(context.app, id, order);
    return { document: processes, text: outputTable([HEAD, ...processes.map(rowOf)], output, ["LISTENS AT"]) };
  },
});

function rowOf({ pid, cpu, rss, rtime, command: words, listen_sockets: sockets }: GuestProcess): string[] {
  const listens = sockets.map(({ proto, address }) => (proto.startsWith("udp") ? `${address} (UDP)` : address));
  // A process names itself as it likes, also with newlines.
  return [
    ...[String(pid), `${cpu}%`, megabytes(rss), timeText(rtime)],
    ...[listens.join(", "), words.replaceAll(/\s+/g, " ")],
  ];
}

/** `45 s`, `12 min`, `3 h 20 min` */
function timeText(seconds: number): string {
  if (seconds < MINUTE_S) return `${seconds} s`;
  const minutes = Math.floor((seconds % HOUR_S) / MINUTE_S);
  return seconds < HOUR_S ? `${minutes} min` : `${Math.floor(seconds / HOUR_S)} h ${minutes} min`;
}
