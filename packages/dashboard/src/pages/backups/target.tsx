/** One target: how its backups are, and what can be done with them. */
import type { BackupTarget } from "@hibernaut/client/browser";
import type { ComponentChildren } from "preact";
import { Figure, Section, Words } from "../../parts/basics.tsx";
import { Ago } from "../../parts/time.tsx";
import { Actions } from "./actions.tsx";
import { Drills } from "./drills.tsx";
import { Sets } from "./sets.tsx";
import { phaseText, sizeText } from "./words.ts";

interface TargetProps {
  target: BackupTarget;
  /** With this one: there is one work at a time at all of them. */
  all: readonly BackupTarget[];
  /** Something was begun or ended. */
  onChanged(): void;
}

/** Shows a target. Its name is the heading. */
export function Target({ target, all, onChanged }: TargetProps) {
  const { name, url, running } = target;
  return (
    <Section title={name} aside={<code class="target-url">{url}</code>}>
      <p role="status" class="target-now">
        {running !== null && (
          <>
            <strong>{phaseText(running)}</strong>{" "}
            <span class="muted" aria-live="off">
              begun <Ago at={running.started_at} />
            </span>
          </>
        )}
      </p>
      <Facts target={target} />
      <Faults target={target} />
      <Actions target={target} all={all} onChanged={onChanged} />
      <Drills drills={target.drills} />
      <Sets target={target} />
    </Section>
  );
}

function Facts({ target }: { target: BackupTarget }) {
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

/** What went wrong, in the platform's words. */
function Faults({ target }: { target: BackupTarget }) {
  const { last, last_check: check, last_restore: restore, prune_error: kept } = target;
  return (
    <>
      <Fault title="The latest backup did not succeed." text={last?.error?.message} />
      <Fault title="The latest check failed." text={check?.error?.message} />
      <Fault title="Old backups could not be deleted." text={kept ?? undefined} />
      <Fault title="The latest restore failed." text={restore?.error?.message} />
      {last?.failed_commands.map(({ machine_id: id, app_name: app, reason }) => (
        <Fault
          key={id}
          title={
            <>
              The backup command of {app} failed in machine <code>{id}</code>, which is backed up as it was.
            </>
          }
          text={reason}
        />
      ))}
    </>
  );
}

function Fault({ title, text }: { title: ComponentChildren; text: string | undefined }) {
  if (text === undefined) return null;
  return (
    <div class="note note-error">
      <p>
        <strong>{title}</strong>
      </p>
      <p class="fault-text">
        <Words text={text} />
      </p>
    </div>
  );
}
