/** What the agent says of the processes of its machine: `packages/guest/agent/processes.h`. Pure. */
import { EntryFields, GuestError } from "@hibernaut/guest";

/** A process in a machine. Times are the machine's own, which stops while the machine sleeps. */
export interface GuestProcess {
  pid: number;
  /** When it began, in milliseconds after the machine's boot. */
  startedMs: number;
  /** For how many milliseconds it has run. */
  ranMs: number;
  /** How many milliseconds of CPU time it has had. */
  cpuMs: number;
  /** Bytes of memory. */
  residentBytes: number;
  /** Its arguments with spaces between them, or the name of its program in brackets. Cut to 4 KiB. */
  command: string;
  /** Where it works; empty when that is not known. Cut to 4 KiB. */
  directory: string;
  sockets: ProcessSocket[];
}

/** Where a process listens. */
interface ProcessSocket {
  proto: Proto;
  /** `0.0.0.0:8080` or `[::]:8080`. */
  address: string;
}

/** Protocols as the kernel names them. */
export const PROTOS = ["tcp", "tcp6", "udp", "udp6"] as const;
type Proto = (typeof PROTOS)[number];

/** The most processes that a list may have: the agent says no more (MAX_PROCESSES in processes.h). */
const MOST_PROCESSES = 1000;
/** The most sockets that one process may seem to have, as for the agent. */
const MOST_SOCKETS = 64;
const ADDRESS = /^(?:[\d.]{7,15}|\[[\da-f:.]{2,45}\]):\d{1,5}$/;

/**
 * Reads the list, of which the last process may be incomplete when it was `cut`. Throws {@link GuestError} for what makes no
 * sense otherwise: the guest is not trusted.
 */
export function processesOf(said: Buffer, cut: boolean): GuestProcess[] {
  const fields = new EntryFields(said);
  const processes: GuestProcess[] = [];
  try {
    while (fields.more) {
      if (processes.length === MOST_PROCESSES) throw nonsense();
      processes.push(processOf(fields));
    }
  } catch (error) {
    if (!cut) throw error;
  }
  return processes;
}

function processOf(fields: EntryFields): GuestProcess {
  const next = () => number(fields.next());
  const [pid, startedMs, ranMs, cpuMs, residentBytes] = [next(), next(), next(), next(), next()];
  const [command, directory] = [fields.next(), fields.next()];
  const count = next();
  if (count > MOST_SOCKETS) throw nonsense();
  const sockets = Array.from({ length: count }, () => socketOf(fields.next(), fields.next()));
  return { pid, startedMs, ranMs, cpuMs, residentBytes, command, directory, sockets };
}

function socketOf(said: string, address: string): ProcessSocket {
  const proto = PROTOS.find((each) => each === said);
  if (proto === undefined || !ADDRESS.test(address)) throw nonsense();
  return { proto, address };
}

function number(text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value)) throw nonsense();
  return value;
}

function nonsense(): GuestError {
  return new GuestError("the machine's agent gave an answer that makes no sense");
}
