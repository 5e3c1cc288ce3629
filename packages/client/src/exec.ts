/** A command in a machine whose input and outputs are streamed over a WebSocket. */
import { Readable, Writable } from "node:stream";
import { WebSocket } from "ws";
import { ApiError } from "./error.ts";
import { type ClientOptions, refusalOf, urlOf } from "./transport.ts";

/** What to run. */
export interface ExecOptions {
  command: string[];
  /** With a terminal, of `rows` and `columns` characters. */
  tty?: boolean;
  rows?: number;
  columns?: number;
  /** TERM in the machine. */
  term?: string;
  /** Whether it has an input. */
  stdin?: boolean;
  /** Seconds; 0 or absent is never. */
  timeoutS?: number;
  user?: string;
  workdir?: string;
}

/** How it ended. */
export interface ExecExit {
  /** 128 + the signal when one ended it; null when the machine went away first. */
  exit_code: number | null;
  exit_signal: number;
  timed_out: boolean;
  /** Why it could not be run, or what became of it. */
  error: string | null;
}

/** A command that runs. Both outputs have to be read. */
export interface ExecSession {
  stdin: Writable;
  stdout: Readable;
  stderr: Readable;
  exit: Promise<ExecExit>;
  resize(rows: number, columns: number): void;
  /** Ends it, with its process group. */
  kill(): void;
}

/** First bytes of messages. The platform's twin is `packages/platform/src/api/routes/exec-stream.ts`. */
const Channel = { stdin: 0, stdout: 1, stderr: 2, exit: 3, resize: 4, end: 5 } as const;
const NORMAL = 1000;
/** Bytes of input in one message; the platform refuses messages over 1 MiB. */
const PIECE = 65_536;

/** Starts a command. Rejects with an `ApiError` when the platform refuses. */
export async function openExec(options: ClientOptions, path: string[], exec: ExecOptions): Promise<ExecSession> {
  const url = urlOf(options.apiUrl, path, {
    tty: exec.tty ? "true" : undefined,
    stdin: exec.stdin ? "true" : undefined,
    rows: exec.rows?.toString(),
    columns: exec.columns?.toString(),
    term: exec.term,
    timeout: exec.timeoutS?.toString(),
    user: exec.user,
    workdir: exec.workdir,
  });
  for (const word of exec.command) url.searchParams.append("command", word);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  const socket = new WebSocket(url, { headers: { authorization: `Bearer ${options.token}` } });
  const session = sessionOver(socket);
  await opened(socket, options);
  return session;
}

function opened(socket: WebSocket, { apiUrl }: ClientOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once("open", resolve);
    socket.once("error", (cause) => {
      const message = `The platform does not answer at ${apiUrl}. Start it with \`hibernaut serve\`, or name another one with HIBERNAUT_API_URL.`;
      reject(new ApiError({ code: "unavailable", message, cause }));
    });
    socket.once("unexpected-response", (_request, response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () => reject(refusalOf(response.statusCode ?? 0, Buffer.concat(chunks).toString("utf8"))));
    });
  });
}

function sessionOver(socket: WebSocket): ExecSession {
  const exit = Promise.withResolvers<ExecExit>();
  const output = () => new Readable({ read: () => socket.resume() });
  const stdout = output();
  const stderr = output();
  const message = (channel: number, rest: Buffer | string = "") =>
    Buffer.concat([Buffer.from([channel]), Buffer.from(rest as string)]);
  socket.on("message", (data: Buffer) => {
    const rest = data.subarray(1);
    if (data[0] === Channel.stdout && !stdout.push(rest)) socket.pause();
    if (data[0] === Channel.stderr && !stderr.push(rest)) socket.pause();
    if (data[0] === Channel.exit) exit.resolve(JSON.parse(rest.toString()) as ExecExit);
  });
  socket.on("error", () => {});
  socket.on("close", () => {
    stdout.push(null);
    stderr.push(null);
    exit.resolve({ exit_code: null, exit_signal: 0, timed_out: false, error: "the connection to the platform broke" });
  });
  const stdin = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      for (let at = 0; at + PIECE < chunk.length; at += PIECE)
        socket.send(message(Channel.stdin, chunk.subarray(at, at + PIECE)));
      socket.send(
        message(Channel.stdin, chunk.subarray(Math.floor(Math.max(0, chunk.length - 1) / PIECE) * PIECE)),
        done,
      );
    },
    final: (done) => socket.send(message(Channel.end), done),
  });
  stdin.on("error", () => {}); // the command is over; `exit` tells
  return {
    stdin,
    stdout,
    stderr,
    exit: exit.promise,
    resize: (rows, columns) => {
      if (socket.readyState === WebSocket.OPEN) socket.send(message(Channel.resize, JSON.stringify({ rows, columns })));
    },
    kill: () => socket.close(NORMAL),
  };
}
