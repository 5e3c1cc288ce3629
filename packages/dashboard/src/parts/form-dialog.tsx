/** A form in a dialog: what it does may fail, and the reason is shown in it. */
import type { ComponentChildren, PartialInputHTMLAttributes } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { ActionButton, useAction } from "./action.tsx";
import { ErrorNote } from "./basics.tsx";
import { Dialog } from "./dialog.tsx";

/** Where the keyboard begins. */
const FIRST_FIELD = "input:not([type=checkbox], [type=radio]), select, textarea";

interface FormDialogProps {
  title: string;
  /** What the button says that does it. */
  action: string;
  danger?: boolean;
  /** Why it cannot be done yet, such as a word that is not typed. */
  refusal?: string | undefined;
  /** What is said while it is done, if that takes longer than a moment. */
  working?: string;
  onClose(): void;
  /** Does it. What it rejects with is shown. */
  onSubmit(form: FormData): Promise<void>;
  children: ComponentChildren;
}

/** Is open as long as it is rendered. The component that opened it closes it after `onSubmit`. */
export function FormDialog(props: FormDialogProps) {
  const { title, action, danger = false, refusal, working, onClose, onSubmit, children } = props;
  const { busy, error, run } = useAction();
  const element = useRef<HTMLFormElement>(null);
  // After the dialog has opened, which puts the focus on its first button.
  useEffect(() => element.current?.querySelector<HTMLElement>(FIRST_FIELD)?.focus(), []);
  const submit = (event: SubmitEvent & { currentTarget: HTMLFormElement }) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    if (refusal === undefined) run(() => onSubmit(form));
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form ref={element} class="form" onSubmit={submit}>
        {children}
        {busy && working !== undefined && <p role="status">{working}</p>}
        <ErrorNote error={error} />
        <div class="buttons">
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <ActionButton type="submit" class={danger ? "danger" : "primary"} refusal={refusal} busy={busy}>
            {action}
          </ActionButton>
        </div>
      </form>
    </Dialog>
  );
}

type FieldProps = Omit<PartialInputHTMLAttributes<HTMLInputElement>, "label" | "role" | "type"> & {
  label: ComponentChildren;
  type?: "number" | "password";
};

/** A field with its label. */
export function Field({ label, ...input }: FieldProps) {
  return (
    <label class="field">
      <span>{label}</span>
      <input autocomplete="off" spellcheck={false} {...input} />
    </label>
  );
}

/** Something to agree to or to choose. */
export function Check({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <label class="check">
      <input type="checkbox" name={name} />
      <span>{children}</span>
    </label>
  );
}
