/** An app's place in a network: what it is called there, and whom it wakes. */
import {
  type AppNetwork,
  aliasesOf,
  freeAppAddress,
  requireFreeAliases,
  requireNetworkName,
  wakesOf,
} from "@hibernaut/domain/app-network";
import { HibernautError } from "@hibernaut/domain/errors";
import type { AppStore } from "@hibernaut/store";

/** Where an app is to be. */
export interface NetworkPlace {
  /** The network that it shares with the apps that name the same one. Default: none. */
  network?: string | undefined;
  /** What it is called there besides its own name. */
  aliases?: readonly string[] | undefined;
  /** Which other apps of the network a request wakes that wakes it. */
  wakes?: readonly string[] | undefined;
}

type Apps = Pick<AppStore, "list" | "inNetwork">;

/**
 * Returns the place of a new app, with an address of its own; undefined if it is to be in no network. Throws `invalid_argument` when
 * a name is not valid, and `already_exists` when another app of the network is called so.
 */
export function newPlace(
  name: string,
  { network: wanted, aliases: texts = [], wakes = [] }: NetworkPlace,
  apps: Apps,
): AppNetwork | undefined {
  if (wanted === undefined) {
    if (texts.length + wakes.length === 0) return undefined;
    throw new HibernautError("invalid_argument", "`aliases` and `wakes` are for a network: name it in `network`.", {
      field: texts.length > 0 ? "aliases" : "wakes",
    });
  }
  const network = requireNetworkName(wanted);
  const aliases = aliasesOf(texts);
  requireFreeAliases(name, { network, names: [name, ...aliases] }, apps.inNetwork(network));
  return { name: network, address: freeAppAddress(apps.list(), Math.random()), aliases, wakes: wakesOf(wakes) };
}

/** Returns the place with other aliases and wakes; what is absent stays. Throws as {@link newPlace} does. */
export function changedPlace(
  name: string,
  network: AppNetwork,
  { aliases: texts, wakes }: Omit<NetworkPlace, "network">,
  apps: Apps,
): AppNetwork {
  const aliases = texts === undefined ? network.aliases : aliasesOf(texts);
  requireFreeAliases(name, { network: network.name, names: [name, ...aliases] }, apps.inNetwork(network.name));
  return { ...network, aliases, ...(wakes && { wakes: wakesOf(wakes) }) };
}

/** Throws `already_exists` for a network that previews are in: what is tried out there would be within reach of the app. */
export function requireWithoutPreviews(network: string, apps: Pick<Apps, "inNetwork">): void {
  const preview = apps.inNetwork(network).find((app) => app.preview !== undefined);
  if (preview === undefined) return;
  throw new HibernautError(
    "already_exists",
    `The network ${network} is that of previews, such as ${preview.name}. Choose another name, or destroy them first.`,
    { network, app_name: preview.name },
  );
}
