/** A name server on loopback: every name leads to 127.0.0.1, and TXT records come from a file that a hook writes. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { type Answer, decode, encode } from "dns-packet";
import { onTestFinished } from "vitest";

export interface TestDns {
  /** `127.0.0.1:port` */
  address: string;
  /** Names that do not exist. */
  readonly missing: Set<string>;
}

/** Starts the server. `txtFile` has a line for each record: the name, a space, and the value. */
export async function startDns(txtFile?: string): Promise<TestDns> {
  const socket = createSocket("udp4");
  const dns: TestDns = { address: "", missing: new Set() };
  socket.on("message", (message, { address, port }) => {
    void answer(message).then((reply) => socket.send(reply, port, address));
  });

  async function answer(message: Buffer): Promise<Buffer> {
    const { id, questions = [] } = decode(message);
    const [question] = questions;
    if (question === undefined) throw new Error("a query without a question");
    const { type } = question;
    const name = question.name.toLowerCase();
    const answers: Answer[] = dns.missing.has(name) ? [] : await recordsOf(type, name, question.name);
    // 0x0400: the answer is authoritative.
    return encode({ type: "response", id: id ?? 0, flags: 0x0400, questions, answers });
  }

  async function recordsOf(type: string, name: string, asked: string): Promise<Answer[]> {
    if (type === "A") return [{ type, name: asked, ttl: 0, data: "127.0.0.1" }];
    if (type !== "TXT" || txtFile === undefined) return [];
    const lines = (await readFile(txtFile, "utf8").catch(() => "")).split("\n").map((line) => line.split(" "));
    return lines
      .filter(([owner]) => owner === name)
      .map(([, value = ""]) => ({ type, name: asked, ttl: 0, data: value }));
  }

  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  dns.address = `127.0.0.1:${socket.address().port}`;
  onTestFinished(() => new Promise<void>((resolve) => void socket.close(() => resolve())));
  return dns;
}
