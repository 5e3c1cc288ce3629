/** Runs a command in a machine over a WebSocket that carries its input and outputs. */
import { Readable, Writable } from "node:stream";
import { WebSocket } from "ws";
import { ExecChannel, type ExecExit } from "./exec-channels.ts";
import { type Address, type ClientOptions, errorOf, platformUnreachable, urlOf } from "./transport.ts";

/** What to run, and how. Names are those of the route's query, which the OpenAPI document leaves out. */
export interface ExecOptions {
  /** The program, looked up in PATH, and its arguments. */
  command: string[];
  /** Run the command on a terminal. Default: false. */
  tty?: boolean;
  /** Height of the terminal in characters. Default: 24. */
  rows?: number;
  /** Width of the terminal in characters. Default: 80. */
  columns?: number;
  /** The command's TERM. Default: `xterm`. */
  term?: string;
  /** Whether the command has an input. Default: false, or true with `tty`. */
  stdin?: boolean;
  /** Seconds of the machine's own time, after which the command is killed. Default: 0, no limit. */
  timeout?: number;
  /** `user[:group]`. Default: the image's. */
  user?: string;
  /** Working directory. Default: the image's. */
  workdir?: string;
}

/** A command that is running. Read both of its outputs, or it comes to a halt. */
export interface ExecSession {
  stdin: Writable;
  stdout: Readable;
  /** Empty for a command with a terminal, which has one output. */
  stderr: Readable;
  /** Never rejects. */
  exit: Promise<ExecExit>;
  /** Sets the size of the command's terminal, in characters. */
  resize(rows: number, columns: number): void;
  /** Kills the command and its process group. */
  kill(): void;
}

/** WebSocket's status code for a normal end. */
const NORMAL = 1000;
/** How long the platform has to answer that it closes the connection, in milliseconds. */
const CLOSE_MS = 1000;
/** Bytes of input in one message. The platform refuses messages over 1 MiB. */
const PIECE = 65_536;

/**
 * Starts a command, or connects to a port of a machine: what its program sends is `stdout`, which may end before the
 * connection does. Rejects with an `ApiError` when the platform refuses.
 */
export async function openSession(options: ClientOptions, address: Address): Promise<ExecSession> {
  const url = urlOf(options.apiUrl, address);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  const { clientCertificate: { cert, key } = {} } = options;
  const headers = { authorization: `Bearer ${options.token}` };
  const socket = new WebSocket(url, { headers, ...(cert !== undefined && { cert, key }) });
  const session = sessionOver(socket);
  await opened(socket, options);
  return session;
}

function opened(socket: WebSocket, options: ClientOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once("open", resolve);
    socket.once("error", (cause) => reject(platformUnreachable(options, cause)));
    socket.once("unexpected-response", (_request, response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () => reject(errorOf(response.statusCode ?? 0, Buffer.concat(chunks).toString("utf8"))));
    });
  });
}

function sessionOver(socket: WebSocket): ExecSession {
  // Not Promise.withResolvers, which Node 20 does not have.
  let ended: (how: ExecExit) => void = () => {};
  const exit = new Promise<ExecExit>((resolve) => (ended = resolve));
  const output = () => new Readable({ read: () => socket.resume() });
  const stdout = output();
  const stderr = output();
  const message = (channel: number, rest: Buffer | string = "") =>
    Buffer.concat([Buffer.from([channel]), Buffer.from(rest as string)]);
  socket.on("message", (data: Buffer) => {
    const rest = data.subarray(1);
    if (data[0] === ExecChannel.stdout && !stdout.push(rest)) socket.pause();
    if (data[0] === ExecChannel.stderr && !stderr.push(rest)) socket.pause();
    if (data[0] === ExecChannel.end) stdout.push(null);
    if (data[0] === ExecChannel.exit) ended(JSON.parse(rest.toString()) as ExecExit);
  });
  socket.on("error", () => {});
  socket.on("close", () => {
    stdout.push(null);
    stderr.push(null);
    ended({
      exit_code: null,
      exit_signal: 0,
      timed_out: false,
      error: "the connection to the platform was lost",
    });
  });
  const stdin = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      for (let at = 0; at + PIECE < chunk.length; at += PIECE)
        socket.send(message(ExecChannel.stdin, chunk.subarray(at, at + PIECE)));
      socket.send(
        message(ExecChannel.stdin, chunk.subarray(Math.floor(Math.max(0, chunk.length - 1) / PIECE) * PIECE)),
        done,
      );
    },
    final: (done) => socket.send(message(ExecChannel.end), done),
  });
  stdin.on("error", () => {}); // The command is over, and `exit` says why.
  return {
    stdin,
    stdout,
    stderr,
    exit,
    resize: (rows, columns) => {
      if (socket.readyState === WebSocket.OPEN)
        socket.send(message(ExecChannel.resize, JSON.stringify({ rows, columns })));
    },
    kill: () => {
      socket.close(NORMAL);
      // A session whose outputs nobody reads does not see the platform's answer.
      setTimeout(() => socket.terminate(), CLOSE_MS).unref();
    },
  };
}
