/** Bodies of requests between hosts, and of the answers: text of a limited length. */
import type { IncomingMessage } from "node:http";
import { ERROR_STATUS, type ErrorCode, HibernautError } from "@hibernaut/domain/errors";

/** Reads a body. Rejects with the error of `tooLong` when it has more bytes. */
export async function textOf(body: AsyncIterable<Buffer>, mostBytes: number, tooLong: () => Error): Promise<string> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of body) {
    bytes += piece.length;
    if (bytes > mostBytes) throw tooLong();
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString();
}

interface Refusal {
  error?: string;
  message?: string;
  details?: Record<string, unknown>;
}

/** Reads what a host answers, as JSON. Rejects with the error that it answers. */
export async function answerOf(answer: IncomingMessage, mostBytes: number, tooLong: () => Error): Promise<unknown> {
  const value: unknown = JSON.parse(await textOf(answer, mostBytes, tooLong));
  if (answer.statusCode === 200) return value;
  const { error = "", message, details } = value as Refusal;
  const code = error in ERROR_STATUS ? (error as ErrorCode) : "internal";
  throw new HibernautError(code, message ?? `it replied ${answer.statusCode}`, details);
}
