/** What can be done at a target. Restoring is left to the CLI, which asks what it is to replace. */
import type { BackupTarget } from "@hibernaut/client/browser";
import { useState } from "preact/hooks";
import { useServices, useStore } from "../../data/context.ts";
import { TOPIC } from "../../data/store.ts";
import { ActionButton, useAction } from "../../parts/action.tsx";
import { ErrorNote } from "../../parts/basics.tsx";
import { Check, FormDialog } from "../../parts/form-dialog.tsx";
import { beginRefusal, cancelRefusal } from "./words.ts";

interface ActionsProps {
  target: BackupTarget;
  all: readonly BackupTarget[];
  onChanged(): void;
}

/** Buttons for everything. Those that are not possible say why. */
export function Actions({ target, all, onChanged }: ActionsProps) {
  const { api, session } = useServices();
  const { name } = target;
  const [open, setOpen] = useState<"check" | "drill">();
  const { busy, error, run } = useAction();
  const act = (work: () => Promise<unknown>) => run(() => work().finally(onChanged));
  const refusal = beginRefusal(all, session);
  const close = () => setOpen(undefined);
  const done = () => {
    close();
    onChanged();
  };
  return (
    <div class="stack">
      <div class="line" role="group" aria-label={`Actions at ${name}`}>
        <ActionButton class="primary" refusal={refusal} busy={busy} onClick={() => act(() => api.startBackup(name))}>
          Back up now
        </ActionButton>
        <ActionButton refusal={refusal} busy={busy} onClick={() => setOpen("check")}>
          Check…
        </ActionButton>
        <ActionButton refusal={refusal} busy={busy} onClick={() => setOpen("drill")}>
          Drill…
        </ActionButton>
        <ActionButton
          class="danger"
          refusal={cancelRefusal(target, session)}
          busy={busy}
          onClick={() => act(() => api.cancelBackup(name))}
        >
          Cancel
        </ActionButton>
      </div>
      <ErrorNote error={error} />
      {open === "check" && <CheckDialog target={name} onClose={close} onBegun={done} />}
      {open === "drill" && <DrillDialog target={name} onClose={close} onBegun={done} />}
    </div>
  );
}

interface BeginProps {
  target: string;
  onClose(): void;
  onBegun(): void;
}

function CheckDialog({ target, onClose, onBegun }: BeginProps) {
  const { api } = useServices();
  const begin = (form: FormData) =>
    api.startBackupCheck(target, { read_data: form.get("read_data") !== null }).then(onBegun);
  return (
    <FormDialog title={`Check ${target}`} action="Check" onClose={onClose} onSubmit={begin}>
      <p>This finds what is missing there, or does not fit together. No backup is made meanwhile.</p>
      <Check name="read_data">Read all that is stored, too, which may take hours and cost money</Check>
    </FormDialog>
  );
}

function DrillDialog({ target, onClose, onBegun }: BeginProps) {
  const { api } = useServices();
  const apps = useStore(TOPIC.world, (store) => [...store.apps.keys()].sort());
  const begin = (form: FormData) => {
    const app = String(form.get("app"));
    return api.startDrill(target, app === "" ? {} : { app_name: app }).then(onBegun);
  };
  return (
    <FormDialog title={`Try a backup at ${target}`} action="Drill" onClose={onClose} onSubmit={begin}>
      <p>
        This restores the newest backup of an app into machines that nobody reaches, wakes them, waits until they are
        healthy, counts, and destroys them. It takes the app's memory and disk space a second time.
      </p>
      <label class="field">
        <span>App</span>
        <select name="app">
          <option value="">the one whose last drill is the longest ago</option>
          {apps.map((app) => (
            <option key={app} value={app}>
              {app}
            </option>
          ))}
        </select>
      </label>
    </FormDialog>
  );
}
