/** Why a machine is awake or not, and why its last start was cold, in sentences. Pure. */
import { type Activity, COLD_REASONS, type Machine } from "@hibernaut/client";
import { isWokenByRequests, isWorker } from "@hibernaut/domain/worker";
import { stateText } from "./crashed.ts";
import { ago, lines } from "./terminal.ts";

interface Around {
  /** Those of its app. */
  urls: readonly string[];
  /** Whether the platform drains, and so starts no machine. */
  draining: boolean;
  /** The network of its app. */
  network?: string | undefined;
}

export function whyText(machine: Machine, { awake }: Activity, around: Around, now = Date.now()): string {
  return lines(stateSentence(machine, awake, around), startSentence(machine, now));
}

const DRAINING = "The platform is draining, so nothing starts it: `hibernaut undrain` ends that.";

function stateSentence(machine: Machine, awake: Activity["awake"], { urls, draining, network }: Around): string {
  const { name, state, suspend } = machine;
  if (draining && state === "suspended") return `Machine ${name} is asleep, with its memory. ${DRAINING}`;
  if (draining && (state === "stopped" || state === "failed" || state === "created"))
    return `Machine ${name} is ${stateText(machine).replace(/\.$/, "")}. ${DRAINING}`;
  const wakes = isWokenByRequests(machine.config) && !machine.cordoned;
  const cordoned = machine.cordoned
    ? ` It is cordoned, so requests neither reach nor wake it: \`hibernaut machine uncordon ${name}\` ends that.`
    : "";
  // In a network, requests from outside reach only what says that it speaks HTTP.
  const isInside = network !== undefined && !machine.config.services?.some(({ protocol }) => protocol === "http");
  const request = urls[0] === undefined ? "a request" : `a request to ${urls[0]}`;
  const at = isInside ? `a connection to one of its ports, as from the network ${network},` : request;
  const how = wakes
    ? `${at} wakes it`
    : `${isWorker(machine.config) && !machine.cordoned ? "what comes over its connections, or " : ""}\`hibernaut start ${name}\` wakes it`;
  if (state === "suspended") return `Machine ${name} is asleep, with its memory: ${how}.${cordoned}`;
  if (state === "stopped" || state === "failed")
    return `Machine ${name} is ${stateText(machine)}. To start it: ${how}.${cordoned}`;
  if (awake === null) return `Machine ${name} is ${stateText(machine)}.`;
  const cannot = suspend.eligible ? "" : ` It cannot be suspended: ${suspend.reasons.join("; ")}.`;
  return `Machine ${name} is awake. ${awake.message}${cannot}`;
}

function startSentence({ last_boot: boot }: Machine, now: number): string {
  if (boot === null) return "It has never been started.";
  const when = `Its last start, ${ago(boot.at, now)},`;
  const took = `took ${Math.round(boot.duration_ms)} ms`;
  if (boot.kind === "warm")
    return `${when} was warm: the virtual machine was still in memory, next to its snapshot. It ${took}.`;
  if (boot.kind === "resume") return `${when} was a resume, and ${took}.`;
  const [word = "", ...details] = boot.reason.split(": ");
  const more = details.length === 0 ? "" : ` (${details.join(": ")})`;
  return `${when} was cold, because ${COLD_REASONS[word] ?? boot.reason}${more}. It ${took}.`;
}
