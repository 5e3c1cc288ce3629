/** `hibernaut machine cp`: copies files between this computer and a machine. */
import { pipeline } from "node:stream/promises";
import { command, type Result } from "../command.ts";
import type { Context } from "../context.ts";
import { type Ends, readEnds } from "../copy/ends.ts";
import { CopyProgress } from "../copy/progress.ts";
import { UsageError } from "../failure.ts";
import { interruptible } from "../interrupting.ts";
import { megabytes } from "../terminal.ts";
import { awake, NO_WAKE } from "../waking.ts";
import { machineOf } from "../which-machine.ts";

type Into = Ends & { into: true };
type Out = Ends & { into: false };

interface Copy {
  context: Context;
  id: string;
  archive: boolean;
  signal: AbortSignal;
}

export const copy = command({
  name: "cp",
  aliases: ["copy"],
  summary: "Copy files between this computer and a machine",
  description:
    "Wakes the machine if it sleeps. A path in a machine is written <id>:<path>, or :<path> for the only machine of the app. Directories are copied whole. If the target is a directory, the copy goes into it; otherwise it gets the target's name. A source that ends in /. means the content of a directory. - is a tar archive on standard input or output. The image needs no program for it.",
  arguments: [
    { usage: "<source>", description: "a path here, <id>:<path>, or -", names: "file" },
    { usage: "<target>", description: "a path here, <id>:<path>, or -", names: "file" },
  ],
  options: [{ flags: "--archive", description: "keep owners (default: the image's user, and here you)" }, NO_WAKE],
  ofApp: true,
  examples: [
    "hibernaut machine cp ./seed.sql 3f9c01ab22de41:/srv/seed.sql --app shop",
    "hibernaut machine cp web-2:/var/log/app ./logs",
    "tar c . | hibernaut machine cp - :/srv",
  ],
  async run(context, [from = "", to = ""], { archive = false, ...waking }) {
    const ends = readEnds(from, to);
    if (context.json && !ends.into && ends.to.at === "stream")
      throw new UsageError("With --json, standard output is for the document. Copy to a file instead of -.");
    const machine = await machineOf(context, ends.into ? ends.to.machine : ends.from.machine);
    const { id } = machine;
    await awake(context, machine, "cp", waking);
    using stop = interruptible("The copy was interrupted.");
    const { signal } = stop;
    try {
      const work = { context, id, archive, signal };
      return await (ends.into ? copyInto(work, ends) : copyOut(work, ends));
    } catch (error) {
      // Streams that were destroyed may say something else.
      if (signal.aborted) throw signal.reason;
      throw error instanceof Error && error.name === "CopyError" ? new UsageError(error.message) : error;
    }
  },
});

async function copyInto({ context, id, archive, signal }: Copy, { from, to }: Into): Promise<Result> {
  const client = await context.client();
  const { copyIn, passed } = await import("@hibernaut/client/copy");
  const onSkipped = (path: string) => context.say(`Skipped ${path}: it is neither a file nor a directory.`);
  const progress = new CopyProgress(`Copying to ${id}`, context);
  try {
    const copied =
      from.at === "here"
        ? await copyIn(client, [context.app, id], [from.path, to.path], {
            ...{ archive, signal, onSkipped },
            through: progress.counter,
          })
        : {
            target: to.path,
            ...(await client.writeArchive(context.app, id, to.path, passed(process.stdin, progress.counter), {
              ...{ owner: archive ? ("archive" as const) : ("image" as const), signal },
            })),
          };
    return { document: { machine_id: id, ...copied }, text: said(copied, `${id}:${copied.target}`) };
  } finally {
    progress.end();
    // A stream that is still being read would keep this process alive.
    if (from.at === "stream") process.stdin.destroy();
  }
}

async function copyOut({ context, id, archive, signal }: Copy, { from, to }: Out): Promise<Result> {
  const client = await context.client();
  if (to.at === "stream") {
    const whole = await client.readArchive(context.app, id, from.path, { signal });
    await pipeline(whole, process.stdout, { end: false });
    return { document: undefined, text: "" };
  }
  const { copyOut: copyHere } = await import("@hibernaut/client/copy");
  const progress = new CopyProgress(`Copying from ${id}`, context);
  try {
    const options = { archive, signal, through: progress.counter };
    const copied = await copyHere(client, [context.app, id], [from.path, to.path], options);
    return { document: { machine_id: id, ...copied }, text: said(copied, copied.target) };
  } finally {
    progress.end();
  }
}

function said({ entries, bytes }: { entries: number; bytes: number }, target: string): string {
  return `Copied ${entries} ${entries === 1 ? "entry" : "entries"}, ${megabytes(bytes)}, to ${target}.`;
}
