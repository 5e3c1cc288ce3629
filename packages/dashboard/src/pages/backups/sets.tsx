/** The backups at a target. */
import type { BackupSet, BackupTarget } from "@hibernaut/client/browser";
import { useState } from "preact/hooks";
import { useLoaded, useServices } from "../../data/context.ts";
import { bytes, count } from "../../format.ts";
import { Empty, ErrorNote, Loading } from "../../parts/basics.tsx";
import { Table } from "../../parts/table.tsx";
import { Ago } from "../../parts/time.tsx";
import { RestoreDialog } from "./restore.tsx";

const COLUMNS = [
  "Backup",
  "Made",
  "State",
  { title: "Size", look: "number" },
  { title: "New", look: "number" },
  "Apps",
  { title: "Actions", look: "hidden" },
] as const;

/** Shown of a target: the command line lists all. */
const MOST_SHOWN = 100;
/** Of a set with more apps, they are counted. */
const MOST_NAMED = 3;

/** Lists the backups once someone wants to see them: the target is asked for that, which takes seconds. */
export function Sets({ target }: { target: BackupTarget }) {
  const [open, setOpen] = useState(false);
  return (
    <details class="more" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Backups at {target.name}</summary>
      {open && <List target={target} />}
    </details>
  );
}

function List({ target }: { target: BackupTarget }) {
  const { api } = useServices();
  const { name, last } = target;
  const { data, error, reload } = useLoaded((signal) => api.listBackupSets(name, { signal }), [name, last?.ended_at]);
  const [restoring, setRestoring] = useState<BackupSet>();
  const left = (data?.length ?? 0) - MOST_SHOWN;
  return (
    <div class="stack">
      <ErrorNote error={error} onRetry={reload} />
      {data === undefined && error === undefined && <Loading what="the backups" />}
      {data?.length === 0 && <Empty title="There are no backups at this target yet." />}
      {data !== undefined && data.length > 0 && (
        <Table label={`Backups at ${name}`} columns={COLUMNS}>
          {data.slice(0, MOST_SHOWN).map((set) => (
            <SetRow key={set.set} set={set} onRestore={() => setRestoring(set)} />
          ))}
        </Table>
      )}
      {left > 0 && (
        <p class="muted">
          And {count(left, "older backup")}. <code>hibernaut backup list</code> has all of them.
        </p>
      )}
      {restoring !== undefined && (
        <RestoreDialog target={target} set={restoring} onClose={() => setRestoring(undefined)} />
      )}
    </div>
  );
}

function SetRow({ set: one, onRestore }: { set: BackupSet; onRestore(): void }) {
  const { set, at, state, reason, own, host, apps } = one;
  const isComplete = state === "complete";
  return (
    <tr data-set={set} data-state={state}>
      <th scope="row">
        <code>{set}</code>
      </th>
      <td class="nowrap">
        <Ago at={at} />
      </td>
      <td>
        <span class={isComplete ? "health-healthy" : "bad"}>{state}</span>
        {!own && <div class="muted">of another platform{host === null ? "" : `, on ${host}`}</div>}
        {reason !== null && <div class="muted">{reason}</div>}
      </td>
      <td class="number nowrap">{isComplete ? bytes(one.bytes) : "–"}</td>
      <td class="number nowrap">{isComplete ? bytes(one.added) : "–"}</td>
      <td class="names">{apps.length > MOST_NAMED ? count(apps.length, "app") : apps.join(", ")}</td>
      <td class="nowrap actions">
        {isComplete && (
          <button type="button" class="button small" aria-label={`Restore ${set}`} onClick={onRestore}>
            Restore…
          </button>
        )}
      </td>
    </tr>
  );
}
