/** `.../machines/{machine_id}/ps` and `/signal`: what runs in a machine, and signals to its app. */
import { type GuestProcess, PROTOS } from "@hibernaut/machines";
import { Type } from "typebox";
import { clientGone } from "../client-gone.ts";
import type { Api, ApiDeps } from "../deps.ts";
import { routesOf } from "../route.ts";
import { closed, Ok, oneOf, signalName } from "../schemas.ts";
import { MachineParams } from "./machines.schemas.ts";

const route = routesOf("machines");

const SignalBody = Type.Object(
  { signal: signalName("One of signal(7), such as SIGHUP, SIGINT, SIGTERM, SIGKILL, SIGUSR1, SIGSTOP or SIGWINCH.") },
  { ...closed, title: "SignalRequest" },
);

const count = (description: string) => Type.Integer({ minimum: 0, description });

const Process = Type.Object(
  {
    pid: count("Its number in the machine."),
    stime: count("When it began, in seconds of the machine's own time after its boot."),
    rtime: count("For how many seconds of that time it has run. The time stops while the machine sleeps."),
    command: Type.String({ description: "Its arguments, or the name of its program in brackets. Up to 4 KiB." }),
    directory: Type.String({ description: "Where it works. Empty if that is not known." }),
    cpu: count("Per cent of one CPU that it had, on average since it began."),
    rss: count("Bytes of memory."),
    listen_sockets: Type.Array(
      Type.Object(
        { proto: oneOf(PROTOS), address: Type.String({ description: "`0.0.0.0:8080` or `[::]:8080`." }) },
        closed,
      ),
      { description: "Where it listens; for UDP, sockets that are bound." },
    ),
  },
  { ...closed, title: "Process", description: "A process in a machine." },
);

const SORTED = ["pid", "stime", "rtime", "cpu", "rss", "command", "directory"] as const;

/** `?sort_by=rss&order=desc` */
const SortQuery = Type.Object(
  {
    sort_by: Type.Optional(oneOf(SORTED)),
    order: Type.Optional(oneOf(["asc", "desc"])),
  },
  closed,
);

/** Registers the routes about what runs in a machine. */
export function processRoutes(app: Api, { processes }: Pick<ApiDeps, "processes">): void {
  const path = "/v1/apps/:app_name/machines/:machine_id";

  app.get(
    `${path}/ps`,
    route(
      "List the processes of a running machine",
      { scope: "exec" },
      {
        description:
          "Without those of its kernel; at most 1000, those with the lowest numbers. Sorted by `pid` unless `sort_by` says otherwise.",
        params: MachineParams,
        querystring: SortQuery,
        reply: Type.Array(Process),
      },
    ),
    async ({ params, query: { sort_by: by = "pid", order = "asc" } }, reply) => {
      const listed = await processes.list(params.app_name, params.machine_id, clientGone(reply));
      const sign = order === "asc" ? 1 : -1;
      return listed.map(processWire).sort((one, other) => sign * compared(one[by], other[by]));
    },
  );

  app.post(
    `${path}/signal`,
    route(
      "Send a signal to the app of a running machine",
      { scope: ["exec", "deploy"], audited: ["signal"] },
      {
        description:
          "The first process of the app gets it. What follows is up to the app; if it exits, its restart policy decides.",
        params: MachineParams,
        body: SignalBody,
        reply: Ok,
      },
    ),
    async ({ params, body }, reply) => {
      await processes.signal(params.app_name, params.machine_id, body.signal, clientGone(reply));
      return { ok: true as const };
    },
  );
}

function processWire({ pid, startedMs, ranMs, cpuMs, residentBytes, command, directory, sockets }: GuestProcess) {
  return {
    pid,
    stime: Math.floor(startedMs / 1000),
    rtime: Math.floor(ranMs / 1000),
    ...{ command, directory },
    cpu: ranMs === 0 ? 0 : Math.round((100 * cpuMs) / ranMs),
    rss: residentBytes,
    listen_sockets: sockets,
  };
}

function compared<T extends number | string>(one: T, other: T): number {
  return one < other ? -1 : Number(one > other);
}
