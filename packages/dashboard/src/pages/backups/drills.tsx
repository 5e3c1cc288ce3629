/** What drills found: whether each app could be restored. */
import type { BackupDrill } from "@hibernaut/client/browser";
import { moment } from "../../format.ts";
import { Words } from "../../parts/basics.tsx";
import { Table } from "../../parts/table.tsx";
import { Ago } from "../../parts/time.tsx";
import { countText, machineText } from "./words.ts";

const COLUMNS = ["App", "Latest drill", "Backup", "Machines", "Counted"] as const;

/** Lists the latest drill of each app. */
export function Drills({ drills }: { drills: readonly BackupDrill[] }) {
  if (drills.length === 0)
    return <p class="muted">No app was tried yet. A backup that was never restored may be worth nothing.</p>;
  return (
    <Table label="Drills" columns={COLUMNS}>
      {drills.map((drill) => (
        <DrillRow key={drill.app_name} drill={drill} />
      ))}
    </Table>
  );
}

const CLASSES = { passed: "health-healthy", failed: "bad", untried: "muted" };

function DrillRow({ drill }: { drill: BackupDrill }) {
  const { app_name: app, error, ended_at: at, set, set_at: setAt, machines, counts, outcome } = drill;
  return (
    <tr data-drill={app} data-outcome={outcome}>
      <th scope="row">{app === "" ? <span class="muted">none was chosen</span> : app}</th>
      <td class="drill-found">
        <span class={CLASSES[outcome]}>{outcome}</span> <Ago at={at} />
        {error !== null && (
          <div class="bad">
            <Words text={error.message} />
          </div>
        )}
      </td>
      <td class="nowrap">
        {set === null ? <span class="muted">–</span> : <code>{set}</code>}
        {setAt !== null && <div class="muted">{moment(setAt)}</div>}
      </td>
      <td class="drill-found">
        {machines.map((machine) => (
          <div key={machine.from}>{machineText(machine)}</div>
        ))}
      </td>
      <td class="drill-found">
        {counts.map((one) => (
          <div key={`${one.machine} ${one.name}`} class={one.note === null ? undefined : "bad"}>
            {countText(one)}
          </div>
        ))}
      </td>
    </tr>
  );
}
