/**
 * `GET .../machines/{machine_id}/exec` as a WebSocket: runs a command and streams its input and outputs.
 * Every message is binary, and its first byte is the channel.
 */
import type { Readable } from "node:stream";
import type { WebSocket } from "@fastify/websocket";
import type { GuestCommand } from "@hibernaut/guest";
import { background } from "@hibernaut/lib/background";
import { messageOf } from "@hibernaut/lib/text";
import type { Static } from "typebox";
import type { Api, ApiDeps } from "../deps.ts";
import { routesOf } from "../route.ts";
import { streamed } from "../schemas.ts";
import { ExecStreamQuery } from "./exec.schemas.ts";
import { notStarted } from "./exec.ts";
import { MachineParams } from "./machines.schemas.ts";

const route = routesOf("machines");

/** First bytes of messages. `packages/client/src/exec-channels.ts` has the same values. */
const Channel = {
  /** To the command: input. */
  stdin: 0,
  stdout: 1,
  stderr: 2,
  /** The last message from the platform: JSON `{exit_code, exit_signal, timed_out, error}`. */
  exit: 3,
  /** To the command's terminal: JSON `{rows, columns}`. */
  resize: 4,
  /** To the command: the end of the input. From a forwarded port: the end of what its program sends. */
  end: 5,
} as const;

const DEFAULT_ROWS = 24;
const DEFAULT_COLUMNS = 80;
const SIGNAL_BASE = 128;
/** A client that disappears without closing the connection is noticed after two of these. */
const PING_INTERVAL_MS = 30_000;
/** The close code of a WebSocket for a normal end. */
const NORMAL = 1000;

/** Registers the route that streams a command. */
export function execStreamRoute(app: Api, { commands }: Pick<ApiDeps, "commands">): void {
  app.get(
    "/v1/apps/:app_name/machines/:machine_id/exec",
    {
      ...route(
        "Run a command in a machine and stream its input and output over a WebSocket",
        { scope: "exec" },
        {
          params: MachineParams,
          querystring: ExecStreamQuery,
          response: streamed(101, "application/octet-stream", "a WebSocket"),
        },
      ),
      websocket: true,
      // Before the upgrade, so that a refusal is an HTTP error. The command itself begins when there is someone to hear it.
      preHandler: async ({ params, query }) => {
        commands.require(params.app_name, params.machine_id, specOf(query));
      },
    },
    (socket, { params, query }) => {
      const spec = specOf(query);
      const begin = () => commands.run(params.app_name, params.machine_id, spec);
      background(streamCommand(socket, begin, spec.args), "the stream of a command");
    },
  );
}

function specOf(query: Static<typeof ExecStreamQuery>) {
  const { command, tty = false, stdin = false, timeout = 0, rows, columns, user, workdir } = query;
  const terminal = { rows: rows ?? DEFAULT_ROWS, columns: columns ?? DEFAULT_COLUMNS };
  return {
    args: [command].flat(),
    input: stdin || tty,
    timeoutMs: timeout * 1000,
    ...(tty && { terminal, env: { TERM: query.term ?? "xterm" } }),
    ...(user !== undefined && { user }),
    ...(workdir !== undefined && { workdir }),
  };
}

/**
 * Connects a WebSocket with a command until the command ends or the client is gone. A command that cannot begin is reported
 * like one that failed: what could be known before was refused before the upgrade.
 *
 * @param options with `ends`, the end of the output is a message of its own, because the command may still read then
 */
export async function streamCommand(
  socket: WebSocket,
  begin: () => GuestCommand,
  args: readonly string[],
  { ends = false } = {},
): Promise<void> {
  let command: GuestCommand;
  try {
    command = begin();
  } catch (error) {
    return close(socket, unknownEnd(error));
  }
  const stopPinging = watch(socket);
  socket.on("close", () => {
    stopPinging();
    command.kill("the client disconnected");
  });
  socket.on("error", () => socket.terminate());
  socket.on("message", (data: Buffer) => take(socket, command, data));
  const outputs = Promise.all([
    send(socket, Channel.stdout, command.stdout, ends ? Channel.end : undefined),
    send(socket, Channel.stderr, command.stderr),
  ]);
  const report = await command.exit.then(
    ({ code, signal, timedOut, failure }) => ({
      exit_code: signal === 0 ? code : SIGNAL_BASE + signal,
      exit_signal: signal,
      timed_out: timedOut,
      error: failure === undefined ? null : notStarted(args, failure),
    }),
    unknownEnd,
  );
  await outputs.catch(() => {});
  close(socket, report);
}

/** How a command ended of which nobody knows how it ended. */
function unknownEnd(error: unknown): object {
  return { exit_code: null, exit_signal: 0, timed_out: false, error: messageOf(error) };
}

function close(socket: WebSocket, report: object): void {
  if (socket.readyState !== socket.OPEN) return;
  socket.send(Buffer.concat([Buffer.from([Channel.exit]), Buffer.from(JSON.stringify(report))]));
  socket.close(NORMAL);
}

/** Sends one message at a time, so that a slow client slows the command down instead of filling our memory. */
async function send(socket: WebSocket, channel: number, output: Readable, end?: number): Promise<void> {
  for await (const chunk of output as AsyncIterable<Buffer>) {
    await new Promise<void>((resolve, reject) => {
      socket.send(Buffer.concat([Buffer.from([channel]), chunk]), (error) => (error ? reject(error) : resolve()));
    });
  }
  if (end !== undefined && socket.readyState === socket.OPEN) socket.send(Buffer.from([end]));
}

function take(socket: WebSocket, command: GuestCommand, data: Buffer): void {
  const rest = data.subarray(1);
  if (data[0] === Channel.end) command.stdin.end();
  if (data[0] === Channel.resize) resize(command, rest);
  if (data[0] !== Channel.stdin || command.stdin.writableEnded || command.stdin.destroyed) return;
  if (!command.stdin.write(rest) && !socket.isPaused) waitForRoom(socket, command);
}

function waitForRoom(socket: WebSocket, { stdin }: GuestCommand): void {
  const proceed = () => {
    stdin.off("drain", proceed).off("close", proceed);
    socket.resume();
  };
  socket.pause();
  stdin.on("drain", proceed).on("close", proceed);
}

function resize(command: GuestCommand, text: Buffer): void {
  try {
    const { rows, columns } = JSON.parse(text.toString()) as { rows: number; columns: number };
    if (isSize(rows) && isSize(columns)) command.resize(rows, columns);
  } catch {
    // Not a size: the terminal keeps the one it has.
  }
}

function isSize(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) > 0 && Number(value) < 65_536;
}

function watch(socket: WebSocket): () => void {
  let answered = true;
  socket.on("pong", () => {
    answered = true;
  });
  const timer = setInterval(() => {
    if (!answered) socket.terminate();
    answered = false;
    socket.ping();
  }, PING_INTERVAL_MS);
  return () => clearInterval(timer);
}
