/** Makes machines, or a template, from the memory and the disk that a machine has now. */
import type { Machine, Template } from "@hibernaut/client/browser";
import { FORKS_AT_ONCE } from "@hibernaut/domain/limits";
import { Fragment } from "preact";
import { useState } from "preact/hooks";
import { birthOf, forksDiskSentence, nameIn, pauseSentence, templateDiskSentence } from "../../data/births.ts";
import { useServices } from "../../data/context.ts";
import { bytes, count } from "../../format.ts";
import { BirthFields, NameField } from "../../parts/births.tsx";
import { Field, FormDialog } from "../../parts/form-dialog.tsx";
import { MachineLink } from "../../parts/machine-link.tsx";
import { Link } from "../../router.tsx";
import { partsOf } from "./update-values.ts";

/** What was made of a machine. */
export type Made = { forks: readonly Machine[] } | { template: Template };

interface DialogProps {
  machine: Machine;
  onClose(): void;
  onMade(made: Made): void;
}

/** Asks how many forks to make, and says what they cost. */
export function ForkDialog({ machine, onClose, onMade }: DialogProps) {
  const { api } = useServices();
  const { app_name: app, machine_id: id, name, config } = machine;
  const { minimum, maximum } = FORKS_AT_ONCE;
  const [typed, setTyped] = useState(String(minimum));
  const number = Math.min(maximum, Math.max(minimum, Number(typed)));
  const fork = async (form: FormData) =>
    onMade({ forks: await api.forkMachine(app, id, { ...birthOf(form), count: Number(form.get("count")) }) });
  return (
    <FormDialog title={`Fork ${name}`} action="Fork" working="Copying…" onClose={onClose} onSubmit={fork}>
      <p>
        A fork is a machine with an identity of its own that continues from where {name} is now.{" "}
        {pauseSentence(machine)}
      </p>
      <Field
        label="How many"
        name="count"
        type="number"
        required
        min={minimum}
        max={maximum}
        value={typed}
        onInput={(event) => setTyped(event.currentTarget.value)}
      />
      <BirthFields several />
      <p class="muted">{forksDiskSentence(number, partsOf(config).memory_mb)}</p>
    </FormDialog>
  );
}

/** Asks for the name of a template, and says what it costs. */
export function TemplateDialog({ machine, onClose, onMade }: DialogProps) {
  const { api } = useServices();
  const { app_name: app, machine_id: id, name, config } = machine;
  const keep = async (form: FormData) =>
    onMade({ template: await api.createTemplate(app, { from: id, ...nameIn(form) }) });
  return (
    <FormDialog title={`Make a template of ${name}`} action="Make" working="Copying…" onClose={onClose} onSubmit={keep}>
      <p>
        A template keeps the memory and the disk that {name} has now, so that machines can begin from there.{" "}
        {pauseSentence(machine)}
      </p>
      <NameField />
      <p class="muted">{templateDiskSentence(partsOf(config).memory_mb)}</p>
    </FormDialog>
  );
}

/** Says what was made, and where it is. */
export function MadeNote({ made }: { made: Made }) {
  if ("forks" in made)
    return (
      <p class="note" role="status">
        Made {count(made.forks.length, "fork")}:{" "}
        {made.forks.map(({ app_name: app, machine_id: id, name }, index) => (
          <Fragment key={id}>
            {index > 0 && ", "}
            <MachineLink app={app} id={id} name={name} />
          </Fragment>
        ))}
      </p>
    );
  const { name, app_name: app, size_bytes: size } = made.template;
  return (
    <p class="note" role="status">
      Made the template {name} ({bytes(size)}). It is on the page of <Link to={{ page: "app", app }}>{app}</Link>.
    </p>
  );
}
