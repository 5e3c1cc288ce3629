/** What can be done with a machine. What it shows afterwards is what the platform says. */
import type { Machine } from "@hibernaut/client/browser";
import { useState } from "preact/hooks";
import { useServices } from "../../data/context.ts";
import { ActionButton, useAction } from "../../parts/action.tsx";
import { ErrorNote } from "../../parts/basics.tsx";
import { Field, FormDialog } from "../../parts/form-dialog.tsx";
import { type ActionName, needsForce, refusalOf } from "./actions.ts";
import { ForkDialog, type Made, MadeNote, TemplateDialog } from "./births.tsx";
import { UpdateDialog } from "./update.tsx";

/** The machine's history says who started it. */
const REASON = "dashboard";

/** Buttons for everything. Those that are not possible say why. */
export function Toolbar({ machine }: { machine: Machine }) {
  const { api, session } = useServices();
  const { app_name: app, machine_id: id } = machine;
  const [open, setOpen] = useState<"fork" | "template" | "update" | "destroy">();
  const [made, setMade] = useState<Made>();
  const { busy, error, run } = useAction();
  const button = (action: ActionName, label: string, act: () => void, kind = "") => (
    <ActionButton class={kind} refusal={refusalOf(action, machine, session)} busy={busy} onClick={act}>
      {label}
    </ActionButton>
  );
  const close = () => setOpen(undefined);
  const done = (what: Made) => {
    close();
    setMade(what);
  };
  const [read, setRead] = useState<Machine>();
  const { cordoned } = read !== undefined && isAsNew(read, machine) ? read : machine;
  /** Events say that something happened, and not that the machine is cordoned. */
  const cordon = async () => {
    await (cordoned ? api.uncordonMachine(app, id) : api.cordonMachine(app, id));
    setRead(await api.getMachine(app, id).catch(() => undefined));
  };
  const suspendRefusal = machine.state === "running" ? refusalOf("suspend", machine, session) : undefined;
  return (
    <div class="stack">
      <div class="toolbar" role="group" aria-label="Actions">
        {button("start", "Start", () => run(() => api.startMachine(app, id, { reason: REASON })), "primary")}
        {button("suspend", "Suspend", () => run(() => api.suspendMachine(app, id)))}
        {button("stop", "Stop", () => run(() => api.stopMachine(app, id)))}
        {button("restart", "Restart", () => run(() => api.restartMachine(app, id)))}
        {button("cordon", cordoned ? "Uncordon" : "Cordon", () => run(cordon))}
        {button("fork", "Fork…", () => setOpen("fork"))}
        {button("template", "Make a template…", () => setOpen("template"))}
        {button("update", "Update…", () => setOpen("update"))}
        {button("destroy", "Destroy…", () => setOpen("destroy"), "danger")}
      </div>
      {suspendRefusal !== undefined && <p class="muted">Suspend is not possible. {suspendRefusal}</p>}
      <ErrorNote error={error} />
      {made !== undefined && <MadeNote made={made} />}
      {open === "fork" && <ForkDialog machine={machine} onClose={close} onMade={done} />}
      {open === "template" && <TemplateDialog machine={machine} onClose={close} onMade={done} />}
      {open === "update" && <UpdateDialog machine={machine} onClose={close} />}
      {open === "destroy" && <DestroyDialog machine={machine} onClose={close} />}
    </div>
  );
}

/** Whether nothing has happened to the machine since it was read. */
function isAsNew(read: Machine, machine: Machine): boolean {
  return read.machine_id === machine.machine_id && read.updated_at >= machine.updated_at;
}

function DestroyDialog({ machine, onClose }: { machine: Machine; onClose(): void }) {
  const { api } = useServices();
  const { app_name: app, machine_id: id, name } = machine;
  const [typed, setTyped] = useState("");
  const destroy = () => api.destroyMachine(app, id, { force: needsForce(machine) }).then(onClose);
  return (
    <FormDialog
      title={`Destroy ${name}?`}
      action="Destroy"
      danger
      refusal={typed === name ? undefined : `Type ${name} first.`}
      onClose={onClose}
      onSubmit={destroy}
    >
      <p>
        This deletes its snapshot, its writable layer and its logs, for good. Its volumes are kept.
        {needsForce(machine) && " It is in use: what runs in it ends."}
      </p>
      <Field
        label={
          <>
            Type the machine's name, <strong>{name}</strong>
          </>
        }
        name="name"
        value={typed}
        onInput={(event) => setTyped(event.currentTarget.value)}
      />
    </FormDialog>
  );
}
