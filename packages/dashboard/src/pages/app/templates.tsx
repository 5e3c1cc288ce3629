/** The templates of an app: states of machines that are kept, to make machines from. */
import type { Machine, Template } from "@hibernaut/client/browser";
import { useState } from "preact/hooks";
import { childrenOf, poolSentence } from "../../data/births.ts";
import { useChanges, useLoaded, useServices, useStore } from "../../data/context.ts";
import { useFresh } from "../../data/fresh.ts";
import { lackOf } from "../../data/rights.ts";
import { TOPIC } from "../../data/store.ts";
import { bytes } from "../../format.ts";
import { ActionButton } from "../../parts/action.tsx";
import { ErrorNote, Section } from "../../parts/basics.tsx";
import { MachineLink } from "../../parts/machine-link.tsx";
import { Table } from "../../parts/table.tsx";
import { Ago } from "../../parts/time.tsx";
import { DeleteDialog, MakeDialog } from "./template-dialogs.tsx";

/** Machines of one template that are named. */
const NAMED = 12;

const COLUMNS = ["Name", "Of machine", "Size", "Made", "Its machines", { title: "Actions", look: "hidden" }] as const;

interface Open {
  what: "make" | "delete";
  template: Template;
}

/** Lists templates with their machines, and makes machines from them. Absent in an app without templates. */
export function Templates({ app }: { app: string }) {
  const { api } = useServices();
  const [open, setOpen] = useState<Open>();
  const [made, setMade] = useState<Machine>();
  const changes = useChanges(TOPIC.templates(app));
  const { data, error, reload } = useLoaded((signal) => api.listTemplates(app, { signal }), [app, changes]);
  useFresh(reload, TOPIC.world);
  const close = () => setOpen(undefined);
  const done = (machine?: Machine) => {
    close();
    setMade(machine);
    if (machine === undefined) reload();
  };
  if (error === undefined && (data ?? []).length === 0) return null;
  return (
    <Section title="Templates">
      <ErrorNote error={error} onRetry={reload} />
      {made !== undefined && (
        <p class="note" role="status">
          Made the machine <MachineLink app={app} id={made.machine_id} name={made.name} />.
        </p>
      )}
      {data !== undefined && data.length > 0 && (
        <Table label="Templates" columns={COLUMNS}>
          {data.map((template) => (
            <Row key={template.id} app={app} template={template} onOpen={setOpen} />
          ))}
        </Table>
      )}
      {open?.what === "make" && <MakeDialog app={app} template={open.template} onClose={close} onDone={done} />}
      {open?.what === "delete" && <DeleteDialog app={app} template={open.template} onClose={close} onDone={done} />}
    </Section>
  );
}

function Row({ app, template, onOpen }: { app: string; template: Template; onOpen(open: Open): void }) {
  const { session } = useServices();
  const refusal = lackOf(session, "deploy");
  const { id, name, machine_id: machine, size_bytes: size, created_at: created, pool } = template;
  const inPool = poolSentence(pool);
  return (
    <tr data-template={id}>
      <th scope="row">
        {name}
        <div class="muted">
          <code>{id}</code>
        </div>
      </th>
      <td>
        <MachineLink app={app} id={machine} />
      </td>
      <td class="nowrap">{bytes(size)}</td>
      <td class="nowrap">
        <Ago at={created} />
      </td>
      <td>
        <Children app={app} template={id} />
        {inPool !== undefined && <div class="muted">{inPool}</div>}
        {pool.reason !== null && <div class="bad">{pool.reason}</div>}
      </td>
      <td class="nowrap actions">
        <ActionButton
          class="small"
          refusal={refusal}
          label={`Make a machine from ${name}`}
          onClick={() => onOpen({ what: "make", template })}
        >
          Make a machine…
        </ActionButton>
        <ActionButton
          class="small danger"
          refusal={refusal}
          label={`Delete the template ${name}`}
          onClick={() => onOpen({ what: "delete", template })}
        >
          Delete…
        </ActionButton>
      </td>
    </tr>
  );
}

/** The machines that were made from a template and are still there. */
function Children({ app, template }: { app: string; template: string }) {
  const machines = useStore(TOPIC.world, (store) => childrenOf(store.machinesOf(app), template));
  if (machines.length === 0) return <span class="muted">none</span>;
  return (
    <ul class="line">
      {machines.slice(0, NAMED).map(({ machine_id: id }) => (
        <li key={id}>
          <MachineLink app={app} id={id} />
        </li>
      ))}
      {machines.length > NAMED && <li class="muted">and {machines.length - NAMED} more</li>}
    </ul>
  );
}
