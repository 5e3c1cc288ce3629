/** The secrets of an app. Values go in, and never come back. */
import type { SecretsEffect } from "@hibernaut/client/browser";
import { useState } from "preact/hooks";
import { useLoaded, useServices } from "../../data/context.ts";
import { useFresh } from "../../data/fresh.ts";
import { lackOf } from "../../data/rights.ts";
import { ActionButton } from "../../parts/action.tsx";
import { Empty, ErrorNote, Loading, Section } from "../../parts/basics.tsx";
import { Field, FormDialog } from "../../parts/form-dialog.tsx";
import { Table } from "../../parts/table.tsx";
import { Ago } from "../../parts/time.tsx";

type Open = { what: "set" | "unset"; name: string };

/** Lists names and digests, sets and unsets. */
export function Secrets({ app }: { app: string }) {
  const { api, session, store } = useServices();
  const [open, setOpen] = useState<Open>();
  const [effect, setEffect] = useState<SecretsEffect>();
  const { data, error, reload } = useLoaded((signal) => api.listSecrets(app, { signal }), [app]);
  useFresh(reload);
  const refusal = lackOf(session, "deploy");
  const close = () => setOpen(undefined);
  const done = (what: SecretsEffect) => {
    close();
    setEffect(what);
    reload();
  };
  const names = (ids: readonly string[]) => ids.map((id) => store.machines.get(id)?.name ?? id).join(", ");
  return (
    <Section
      title="Secrets"
      aside={
        <ActionButton class="small" refusal={refusal} onClick={() => setOpen({ what: "set", name: "" })}>
          Set a secret…
        </ActionButton>
      }
    >
      <ErrorNote error={error} onRetry={reload} />
      {data === undefined && error === undefined && <Loading what="secrets" />}
      {data?.length === 0 && (
        <Empty title="This app has no secrets." command={`hibernaut secrets set NAME=value --app ${app}`}>
          Machines get secrets as environment variables at a cold start.
        </Empty>
      )}
      {effect !== undefined && (
        <p class="note" role="status">
          {effect.discarded.length > 0 && `Snapshots discarded: ${names(effect.discarded)}. `}
          {effect.pending.length > 0 && `See the change after a restart: ${names(effect.pending)}. `}
          {effect.discarded.length + effect.pending.length === 0 && "Machines see the change when they start."}
        </p>
      )}
      {data !== undefined && data.length > 0 && (
        <Table label="Secrets" columns={["Name", "Digest", "Set", { title: "Actions", look: "hidden" }]}>
          {data.map(({ name, digest, updated_at: updated }) => (
            <tr key={name} data-secret={name}>
              <th scope="row">
                <code>{name}</code>
              </th>
              <td>
                <code>{digest}</code>
              </td>
              <td class="nowrap">
                <Ago at={updated} />
              </td>
              <td class="nowrap actions">
                <ActionButton
                  class="small"
                  refusal={refusal}
                  label={`Replace ${name}`}
                  onClick={() => setOpen({ what: "set", name })}
                >
                  Replace…
                </ActionButton>
                <ActionButton
                  class="small danger"
                  refusal={refusal}
                  label={`Unset ${name}`}
                  onClick={() => setOpen({ what: "unset", name })}
                >
                  Unset…
                </ActionButton>
              </td>
            </tr>
          ))}
        </Table>
      )}
      {open?.what === "set" && <SetDialog app={app} name={open.name} onClose={close} onDone={done} />}
      {open?.what === "unset" && <UnsetDialog app={app} name={open.name} onClose={close} onDone={done} />}
    </Section>
  );
}

interface DialogProps {
  app: string;
  /** Empty for a new one. */
  name: string;
  onClose(): void;
  onDone(effect: SecretsEffect): void;
}

const EFFECT =
  "Snapshots of the app's machines hold the old values and are discarded, so machines that sleep start cold. Those that run see the change after a restart.";

function SetDialog({ app, name, onClose, onDone }: DialogProps) {
  const { api } = useServices();
  const set = async (form: FormData) => {
    const key = name === "" ? String(form.get("name")).trim() : name;
    onDone(await api.setSecrets(app, { [key]: String(form.get("value")) }));
  };
  return (
    <FormDialog title={name === "" ? "Set a secret" : `Replace ${name}`} action="Set" onClose={onClose} onSubmit={set}>
      {name === "" && <Field label="Name" name="name" required placeholder="API_KEY" />}
      <Field label="Value" name="value" type="password" autocomplete="new-password" />
      <p class="muted">{EFFECT} A value of several lines needs the CLI.</p>
    </FormDialog>
  );
}

function UnsetDialog({ app, name, onClose, onDone }: DialogProps) {
  const { api } = useServices();
  return (
    <FormDialog
      title={`Unset ${name}?`}
      action="Unset"
      danger
      onClose={onClose}
      onSubmit={async () => onDone(await api.unsetSecret(app, name))}
    >
      <p>Its value is gone for good. {EFFECT}</p>
    </FormDialog>
  );
}
