/** One target: how its backups are, and what can be done with them. */
import type { BackupTarget } from "@hibernaut/client/browser";
import type { ComponentChildren } from "preact";
import { drillsOf } from "../../data/problems.ts";
import { Section, Words } from "../../parts/basics.tsx";
import { Ago } from "../../parts/time.tsx";
import { Actions } from "./actions.tsx";
import { Drills } from "./drills.tsx";
import { Facts } from "./facts.tsx";
import { Sets } from "./sets.tsx";
import { phaseText } from "./words.ts";

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
    <Section title={name} aside={<code>{url}</code>}>
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
      <Drills drills={drillsOf(target)} />
      <Sets target={target} />
    </Section>
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
      <p class="muted">
        <Words text={text} />
      </p>
    </div>
  );
}
