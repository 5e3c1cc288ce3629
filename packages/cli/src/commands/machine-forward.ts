/** `hibernaut machine forward`: ports of this computer that lead into a machine. */
import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import type { ExecSession, HibernautClient } from "@hibernaut/client";
import { command } from "../command.ts";
import type { Context } from "../context.ts";
import { CliError } from "../failure.ts";
import { type ForwardedPort, readForward } from "../forwarded-port.ts";
import { machineOf } from "../which-machine.ts";

const LOOPBACK = "127.0.0.1";
/** As many as the platform forwards to one machine at a time. */
const MOST_CONNECTIONS = 24;

/** Where connections go, and what ends them. */
interface Way {
  client: HibernautClient;
  app: string;
  id: string;
  say(line: string): void;
  /** The connections that are open on the platform's side. */
  sessions: Set<ExecSession>;
}

export const forward = command({
  name: "forward",
  summary: "Forward ports of this computer to a machine",
  description:
    "Listens here until Ctrl-C, and passes each connection on to a port inside the machine, also one that its program offers on the loopback interface only. A connection wakes the machine. It keeps the machine awake while bytes flow.",
  arguments: [
    {
      usage: "[words...]",
      names: "machine",
      description: "the machine (default: the only one of the app), then ports: <here>:<there>, or one number for both",
    },
  ],
  options: [{ flags: "-b, --bind <address>", description: `listen at this address (default: ${LOOPBACK})` }],
  ofApp: true,
  examples: [
    "hibernaut machine forward 3f9c01ab22de41 5432 --app shop",
    "hibernaut machine forward 15432:5432 8081:80",
    "hibernaut machine forward db 5432 --bind 0.0.0.0",
  ],
  async run(context, words, { bind = LOOPBACK }) {
    const { machine, ports } = readForward(words);
    const { id } = await machineOf(context, machine);
    const sessions = new Set<ExecSession>();
    const say = (line: string) => context.say(line);
    const way: Way = { client: await context.client(), app: context.app, id, say, sessions };
    const open = new Set<Socket>();
    const servers: Server[] = [];
    // Before anything is said: a program that reads the addresses may end the command at once.
    const ended = Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
    try {
      for (const port of ports) servers.push(await listen(way, port, bind, open));
      tell(context, id, ports, servers);
      await ended;
    } finally {
      const left = [...sessions];
      sessions.clear();
      for (const session of left) session.kill();
      for (const server of servers) server.close();
      for (const socket of open) socket.destroy();
    }
    return { document: undefined, text: "" };
  },
});

/** Says where it listens, as soon as it does: with `--json`, as one line on standard output. */
function tell(context: Context, id: string, ports: readonly ForwardedPort[], servers: readonly Server[]): void {
  const forwards = servers.map((server, index) => ({ listen: addressOf(server), port: ports[index]?.there ?? 0 }));
  if (context.json) process.stdout.write(`${JSON.stringify({ machine_id: id, forwards })}\n`);
  else for (const each of forwards) context.say(`${each.listen} leads to port ${each.port} of machine ${id}.`);
  if (!context.json) context.say("Press Ctrl-C to end.");
}

function addressOf(server: Server): string {
  const { address, family, port } = server.address() as AddressInfo;
  return family === "IPv6" ? `[${address}]:${port}` : `${address}:${port}`;
}

async function listen(way: Way, { here, there }: ForwardedPort, bind: string, open: Set<Socket>): Promise<Server> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    open.add(socket);
    socket.on("error", () => {}); // Its end follows.
    socket.on("close", () => open.delete(socket));
    void pass(way, there, socket).catch((error: unknown) => {
      way.say(`A connection to port ${there} failed: ${(error as Error).message}`);
      socket.destroy();
    });
  });
  server.maxConnections = MOST_CONNECTIONS;
  server.listen(here, bind);
  try {
    await once(server, "listening");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why = code === "EADDRINUSE" ? "another program listens there" : message;
    throw new CliError(
      "unavailable",
      `Port ${here} at ${bind} cannot be opened: ${why}. Name another one, as in ${here + 10_000}:${there}, or another --bind.`,
    );
  }
  return server;
}

/** Passes one connection on. Each direction ends by itself. */
async function pass({ client, app, id, say, sessions }: Way, port: number, socket: Socket): Promise<void> {
  const session = await client.openForward(app, id, port);
  if (socket.destroyed) return session.kill(); // Its client left while the machine was waking.
  session.stderr.resume();
  let ended = false;
  // Once the program has sent everything, how it ended is still to come.
  socket.on("close", () => (ended ? session.stdin.end() : session.kill()));
  sessions.add(session);
  socket.pipe(session.stdin);
  session.stdout.pipe(socket, { end: false });
  session.stdout.once("end", () => {
    ended = true;
    socket.end();
  });
  const exit = await session.exit;
  // It is gone if the command itself has ended the connection.
  if (!sessions.delete(session) || exit.exit_code === 0) return;
  if (exit.exit_code === 2) say(`Nothing listens on port ${port} of machine ${id}.`);
  else if (!ended) say(`A connection to port ${port} was lost${exit.error === null ? "" : `: ${exit.error}`}.`);
  // Not a reset: after some of them, Node 24 spins at its end and never exits.
  socket.destroy();
}
