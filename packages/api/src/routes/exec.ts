/** `POST .../machines/{machine_id}/exec`: runs a command in a machine and replies when it has ended. */
import type { Readable } from "node:stream";
import { HibernautError } from "@hibernaut/domain/errors";
import { GuestError } from "@hibernaut/guest";
import { given } from "@hibernaut/lib/given";
import { clientGone } from "../client-gone.ts";
import type { Api, ApiDeps } from "../deps.ts";
import { routesOf } from "../route.ts";
import { ExecBody, ExecReply } from "./exec.schemas.ts";
import { MachineParams } from "./machines.schemas.ts";

const route = routesOf("machines");

/** Limit for stdout and stderr each. The rest is read and dropped, so that the command does not block. */
const MAX_OUTPUT_BYTES = 1024 * 1024;
const TIMEOUT_S = 60;
/** Added to the number of the signal that ended a command, as shells do. */
const SIGNAL_BASE = 128;

/** Registers the route that replies with the whole output. `exec-stream.ts` streams it instead. */
export function execRoute(app: Api, { commands }: Pick<ApiDeps, "commands">): void {
  app.post(
    "/v1/apps/:app_name/machines/:machine_id/exec",
    route(
      "Run a command in a machine",
      { scope: "exec" },
      {
        description: `Keeps the first ${MAX_OUTPUT_BYTES} bytes of stdout and of stderr. Kills the command and its process group after the timeout. With \`Upgrade: websocket\`, the same path streams the output; see the documentation.`,
        params: MachineParams,
        body: ExecBody,
        reply: ExecReply,
      },
    ),
    async ({ params, body }, reply) => {
      const { command: args, stdin = "", timeout = TIMEOUT_S, env, user, workdir } = body;
      const command = commands.run(params.app_name, params.machine_id, {
        args,
        input: stdin !== "",
        timeoutMs: timeout * 1000,
        ...given({ env, user, workdir }),
      });
      clientGone(reply).addEventListener("abort", () => command.kill());
      try {
        command.stdin.end(stdin);
        const [stdout, stderr, exit] = await Promise.all([
          collect(command.stdout),
          collect(command.stderr),
          command.exit,
        ]);
        return {
          exit_code: exit.signal === 0 ? exit.code : SIGNAL_BASE + exit.signal,
          exit_signal: exit.signal,
          stdout: stdout.text,
          stderr: exit.failure === undefined ? stderr.text : `${notStarted(args, exit.failure)}\n`,
          timed_out: exit.timedOut,
          truncated: stdout.truncated || stderr.truncated,
        };
      } catch (error) {
        if (error instanceof GuestError)
          throw new HibernautError("aborted", `The command did not end: ${error.message}.`, params);
        throw error;
      }
    },
  );
}

/** Returns why a command did not start, with the name of the program, which the guest leaves out. */
export function notStarted([program = ""]: readonly string[], failure: string): string {
  return `${program}: ${failure}`;
}

async function collect(output: Readable): Promise<{ text: string; truncated: boolean }> {
  const kept: Buffer[] = [];
  let size = 0;
  for await (const chunk of output as AsyncIterable<Buffer>) {
    if (size < MAX_OUTPUT_BYTES) kept.push(chunk.subarray(0, MAX_OUTPUT_BYTES - size));
    size += chunk.length;
  }
  return { text: Buffer.concat(kept).toString("utf8"), truncated: size > MAX_OUTPUT_BYTES };
}
