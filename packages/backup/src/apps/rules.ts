/** What an app that comes from a backup may do, by what it is restored for. Pure. */
import { type MachineConfig, withEgress } from "@hibernaut/domain/config";
import { HibernautError } from "@hibernaut/domain/errors";
import type { MachineRecord } from "@hibernaut/domain/machine";
import { isValidName, NAME_RULE } from "@hibernaut/domain/naming";

/**
 * `in_place`: it takes over from the app that is there. `again`: the app is gone, and gets its name back. `copy`: a copy,
 * next to the app. `drill`: a copy that nobody reaches and that reaches nobody.
 */
export type RestoreUse = "in_place" | "again" | "copy" | "drill";

/** What is asked for. */
export interface WantedApp {
  app: string;
  /** The name of the copy. Default: the app's own. */
  as?: string | undefined;
  /** Whether it takes over from the app that is there. */
  inPlace?: boolean | undefined;
}

/**
 * Returns what an app is restored for. Throws `invalid_argument` for a name that no app can have, `already_exists` when it would
 * get in the way of an app that is there, and `not_found` when there is none whose place it could take.
 */
export function useOf({ app, as, inPlace = false }: WantedApp, exists: (app: string) => boolean): RestoreUse {
  if (as !== undefined && inPlace)
    throw new HibernautError(
      "invalid_argument",
      "A copy under another name takes nobody's place. Leave one of them out.",
      {
        field: "as",
      },
    );
  if (as !== undefined && as !== app) {
    if (!isValidName(as))
      throw new HibernautError("invalid_argument", `An app's name ${NAME_RULE}.`, { field: "as", value: as });
    if (!exists(as)) return "copy";
    throw new HibernautError("already_exists", `App ${as} exists already. Choose another name.`, { app_name: as });
  }
  if (inPlace && !exists(app)) {
    const message = `There is no app ${app} whose place could be taken. Leave out --in-place, over HTTP \`in_place\`.`;
    throw new HibernautError("not_found", message, { app_name: app });
  }
  if (inPlace) return "in_place";
  if (!exists(app)) return "again";
  const message = `App ${app} exists. Restore a copy next to it with --as and another name, or let it take over with --in-place; over HTTP, these are \`as\` and \`in_place\`.`;
  throw new HibernautError("already_exists", message, { app_name: app });
}

/** Returns the machines that are worth having again: not those that were made for a moment, in advance, or for someone's session. */
export function lasting(machines: readonly MachineRecord[]): MachineRecord[] {
  return machines.filter(({ pooled, temporary, releaseCommand, sandbox }) =>
    [pooled, temporary, releaseCommand, sandbox].every((mark) => mark === undefined),
  );
}

/**
 * Returns the configuration of a machine for this use. A copy leaves the app's public ports alone and is not started by the
 * app's schedule: its jobs would be done twice.
 */
export function configFor(use: RestoreUse, config: MachineConfig): MachineConfig {
  if (use === "in_place" || use === "again") return config;
  const { schedule: _, schedule_timezone: __, services, ...rest } = config;
  const copy: MachineConfig = {
    ...rest,
    ...(services && { services: services.map((one) => (one.protocol === "tcp" ? { ...one, ports: [] } : one)) }),
  };
  // What it finds in its memory and on its disk, it would do once more: send mails, charge cards.
  return use === "drill" ? withEgress(copy, { default: "deny" }) : copy;
}
