/** Networks that apps share: their machines reach each other, by names that wake what sleeps behind them. Pure rules. */
import { formatAddress, formatSubnet, type Subnet, size } from "@hibernaut/lib/ipv4";
import { HibernautError } from "./errors.ts";
import { isValidName, NAME_RULE } from "./naming.ts";

/** An app's place in a network. */
export interface AppNetwork {
  /** Apps that name the same network share it. Chosen when an app is created, and never changed. */
  name: string;
  /**
   * The app's own IPv4 address in it, for as long as the app exists: programs keep what a name resolved to. No interface has
   * it. The host leads connections to it to a machine of the app.
   */
  address: string;
  /** What the app is called in the network, besides its own name. Lowercase. */
  aliases: readonly string[];
  /**
   * Other apps of the network that a request which wakes this one wakes as well: they come up next to each other, and not one
   * after the other when they are first asked. Absent: none.
   */
  wakes?: readonly string[];
}

/** RFC 2544 sets this network aside for measuring, so nobody outside can have an address in it. */
export const APP_SUBNET: Subnet = { base: 0xc6120000, prefix: 15 };
export const APP_ADDRESSES = formatSubnet(APP_SUBNET);

/** An app that is an entry of more lists than this is one that something went wrong with. */
export const MOST_ALIASES = 16;
/** The longest name that DNS can carry. */
const MOST_ALIAS_CHARACTERS = 253;
/** Compose files have names with `_`, which DNS carries as well. */
const ALIAS = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*$/;
/** Names that mean something else in every machine. */
const RESERVED = /^localhost$|(?:^|\.)(?:internal|flycast|localhost)$/;

/** Throws `invalid_argument` unless the text can be the name of a network. */
export function requireNetworkName(text: string): string {
  if (isValidName(text)) return text;
  throw new HibernautError("invalid_argument", `The name of a network ${NAME_RULE}.`, {
    field: "network",
    value: text.slice(0, 80),
  });
}

/** Returns aliases in lowercase, each once. Throws `invalid_argument` when one cannot be a name, or there are too many. */
export function aliasesOf(texts: readonly string[]): string[] {
  const aliases = [...new Set(texts.map((text) => text.toLowerCase()))];
  if (aliases.length > MOST_ALIASES)
    throw new HibernautError("invalid_argument", `An app has at most ${MOST_ALIASES} aliases.`, { field: "aliases" });
  const bad = aliases.find(
    (alias) => alias.length > MOST_ALIAS_CHARACTERS || !ALIAS.test(alias) || RESERVED.test(alias),
  );
  if (bad !== undefined)
    throw new HibernautError(
      "invalid_argument",
      `\`${bad.slice(0, 60)}\` cannot be an alias: use labels of letters, digits, hyphens and underscores with dots between them, and no name that ends with internal, flycast or localhost.`,
      { field: "aliases", value: bad.slice(0, 60) },
    );
  return aliases;
}

/** Returns what is the same for apps whose machines reach each other. No app has a name with a slash. */
export function groupOf(app: string, network: AppNetwork | undefined): string {
  return network === undefined ? app : groupOfNetwork(network.name);
}

/** Whether such a word is that of a network. */
export function isNetwork(group: string): boolean {
  return group.startsWith("/");
}

/** The same for a network, by its name. */
export function groupOfNetwork(name: string): string {
  return `/${name}`;
}

/** A request that wakes more apps than this would take all CPUs of a host. */
export const MOST_WAKES = 16;

/** Returns the names of apps, each once. Throws `invalid_argument` when one cannot be a name, or there are too many. */
export function wakesOf(names: readonly string[]): string[] {
  const wakes = [...new Set(names)];
  const bad = wakes.find((name) => !isValidName(name));
  if (bad !== undefined)
    throw new HibernautError("invalid_argument", `\`${bad.slice(0, 60)}\` is not an app: its name ${NAME_RULE}.`, {
      field: "wakes",
    });
  if (wakes.length > MOST_WAKES)
    throw new HibernautError("invalid_argument", `An app wakes at most ${MOST_WAKES} others.`, { field: "wakes" });
  return wakes;
}

/** Whether an app with this name and these aliases is called `name` in its network. */
function isCalled({ name: app, network }: NetworkMember, name: string): boolean {
  return app === name || (network?.aliases.includes(name) ?? false);
}

/** What is asked of an app here. */
interface NetworkMember {
  name: string;
  network?: AppNetwork;
}

/**
 * Throws `already_exists` when another app of the network is called like one of the names.
 *
 * @param names the app's own name and its aliases
 * @param members the apps of the network
 */
export function requireFreeAliases(
  app: string,
  { network, names }: { network: string; names: readonly string[] },
  members: readonly NetworkMember[],
): void {
  for (const other of members) {
    if (other.name === app) continue;
    const taken = names.find((name) => isCalled(other, name));
    if (taken === undefined) continue;
    throw new HibernautError(
      "already_exists",
      `In the network ${network}, \`${taken}\` is app ${other.name}. Choose another alias.`,
      { field: "aliases", app_name: other.name },
    );
  }
}

/**
 * Returns an address for a new app that none of the apps has.
 *
 * @param start where to look first, from 0 to 1: a freed address should not be used again at once, as programs may still
 *   know it
 */
export function freeAppAddress(apps: readonly NetworkMember[], start: number): string {
  const taken = new Set(apps.map(({ network }) => network?.address));
  const count = size(APP_SUBNET);
  const from = Math.floor(start * count);
  for (let step = 0; step < count; step += 1) {
    const number = APP_SUBNET.base + ((from + step) % count);
    const address = formatAddress(number);
    // What ends with .0 or .255 is taken for a network's own by some programs.
    if (!taken.has(address) && number % 256 !== 0 && number % 256 !== 255) return address;
  }
  throw new HibernautError("resource_exhausted", `All addresses of ${APP_ADDRESSES} are taken. Delete apps.`);
}
