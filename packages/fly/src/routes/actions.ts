/** What is done with a machine: start, stop, suspend, restart, signal, cordon, exec, ps, and the wait for a state. */
import { STOP_TIMEOUT_S } from "@hibernaut/domain/limits";
import { Type } from "typebox";
import { durationMs } from "../config/duration.ts";
import { wordsOf } from "../config/words.ts";
import { PlatformRefusal, Refusal } from "../failure.ts";
import { stateOf } from "../view/machine.ts";
import type { PlatformMachine } from "../view/platform.ts";
import { asking, flag, textsOf } from "./query.ts";
import { machineAt as at, type Call, MACHINE, type Routes } from "./table.ts";

/** How long clients may wait for a state, in seconds, and how long they do who do not say. */
const WAIT_S = { least: 1, most: 60 } as const;
/** What clients wait for, in the platform's words. */
const WAITED: ReadonlyMap<string, string> = new Map([
  ["started", "running"],
  ["stopped", "stopped"],
  ["suspended", "suspended"],
  ["destroyed", "destroyed"],
  ["created", "created"],
  ["failed", "failed"],
  ["settled", "settled"],
]);
/** Signals by number: fly-go sends 9. */
const SIGNALS: Readonly<Record<number, string>> = {
  1: "SIGHUP",
  2: "SIGINT",
  3: "SIGQUIT",
  9: "SIGKILL",
  10: "SIGUSR1",
  12: "SIGUSR2",
  15: "SIGTERM",
};

/** A number below this counts seconds: fewer nanoseconds are less than a millisecond. fly-go has restarts of both. */
const LEAST_NANOSECONDS = 1_000_000;

const Signal = Type.Union([Type.Integer(), Type.String({ maxLength: 16 })]);
const SignalBody = Type.Object({ signal: Signal });
const ExecBody = Type.Object({
  cmd: Type.Optional(Type.String({ maxLength: 131_072 })),
  command: Type.Optional(Type.Array(Type.String())),
  stdin: Type.Optional(Type.String()),
  timeout: Type.Optional(Type.Integer({ minimum: 0 })),
  container: Type.Optional(Type.String()),
});
const StopBody = Type.Object({
  signal: Type.Optional(Signal),
  timeout: Type.Optional(Type.Union([Type.Number({ minimum: 0 }), Type.String({ maxLength: 64 })])),
});

export function actionRoutes(route: Routes): void {
  route("POST", `${MACHINE}/start`, {}, async (call) => {
    const { previous_state } = (await call.ask("POST", `${at(call)}/start`)) as {
      previous_state: PlatformMachine["state"];
    };
    return { ok: true, previous_state: stateOf(previous_state) };
  });
  for (const action of ["suspend", "cordon", "uncordon"])
    route("POST", `${MACHINE}/${action}`, {}, async (call) => call.ask("POST", `${at(call)}/${action}`));
  route("POST", `${MACHINE}/stop`, { body: StopBody }, async (call) =>
    call.ask("POST", `${at(call)}/stop`, termsOf(call.body)),
  );
  route("POST", `${MACHINE}/restart`, {}, async (call) => {
    const { signal, timeout, force_stop } = call.query;
    const forced = flag(force_stop) ? { signal: "SIGKILL" } : {};
    const terms = termsOf({ signal: textsOf(signal)[0], timeout: textsOf(timeout)[0] });
    return call.ask("POST", `${at(call)}/restart`, { ...forced, ...terms });
  });

  route("POST", `${MACHINE}/signal`, { body: SignalBody }, async (call) => {
    return call.ask("POST", `${at(call)}/signal`, { signal: signalOf(call.body.signal) });
  });

  route("GET", `${MACHINE}/ps`, {}, async (call) => {
    const { sort_by, order } = call.query;
    const search = new URLSearchParams();
    for (const [key, value] of Object.entries({ sort_by, order }))
      if (value !== undefined) search.set(key, String(value));
    return call.ask("GET", asking(`${at(call)}/ps`, search));
  });

  route("POST", `${MACHINE}/exec`, { body: ExecBody }, async (call) => {
    const { cmd = "", command = wordsOf(cmd), stdin, timeout = 0, container = "" } = call.body;
    if (command.length === 0) throw new Refusal(400, "invalid_argument: cmd is missing.");
    if (container !== "") throw new Refusal(501, "A machine runs one image: leave `container` out.");
    const { exit_code, exit_signal, stdout, stderr } = (await call.ask("POST", `${at(call)}/exec`, {
      command,
      ...(stdin !== undefined && { stdin }),
      ...(timeout > 0 && { timeout }),
    })) as { exit_code: number; exit_signal: number; stdout: string; stderr: string };
    return { exit_code, exit_signal, stdout, stderr };
  });

  route("GET", `${MACHINE}/wait`, {}, waitFor);
}

