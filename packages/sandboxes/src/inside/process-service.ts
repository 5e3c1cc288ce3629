/** The service `process.Process`. */
import { posix } from "node:path";
import type { ConnectRouter, HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { Refusal } from "../failure.ts";
import { environmentOf, type Inside } from "./inside.ts";
import { KEEPALIVE_HEADER, keptAlive } from "./keepalive.ts";
import { MOST_TERMINAL } from "./limits.ts";
import type { ProcessMessage, Process as Program } from "./process.ts";
import type { ProcessWord } from "./processes.ts";
import {
  type ProcessInput,
  type ProcessSelector,
  Process as ProcessService,
  Signal,
  type StartRequest,
} from "./protocol/processes_pb.ts";

const SIGNALS: Partial<Record<Signal, number>> = { [Signal.SIGTERM]: 15, [Signal.SIGKILL]: 9 };

/** Registers the service. `insideOf` finds the sandbox of a request. */
export function processService(router: ConnectRouter, insideOf: (context: HandlerContext) => Inside): void {
  const programOf = (context: HandlerContext, selector: ProcessSelector | undefined) => {
    const { processes, view } = insideOf(context);
    return processes.require(view.record.id, wordOf(selector));
  };
  const implementation: ServiceImpl<typeof ProcessService> = {
    list(_request, context) {
      const { processes, view } = insideOf(context);
      return {
        processes: processes.list(view.record.id).map(({ pid, label: { cmd, args, envs, cwd, tag } }) => ({
          pid,
          config: { cmd, args, envs, ...(cwd !== undefined && { cwd }) },
          ...(tag !== undefined && { tag }),
        })),
      };
    },
    async *start(request, context) {
      const program = await begin(request, insideOf(context), context);
      yield* eventsOf(program, insideOf(context), context);
    },
    async *connect(request, context) {
      yield* eventsOf(programOf(context, request.process), insideOf(context), context);
    },
    update(request, context) {
      const program = programOf(context, request.process);
      const size = sizeOf(request.pty);
      if (size !== undefined) program.resize(size.rows, size.columns);
      return {};
    },
    async streamInput(requests, context) {
      let program: Program | undefined;
      for await (const { event } of requests) {
        if (event.case === "start") program = programOf(context, event.value.process);
        if (event.case !== "data") continue;
        if (program === undefined) throw new Refusal(400, "The first message has to say which process it is for.");
        await write(program, event.value.input);
      }
      return {};
    },
    async sendInput(request, context) {
      await write(programOf(context, request.process), request.input);
      return {};
    },
    sendSignal(request, context) {
      const signal = SIGNALS[request.signal];
      if (signal === undefined) throw new Refusal(400, "Only SIGTERM and SIGKILL can be sent.");
      programOf(context, request.process).signal(signal);
      return {};
    },
    closeStdin(request, context) {
      programOf(context, request.process).closeInput();
      return {};
    },
  };
  router.service(ProcessService, implementation);
}

async function begin(request: StartRequest, inside: Inside, context: HandlerContext): Promise<Program> {
  const { cmd = "", args = [], envs = {}, cwd } = request.process ?? {};
  if (cmd === "") throw new Refusal(400, "`process.cmd` is empty: there is nothing to start.");
  const { guest, processes, view } = inside;
  const size = sizeOf(request.pty);
  const { workdir } = view.record.programs ?? {};
  const where = workdir === undefined ? (cwd ?? "") : posix.resolve(workdir, cwd ?? "");
  return processes.start(view.record.id, guest, {
    ...{ cmd, args, envs, terminal: request.pty !== undefined, stdin: request.stdin ?? true },
    ...(where !== "" && { cwd: where }),
    ...(request.tag !== undefined && { tag: request.tag }),
    ...(size !== undefined && { size }),
    user: await guest.user(inside.named),
    env: environmentOf(view),
    timeoutMs: context.timeoutMs() ?? 0,
  });
}

function eventsOf(program: Program, inside: Inside, context: HandlerContext) {
  const header = context.requestHeader.get(KEEPALIVE_HEADER);
  return keptAlive(followed(program, inside, context.signal), header, () => ({
    event: { event: { case: "keepalive" as const, value: {} } },
  }));
}

async function* followed(program: Program, inside: Inside, signal: AbortSignal) {
  const messages = program.follow(signal);
  yield { event: { event: { case: "start" as const, value: { pid: program.pid } } } };
  for await (const message of messages) {
    if (message.kind === "end" && "lost" in message.exit) inside.breakOff();
    yield { event: { event: eventOf(message) } };
    if (message.kind === "end") return;
  }
  // The client's time is over: a stream that just ended would look as if the program had told nothing.
  signal.throwIfAborted();
}

function eventOf(message: ProcessMessage) {
  if (message.kind !== "end") {
    const { kind, bytes } = message;
    return { case: "data" as const, value: { output: { case: kind, value: new Uint8Array(bytes) } } };
  }
  const { exit } = message;
  if ("lost" in exit) throw new Refusal(503, `The sandbox is gone, or was started again: ${exit.lost}.`);
  if (exit.signal !== 0) {
    const status = exit.timedOut ? "signal: killed (its time was over)" : `signal: ${exit.signal}`;
    return end({ exitCode: -1, exited: false, status, error: status });
  }
  const status = `exit status ${exit.code}`;
  return end({ exitCode: exit.code, exited: true, status, ...(exit.code !== 0 && { error: status }) });
}

function end(value: { exitCode: number; exited: boolean; status: string; error?: string }) {
  return { case: "end" as const, value };
}

/** The size of a terminal, in characters. Undefined if the client leaves it as it is. Throws a {@link Refusal} with 400. */
function sizeOf(pty: { size?: { rows: number; cols: number } | undefined } | undefined) {
  if (pty?.size === undefined) return undefined;
  const { rows, cols: columns } = pty.size;
  if (Math.max(rows, columns) <= MOST_TERMINAL) return { rows, columns };
  throw new Refusal(400, `A terminal has at most ${MOST_TERMINAL} rows and columns.`);
}

function wordOf(selector: ProcessSelector | undefined): ProcessWord {
  const { case: kind, value } = selector?.selector ?? {};
  if (kind === "pid") return { pid: value as number };
  if (kind === "tag") return { tag: value as string };
  throw new Refusal(400, "The request does not say which process it is for.");
}

async function write(program: Program, input: ProcessInput | undefined): Promise<void> {
  const { case: kind, value } = input?.input ?? {};
  if (kind === undefined || value === undefined) throw new Refusal(400, "The request has no input.");
  if ((kind === "pty") !== program.label.terminal)
    throw new Refusal(
      400,
      program.label.terminal ? "The process has a terminal: send `pty`." : "The process has no terminal: send `stdin`.",
    );
  await program.write(value);
}
