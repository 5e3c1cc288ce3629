/** Changes a machine's image, memory and CPUs, or moves it to the current guest bundle. */
import type { Machine } from "@hibernaut/client/browser";
import { useState } from "preact/hooks";
import { useServices } from "../../data/context.ts";
import { ActionButton, useAction } from "../../parts/action.tsx";
import { ErrorNote } from "../../parts/basics.tsx";
import { Check, Field, FormDialog } from "../../parts/form-dialog.tsx";
import { partsOf, withParts } from "./update-values.ts";

/** Asks what to change. */
export function UpdateDialog({ machine, onClose }: { machine: Machine; onClose(): void }) {
  const { api } = useServices();
  const { app_name: app, machine_id: id, name, config, guest_bundle: bundle, state, snapshot } = machine;
  const [shown] = useState(() => partsOf(config));
  const moving = useAction();
  const save = async (form: FormData) => {
    const given = {
      image: String(form.get("image")).trim(),
      memory_mb: Number(form.get("memory")),
      cpus: Number(form.get("cpus")),
    };
    // What the page has can be some seconds old, and others change machines, too.
    const { config: present } = await api.getMachine(app, id);
    await api.updateMachine(app, id, withParts(present, shown, given), { prewarm: form.get("prewarm") !== null });
    onClose();
  };
  const move = () => moving.run(() => api.updateMachine(app, id).then(onClose));
  return (
    <FormDialog title={`Update ${name}`} action="Update" onClose={onClose} onSubmit={save}>
      <p>
        {state === "running"
          ? "The machine is stopped, and starts cold with the change: its memory, and what it wrote outside of volumes, is lost."
          : "The machine starts cold with the change the next time. A snapshot is discarded."}{" "}
        A deploy from an app file sets these again.
      </p>
      <Field label="Image" name="image" required defaultValue={shown.image} />
      <Field label="Memory in MB" name="memory" type="number" required min="1" defaultValue={shown.memory_mb} />
      <Field label="CPUs" name="cpus" type="number" required min="1" defaultValue={shown.cpus} />
      {state !== "running" && (
        <Check name="prewarm">Start it with the change, check it, and let it sleep again with a snapshot</Check>
      )}
      {!bundle.current && (
        <div class="field">
          <p class="muted">
            It has an older guest bundle ({bundle.version}).{" "}
            {snapshot === null
              ? "Moving it costs a cold start."
              : "It moves at its next cold start, and keeps its snapshot."}
          </p>
          <ActionButton
            class="small"
            busy={moving.busy}
            refusal={bundle.update_pending ? "It moves at its next cold start." : undefined}
            onClick={move}
          >
            Move to the current guest bundle
          </ActionButton>
          <ErrorNote error={moving.error} />
        </div>
      )}
    </FormDialog>
  );
}
