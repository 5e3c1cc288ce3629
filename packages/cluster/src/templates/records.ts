/** Templates in the cluster's directory: which hosts have one, and whose its name is. Changed by swap alone. */
import { setTimeout as delay } from "node:timers/promises";
import { HibernautError } from "@hibernaut/domain/errors";
import { nameTaken } from "@hibernaut/machines";
import { beingDeleted, type Deletable } from "../app-deletion.ts";
import type { Change, Condition, Directory } from "../contract.ts";
import { KEYS, type SharedTemplate } from "../keys.ts";
import { deletion, put, read, type Stored } from "../stored.ts";

/** Tries to change what someone else changes at the same time. */
const MOST_RACES = 10;
/** The longest wait before each further try, in milliseconds, at random: those that raced do not meet again, and ten tries take half a second. */
const RACE_PAUSE_MS = 100;

type Which = Pick<SharedTemplate, "app" | "id">;

/** Returns the key of a {@link SharedTemplate}. */
export function templateKey({ app, id }: Which): string {
  return `${KEYS.templates}${app}/${id}`;
}

function nameKey({ app, name }: Pick<SharedTemplate, "app" | "name">): string {
  return `${KEYS.templateNames}${app}/${name}`;
}

/** Rejects with `already_exists` when a template has the name. */
export async function requireFreeName(
  named: Pick<SharedTemplate, "app" | "name">,
  directory: Directory,
): Promise<void> {
  const holder = await read<string>(directory, nameKey(named));
  if (holder !== undefined) throw nameTaken(named.app, named.name, holder.value);
}

/** What is done when another template has the name: a new one is refused, and one from before names were shared goes without. */
export type IfTaken = "refuse" | "go without";

/** An app's record, as far as it matters to its templates. */
export interface ItsApp extends Deletable {
  /** RFC 3339. A later app of the same name has another one. */
  createdAt: string;
}

/**
 * Makes a template known that the host has: a new one, or one that the directory has lost. The host is added to those that
 * have it. Rejects with `already_exists` when its name is taken, with `not_found` when it was ended, or its app is gone: with
 * `createdAt`, also when another app has that name now.
 */
export async function claimTemplate(
  template: Omit<SharedTemplate, "hosts" | "ended">,
  host: string,
  { directory, ifTaken, createdAt }: { directory: Directory; ifTaken: IfTaken; createdAt?: string | undefined },
): Promise<void> {
  const { app, id, name } = template;
  const work = async () => {
    const itsApp = await requireLasting(template, createdAt, directory);
    const key = templateKey(template);
    const known = await read<SharedTemplate>(directory, key);
    if (known?.value.ended === true) throw gone(template);
    const holder = await read<string>(directory, nameKey(template));
    const isTaken = holder !== undefined && holder.value !== id;
    if (isTaken && ifTaken === "refuse") throw nameTaken(app, name, holder.value);
    const conditions: Condition[] = [itsApp, known ?? { key, revision: 0 }];
    const changes: Change[] = [
      put(key, { ...(known?.value ?? template), hosts: withHost(known?.value.hosts ?? [], host) }),
    ];
    if (holder === undefined) {
      conditions.push({ key: nameKey(template), revision: 0 });
      changes.push(put(nameKey(template), id));
    }
    return (await directory.transact(conditions, changes)) !== undefined;
  };
  await untilNobodyRaces(work, template);
}

/**
 * One more host has a template. Rejects with `not_found` when it was ended, or its app is not the one that was created then, and
 * with `aborted` when that is being deleted.
 */
export async function joinTemplate(
  which: Which,
  host: string,
  { directory, createdAt }: { directory: Directory; createdAt: string },
): Promise<void> {
  const work = async () => {
    const itsApp = await requireLasting(which, createdAt, directory);
    const known = await read<SharedTemplate>(directory, templateKey(which));
    if (known === undefined || known.value.ended === true) throw gone(which);
    // Also when it is said already: what would take it back then finds something newer.
    const hosts = withHost(known.value.hosts, host);
    return (await directory.transact([itsApp, known], [put(known.key, { ...known.value, hosts })])) !== undefined;
  };
  await untilNobodyRaces(work, which);
}

/** The record of a template's app, for a change that rests on it. */
async function requireLasting(
  which: Which,
  createdAt: string | undefined,
  directory: Directory,
): Promise<Stored<ItsApp>> {
  const itsApp = await read<ItsApp>(directory, `${KEYS.apps}${which.app}`);
  if (itsApp?.value.deleting === true) throw beingDeleted(which.app);
  if (itsApp === undefined || itsApp.value.createdAt !== (createdAt ?? itsApp.value.createdAt)) throw gone(which);
  return itsApp;
}

/** No host may use it from now on. Resolves with whether there was one. */
export async function endTemplate(which: Which, directory: Directory): Promise<boolean> {
  let found = false;
  const work = async () => {
    const known = await read<SharedTemplate>(directory, templateKey(which));
    found = known !== undefined;
    if (known === undefined || known.value.ended === true) return true;
    return (
      (await withoutName(known.value, put(known.key, { ...known.value, ended: true }), { known, directory })) !==
      undefined
    );
  };
  await untilNobodyRaces(work, which);
  return found;
}

/**
 * These hosts have it no more. With the last one it is forgotten, and its name is free. `isSo` is asked after each look at the
 * directory: a host that is about to have the template again has written that, or will.
 */
export async function leaveTemplate(
  which: Which,
  hosts: readonly string[],
  { directory, isSo = () => true }: { directory: Directory; isSo?(): boolean },
): Promise<void> {
  const work = async () => {
    const known = await read<SharedTemplate>(directory, templateKey(which));
    if (known === undefined || !known.value.hosts.some((host) => hosts.includes(host)) || !isSo()) return true;
    const left = known.value.hosts.filter((host) => !hosts.includes(host));
    if (left.length > 0)
      return (await directory.transact([known], [put(known.key, { ...known.value, hosts: left })])) !== undefined;
    return (await withoutName(known.value, deletion(known.key), { known, directory })) !== undefined;
  };
  await untilNobodyRaces(work, which);
}

/** Makes the change, and frees the name if it is this template's. */
async function withoutName(
  template: SharedTemplate,
  change: Change,
  { known, directory }: { known: Condition; directory: Directory },
): Promise<number | undefined> {
  const holder = await read<string>(directory, nameKey(template));
  if (holder?.value !== template.id) return directory.transact([known], [change]);
  return directory.transact([known, holder], [change, deletion(holder.key)]);
}

function withHost(hosts: readonly string[], host: string): string[] {
  return hosts.includes(host) ? [...hosts] : [...hosts, host];
}

async function untilNobodyRaces(work: () => Promise<boolean>, { id }: Which): Promise<void> {
  for (let race = 0; race < MOST_RACES; race += 1) {
    if (await work()) return;
    await delay(Math.random() * RACE_PAUSE_MS);
  }
  const message = `Template ${id} is being changed by other hosts at the moment. Try again in a second.`;
  throw new HibernautError("aborted", message, { template: id });
}

export function gone({ app, id }: Which): HibernautError {
  const message = `Template ${id} of app ${app} was deleted meanwhile. See \`hibernaut templates list --app ${app}\`.`;
  return new HibernautError("not_found", message, { app_name: app, template: id });
}
