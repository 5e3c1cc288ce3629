/** The dialog that shows a new token's secret, once. */
import type { NewToken } from "@hibernaut/client/browser";
import { CopyButton } from "../../parts/basics.tsx";
import { Dialog } from "../../parts/dialog.tsx";

/** Shows a new token's secret. */
export function NewTokenValue({ token, onClose }: { token: NewToken; onClose(): void }) {
  return (
    <Dialog title={`Token ${token.name}`} onClose={onClose}>
      <p>Copy it now: it is shown only this once, and the platform does not keep it.</p>
      <div class="command">
        <code data-secret>{token.token}</code>
        <CopyButton text={token.token} what="token" />
      </div>
      <div class="buttons">
        <button type="button" class="button primary" onClick={onClose}>
          I have copied it
        </button>
      </div>
    </Dialog>
  );
}
