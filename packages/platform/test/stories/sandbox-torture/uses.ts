/** What a program does in a sandbox that runs. */
import { setTimeout as delay } from "node:timers/promises";
import { FileNotFoundError, SandboxError } from "e2b";
import { type Content, counted, type FileBelief, found, mayHaveWritten, next, sent, taken, wrote } from "./beliefs.ts";
import { COUNT, type Kept, PATHS } from "./kept.ts";
import type { World } from "./world.ts";

/** The longest file, in bytes: more than fits into one message. */
const MOST_BYTES = 300_000;
/** How long an answer of a program may take, in milliseconds. */
const ANSWER_MS = 60_000;
/** A new file takes the place of the old one, so that there is never half of it. */
const COUNT_SCRIPT = `n=0; [ -e ${COUNT} ] && read -r n < ${COUNT}; n=$((n+1)); echo -n $n > ${COUNT}.new; mv ${COUNT}.new ${COUNT}; echo $n`;
const KEEPER_SCRIPT = 'n=0; while read -r word; do n=$((n+1)); echo "$SECRET $n $word"; done';

type Use = (world: World, kept: Kept) => Promise<unknown>;

const write: Use = async (world, kept) => {
  const path = world.random.pick([PATHS[0], PATHS[1]]);
  const content = `${world.serial()}:`.padEnd(world.random.between(1, MOST_BYTES), "all or nothing ");
  const before = kept.file(path);
  kept.files.set(path, mayHaveWritten(before, content));
  const done = await world.attempt(`write ${path}`, () => kept.sandbox.files.write(path, content), kept.id);
  if (done !== undefined) kept.files.set(path, wrote(before, content));
};

const read: Use = async (world, kept) => {
  const path = world.random.pick(PATHS);
  const contents = async (): Promise<Content> => {
    try {
      return await kept.sandbox.files.read(path);
    } catch (error) {
      if (error instanceof FileNotFoundError) return null;
      throw error;
    }
  };
  const done = await world.attempt(`read ${path}`, contents, kept.id);
  if (done === undefined) return;
  const after = world.believe(`${path} of ${kept.id}`, () => found(kept.file(path), done.value));
  if (after !== undefined && !kept.struck) kept.files.set(path, after);
};

const count: Use = async (world, kept) => {
  const before = newByProgram(kept.file(COUNT));
  kept.files.set(COUNT, mayHaveWritten(before, ...next(before.now)));
  const done = await world.attempt("count", () => kept.sandbox.commands.run(COUNT_SCRIPT), kept.id);
  if (done === undefined) return void (kept.unsettled = true);
  const number = done.value.stdout.trim();
  const after = kept.struck ? kept.file(COUNT) : before;
  const now = new Set(kept.struck ? [...after.now, ...next(after.now)] : next(before.now));
  world.believe(`the count of ${kept.id}`, () => found({ ...after, now }, number));
  kept.files.set(COUNT, wrote(after, number));
};

/** A program flushed nothing: after a power cut, a file that is new may be there without its contents. */
function newByProgram({ now, afterLoss }: FileBelief): FileBelief {
  return { now, afterLoss: afterLoss.has(null) ? new Set([...afterLoss, ""]) : afterLoss };
}

const sync: Use = async (world, kept) => {
  if ((await world.attempt("sync", () => kept.sandbox.commands.run("sync"), kept.id)) !== undefined) kept.flush();
};

/** Starts the program that has something in its memory. */
export async function startKeeper(world: World, kept: Kept): Promise<void> {
  const secret = `secret-${world.serial()}`;
  const options = { background: true, stdin: true, envs: { SECRET: secret }, timeoutMs: 0 } as const;
  const start = async () => {
    const { pid, disconnect } = await kept.sandbox.commands.run(KEEPER_SCRIPT, options).then((handle) => ({
      pid: handle.pid,
      disconnect: () => handle.disconnect(),
    }));
    await disconnect();
    return pid;
  };
  const done = await world.attempt("start", start, kept.id);
  if (done !== undefined && !kept.struck) kept.keeper = { pid: done.value, secret, count: { least: 0, most: 0 } };
}

/** Sends a line to the program, and hears how many it has counted. */
const tell: Use = async (world, kept) => {
  const { keeper, sandbox } = kept;
  if (keeper === undefined) return startKeeper(world, kept);
  const word = `word-${world.serial()}`;
  const ask = async () => {
    let heard = "";
    const answer = Promise.withResolvers<RegExpExecArray>();
    const handle = await sandbox.commands.connect(keeper.pid, {
      onStdout: (text) => {
        heard += text;
        const said = new RegExp(`^(\\S+) (\\d+) ${word}$`, "m").exec(heard);
        if (said !== null) answer.resolve(said);
      },
      timeoutMs: 0,
    });
    const over = handle.wait().then(() => Promise.reject(new SandboxError("the program that counts has ended")));
    const late = new AbortController();
    const tooLate = delay(ANSWER_MS, undefined, { signal: late.signal }).then(() =>
      Promise.reject(new SandboxError(`no answer to ${word} in ${ANSWER_MS} ms, but ${JSON.stringify(heard)}`)),
    );
    for (const other of [over, tooLate]) other.catch(() => {}); // nobody waits for them any more
    try {
      keeper.count = sent(keeper.count);
      await sandbox.commands.sendStdin(keeper.pid, `${word}\n`);
      keeper.count = taken(keeper.count);
      const [, secret = "", number = ""] = await Promise.race([answer.promise, over, tooLate]);
      return { secret, number: Number(number) };
    } finally {
      late.abort();
      await handle.disconnect();
    }
  };
  const done = await world.attempt(`tell ${keeper.pid}`, ask, kept.id);
  if (done === undefined) return;
  const { secret, number } = done.value;
  if (secret !== keeper.secret)
    world.wrong(`the program in ${kept.id} has ${secret} in its memory, not ${keeper.secret}`);
  const after = world.believe(`the memory of ${kept.id}`, () => counted(keeper.count, number));
  if (after !== undefined) keeper.count = after;
};

/** Several requests at once. */
const everything: Use = (world, kept) => Promise.all([write(world, kept), count(world, kept), tell(world, kept)]);

export const USES = [everything, write, write, read, read, count, count, tell, tell, sync] as const;