/** How a stop is, in the platform's words, and no longer than it may take here. What fly-go leaves out it sends as `""` and `"0s"`: the machine's own. */
function termsOf({
  signal = "",
  timeout = 0,
}: Partial<Record<"signal" | "timeout", string | number | undefined>>): object {
  const counts = Number(timeout);
  const isSeconds = counts >= 0 && counts < LEAST_NANOSECONDS;
  const ms = isSeconds ? counts * 1000 : durationMs(counts > 0 ? counts : timeout, "timeout");
  return {
    ...(signal !== "" && { signal: signalOf(signal) }),
    ...(ms > 0 && { timeout: Math.min(Math.ceil(ms / 1000), STOP_TIMEOUT_S.maximum) }),
  };
}

/** By number, also as text, or by name, with or without `SIG`. */
function signalOf(signal: string | number): string {
  const text = String(signal);
  const name = /^-?\d+$/.test(text) ? SIGNALS[Number(text)] : text.replace(/^(?!SIG)/, "SIG");
  if (name !== undefined) return name;
  throw new Refusal(400, `invalid_argument: There is no signal ${String(signal)} to send.`);
}

async function waitFor(call: Call): Promise<unknown> {
  const wanted = textsOf(call.query["state"]).flatMap((text) => text.split(","));
  const states = (wanted.length === 0 ? ["started"] : wanted).map((word) => {
    const state = WAITED.get(word);
    if (state === undefined)
      throw new Refusal(
        400,
        `invalid_argument: Nobody can wait for ${JSON.stringify(word).slice(0, 60)}. Wait for ${[...WAITED.keys()].join(", ")}.`,
      );
    return state;
  });
  const seconds = Number(call.query["timeout"] ?? WAIT_S.most);
  if (!(seconds >= WAIT_S.least && seconds <= WAIT_S.most))
    throw new Refusal(400, `invalid_argument: timeout must be ${WAIT_S.least} to ${WAIT_S.most} seconds.`);
  try {
    const { state } = (await call.ask(
      "GET",
      `${at(call)}/wait?state=${states.join(",")}&timeout=${Math.ceil(seconds)}`,
    )) as Pick<PlatformMachine, "state">;
    return { ok: true, state: stateOf(state) };
  } catch (error) {
    throw error instanceof PlatformRefusal ? await missed(call, error, wanted) : error;
  }
}

/** Clients look for the words `failed to reach desired state`, and for what the machine does instead. */
async function missed(call: Call, error: PlatformRefusal, wanted: readonly string[]): Promise<Error> {
  if (error.code !== "deadline_exceeded" && error.code !== "failed_precondition") return error;
  const { state } = (await call.ask("GET", at(call))) as PlatformMachine;
  const goal = wanted.length === 0 ? "started" : wanted.join(", ");
  const text = `machine failed to reach desired state, ${goal}, currently ${stateOf(state)}`;
  return new Refusal(error.statusCode, `${error.code}: ${text}`);
}
