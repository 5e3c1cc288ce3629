/** A list of the sets at targets, as the platform or a bare host finds them. */
import type { BackupSet } from "@hibernaut/client";
import { type ListOptions, listText } from "../listing.ts";
import { ago, count, megabytes } from "../terminal.ts";

/** A set and where it is. Without a platform that asks, nobody says whether it is the platform's own. */
export interface ListedSet extends Omit<BackupSet, "own"> {
  target: string;
  own?: boolean;
}

/** Returns the sets as a table. `empty` is what to print when there are none. */
export function setsText(sets: readonly ListedSet[], empty: string, options: ListOptions): string {
  return listText(
    sets,
    {
      head: ["TARGET", "SET", "AGE", "STATE", "SIZE", "NEW", "APPS"],
      row: (one) => [
        one.target,
        one.set,
        ago(one.at),
        stateText(one),
        sizeText(one.bytes),
        sizeText(one.added),
        appsText(one),
      ],
      wide: {
        head: ["HOST", "VERSION", "VERIFIED"],
        row: (one) => [one.host ?? "-", one.version ?? "-", one.verified?.read ?? "-"],
      },
      spare: ["NEW", "SIZE"],
      id: ({ set }) => set,
      empty,
    },
    options,
  );
}

function stateText({ state, own = true }: ListedSet): string {
  return own ? state : `${state}, of another platform`;
}

function sizeText(bytes: number): string {
  return bytes === 0 ? "-" : megabytes(bytes);
}

function appsText({ apps }: ListedSet): string {
  return apps.length <= 3 ? apps.join(",") || "-" : count(apps.length, "app");
}
