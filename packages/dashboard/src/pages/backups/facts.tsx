/** How the backups of a target are, in figures. */
import type { BackupTarget } from "@hibernaut/client/browser";
import { Figure } from "../../parts/basics.tsx";
import { Ago } from "../../parts/time.tsx";
import { sizeText } from "./words.ts";

/** Shows when backups, checks and drills took place, and when the next ones do. */
export function Facts({ target }: { target: BackupTarget }) {
  const { last, last_success: good, overdue, schedule, keep, last_check: check, last_restore: restore } = target;
  const next = (at: string | null) =>
    at !== null && (
      <>
        next <Ago at={at} />
      </>
    );
  return (
    <dl class="figures figures-words">
      <Figure
        label="Latest good backup"
        value={
          <span class={overdue ? "bad" : undefined}>
            {good === null ? "none yet" : <Ago at={good.at} />}
            {overdue && ", overdue"}
          </span>
        }
        note={good?.set}
      />
      <Figure
        label="Latest try"
        value={
          last === null ? "none yet" : <Ended word={last.state} at={last.ended_at} isBad={last.state === "failed"} />
        }
        note={last === null ? undefined : sizeText(last)}
      />
      <Figure
        label="Schedule"
        value={schedule === null ? "none" : <Cron text={schedule} />}
        note={schedule === null ? "Backups are made when someone asks for one." : next(target.next_at)}
      />
      <Figure label="Kept" value={keep ?? "everything"} />
      <Figure
        label="Drills"
        value={target.drill_schedule === null ? "not scheduled" : <Cron text={target.drill_schedule} />}
        note={target.drill_schedule === null ? undefined : next(target.next_drill_at)}
      />
      <Figure
        label="Latest check"
        value={
          check === null ? (
            "none yet"
          ) : (
            <Ended word={check.error === null ? "passed" : "failed"} at={check.at} isBad={check.error !== null} />
          )
        }
        note={check === null ? undefined : check.read_data ? "all data was read" : "without reading all data"}
      />
      {restore !== null && (
        <Figure
          label="Latest restore"
          value={
            <Ended
              word={restore.error === null ? "complete" : "failed"}
              at={restore.ended_at}
              isBad={restore.error !== null}
            />
          }
          note={`${restore.app_name} as ${restore.as}${restore.set === null ? "" : `, from ${restore.set}`}`}
        />
      )}
    </dl>
  );
}

function Cron({ text }: { text: string }) {
  return (
    <>
      <code>{text}</code> UTC
    </>
  );
}

function Ended({ word, at, isBad }: { word: string; at: string; isBad: boolean }) {
  return (
    <span class={isBad ? "bad" : undefined}>
      {word} <Ago at={at} />
    </span>
  );
}
