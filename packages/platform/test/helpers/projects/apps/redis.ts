/** What these programs need of a client for Redis: one connection that stays open, and one command at a time. */
import { connect } from "node:net";
import { createInterface } from "node:readline";

export interface Redis {
  /** Sends a command. Returns what is answered; the last part of a list. */
  ask(...words: string[]): Promise<string | undefined>;
}

export function openRedis(host: string): Redis {
  const socket = connect(6379, host).on("error", (error) => {
    console.error(`Redis: ${error.message}`);
    process.exit(1); // it is started again
  });
  const lines = createInterface(socket)[Symbol.asyncIterator]();
  const line = async () => String((await lines.next()).value);
  const read = async (): Promise<string | undefined> => {
    const head = await line();
    const [kind, rest] = [head[0], head.slice(1)];
    if (kind === "-") throw new Error(rest);
    if (kind === "$") return rest === "-1" ? undefined : line();
    if (kind !== "*") return rest;
    let last: string | undefined;
    for (let left = Number(rest); left > 0; left -= 1) last = await read();
    return last;
  };
  let before: Promise<unknown> = Promise.resolve();
  return {
    ask(...words) {
      const bulk = words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("");
      const answered = before.then(() => {
        socket.write(`*${words.length}\r\n${bulk}`);
        return read();
      });
      before = answered.catch(() => {});
      return answered;
    },
  };
}
