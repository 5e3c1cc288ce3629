/** Which machine of its app a request asks for, by its hostname or by a header: a pure rule. */
import type { Field } from "./contract.ts";
import type { ServicePolicy } from "./service-policy.ts";

/** What the rule looks at in a machine. */
export interface Addressed {
  id: string;
  policy: Pick<ServicePolicy, "port" | "ownPorts">;
}

/** What a request asks for. */
export type Address<M extends Addressed> =
  /** This machine, at this port: no other one if `only`, otherwise if it can take the request. */
  | { kind: "machine"; machine: M; port: number; only: boolean }
  | { kind: "unknown"; word: string }
  /** The machine has no service at this port that requests may choose it for. */
  | { kind: "closed"; machine: M; port: number }
  /** The request names two machines. */
  | { kind: "conflict" };

/** Requests with one of these go to the machine that it names, or nowhere. */
const FORCING: ReadonlySet<string> = new Set(["hibernaut-machine", "fly-force-instance-id"]);
const PREFERRING = "fly-prefer-instance-id";
/** `<port>--<machine>`. */
const PORT_LABEL = /^([1-9]\d{0,4})--(.+)$/;

/**
 * Returns which machine a request asks for. Undefined if any machine will do. Asked of every request to an app that lets
 * requests choose, so that one which does not choose costs nothing.
 *
 * @param label what the hostname has before the app, if anything
 * @param find finds a machine of the app by its whole id or its name, both in lower case
 */
export function addressOf<M extends Addressed>(
  label: string | undefined,
  fields: readonly Field[],
  find: (word: string) => M | undefined,
): Address<M> | undefined {
  let address = label === undefined ? undefined : ofLabel(label, find);
  let preferred: string | undefined;
  for (const { key, value } of fields) {
    if (FORCING.has(key)) address = agreeing(address, ofWord(value.toLowerCase(), find));
    else if (key === PREFERRING) preferred ??= value.toLowerCase();
  }
  if (address !== undefined || preferred === undefined) return address;
  const wish = ofWord(preferred, find);
  return wish.kind === "machine" ? { ...wish, only: false } : undefined;
}

/** A machine may have a name that looks like a port and another name: the whole name is meant then. */
function ofLabel<M extends Addressed>(label: string, find: (word: string) => M | undefined): Address<M> {
  const [, port, word] = PORT_LABEL.exec(label) ?? [];
  if (port === undefined || word === undefined || find(label) !== undefined) return ofWord(label, find);
  return ofWord(word, find, Number(port));
}

function ofWord<M extends Addressed>(word: string, find: (word: string) => M | undefined, port?: number): Address<M> {
  const machine = find(word);
  if (machine === undefined) return { kind: "unknown", word };
  const wanted = port ?? machine.policy.port;
  if (!machine.policy.ownPorts.includes(wanted)) return { kind: "closed", machine, port: wanted };
  return { kind: "machine", machine, port: wanted, only: true };
}

/** Returns what two parts of a request ask for together. The first one may name a port. */
function agreeing<M extends Addressed>(first: Address<M> | undefined, second: Address<M>): Address<M> {
  if (first === undefined) return second;
  if (first.kind !== "machine") return first;
  if (second.kind !== "machine") return second;
  return first.machine.id === second.machine.id ? first : { kind: "conflict" };
}
