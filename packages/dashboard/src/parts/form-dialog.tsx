/** A form in a dialog: what it does may fail, and the reason is shown in it. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { background } from "../data/background.ts";
import { ErrorNote } from "./basics.tsx";
import { Dialog } from "./dialog.tsx";
import { ReasonedButton } from "./reasoned-button.tsx";

/** Where the keyboard begins. */
const FIRST_FIELD = "input:not([type=checkbox], [type=radio]), select, textarea";

interface FormDialogProps {
  title: string;
  /** What the button says that does it. */
  action: string;
  danger?: boolean;
  /** Why it cannot be done yet, such as a word that is not typed. */
  refusal?: string | undefined;
  onClose(): void;
  /** Does it. What it rejects with is shown. */
  onSubmit(form: FormData): Promise<void>;
  children: ComponentChildren;
}

/** Is open as long as it is rendered. The component that opened it closes it after `onSubmit`. */
export function FormDialog({ title, action, danger = false, refusal, onClose, onSubmit, children }: FormDialogProps) {
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const element = useRef<HTMLFormElement>(null);
  // After the dialog has opened, which puts the focus on its first button.
  useEffect(() => element.current?.querySelector<HTMLElement>(FIRST_FIELD)?.focus(), []);
  const submit = async (event: SubmitEvent & { currentTarget: HTMLFormElement }) => {
    event.preventDefault();
    if (busy || refusal !== undefined) return;
    setBusy(true);
    setError(undefined);
    try {
      await onSubmit(new FormData(event.currentTarget));
    } catch (cause) {
      setError(cause);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form ref={element} class="form" onSubmit={(event) => background(submit(event), "what the form does")}>
        {children}
        <ErrorNote error={error} />
        <div class="buttons">
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <ReasonedButton type="submit" class={danger ? "danger" : "primary"} refusal={refusal} busy={busy}>
            {action}
          </ReasonedButton>
        </div>
      </form>
    </Dialog>
  );
}
