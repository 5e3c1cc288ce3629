/** What can be done with a template: making a machine from it, and deleting it. */
import type { Machine, Template } from "@hibernaut/client/browser";
import { birthOf } from "../../data/births.ts";
import { useServices } from "../../data/context.ts";
import { BirthFields } from "../../parts/births.tsx";
import { FormDialog } from "../../parts/form-dialog.tsx";

interface DialogProps {
  app: string;
  template: Template;
  onClose(): void;
  /** With the machine if one was made. */
  onDone(made?: Machine): void;
}

/** Asks for what a machine does not have from the template. */
export function MakeDialog({ app, template: { id, name }, onClose, onDone }: DialogProps) {
  const { api } = useServices();
  const make = async (form: FormData) => onDone(await api.createMachine(app, { template: id, ...birthOf(form) }));
  return (
    <FormDialog
      title={`Make a machine from ${name}`}
      action="Make"
      working="Copying…"
      onClose={onClose}
      onSubmit={make}
    >
      <p>It begins with the memory and the disk of the template, and has an identity of its own.</p>
      <BirthFields />
      <p class="muted">
        It takes of the host's disk the size of its memory, and a copy of what was written. Where the file system can
        share blocks, it is far less.
      </p>
    </FormDialog>
  );
}

/** Asks before a template is deleted. */
export function DeleteDialog({ app, template: { id, name }, onClose, onDone }: DialogProps) {
  const { api } = useServices();
  const remove = () => api.deleteTemplate(app, id).then(() => onDone());
  return (
    <FormDialog title={`Delete the template ${name}?`} action="Delete" danger onClose={onClose} onSubmit={remove}>
      <p>The memory and the disk that it keeps are gone for good. Machines that were made from it stay.</p>
    </FormDialog>
  );
}
