/** What an app used in the last 30 days, what that cost, and what it may have at most. */
import type { Quota, Usage } from "@hibernaut/client/browser";
import { useState } from "preact/hooks";
import { isAdmin, useLoaded, useServices } from "../../data/context.ts";
import { useFresh } from "../../data/fresh.ts";
import { TOPIC } from "../../data/store.ts";
import { bytes, count, duration, money, share } from "../../format.ts";
import { ActionButton, useAction } from "../../parts/action.tsx";
import { ErrorNote, Figure, Loading, NoPrices, Section } from "../../parts/basics.tsx";
import { Field, FormDialog } from "../../parts/form-dialog.tsx";
import { type Limit, limitChanges, limitText } from "./limit-values.ts";

const SECOND_MS = 1000;

/** Time awake, wakes, traffic and money, as the platform counted them. */
export function UsageSection({ app }: { app: string }) {
  const { api } = useServices();
  const { data, error, reload } = useLoaded((signal) => api.getUsage({ app, signal }), [app]);
  useFresh(reload);
  return (
    <Section title="Usage of the last 30 days">
      <ErrorNote error={error} onRetry={reload} />
      {data === undefined && error === undefined && <Loading what="the usage" />}
      {data !== undefined && <Figures usage={data.total} currency={data.currency} />}
    </Section>
  );
}

function Figures({ usage, currency }: { usage: Usage; currency: string | null }) {
  const { running_seconds: running, suspended_seconds: suspended, stopped_seconds: stopped, wakes, cost } = usage;
  const whole = running + suspended + stopped;
  return (
    <dl class="figures">
      <Figure
        label="Awake"
        value={share(running, whole)}
        note={`${duration(running * SECOND_MS)} of ${duration(whole * SECOND_MS)} of machine time`}
      />
      <Figure
        label="Wakes by requests"
        value={(wakes.resume + wakes.cold).toLocaleString("en-US")}
        note={count(wakes.cold, "cold start")}
      />
      <Figure
        label="Traffic"
        value={bytes(usage.proxied_bytes.in + usage.proxied_bytes.out)}
        note={`${bytes(usage.proxied_bytes.in)} in, ${bytes(usage.proxied_bytes.out)} out`}
      />
      {cost !== null && currency !== null ? (
        <>
          <Figure label="Cost" value={money(cost.total, currency)} note="CPU, memory and storage" />
          <Figure
            label="Saved by sleeping"
            value={money(cost.saved_by_sleeping, currency)}
            note={`${money(cost.if_always_running, currency)} if the machines had always run`}
          />
        </>
      ) : (
        <NoPrices label="Cost" />
      )}
    </dl>
  );
}

const LIMITS: readonly [name: Limit, label: string, unit: string][] = [
  ["machines", "Machines", ""],
  ["running", "Running at once", ""],
  ["cpus", "CPUs", ""],
  ["memory_mb", "Memory", " MB"],
  ["volume_gb", "Volumes", " GB"],
  ["hostnames", "Hostnames", ""],
  ["certificates", "Certificates", ""],
  ["previews", "Previews", ""],
];

/** What the app may have, and what it has. Admins change it. */
export function Limits({ app }: { app: string }) {
  const { api, session } = useServices();
  const [open, setOpen] = useState<Quota>();
  const opening = useAction();
  const { data, error, reload } = useLoaded((signal) => api.getQuota(app, { signal }), [app]);
  useFresh(reload, TOPIC.machines);
  const close = () => setOpen(undefined);
  // Others change limits, too: the dialog begins with what they are now.
  const read = () => opening.run(async () => setOpen(await api.getQuota(app)));
  return (
    <Section
      title="Limits"
      aside={
        isAdmin(session) &&
        data !== undefined && (
          <ActionButton class="small" busy={opening.busy} onClick={read}>
            Change limits…
          </ActionButton>
        )
      }
    >
      <ErrorNote error={error} onRetry={reload} />
      <ErrorNote error={opening.error} />
      {data === undefined && error === undefined && <Loading what="limits" />}
      {data !== undefined && (
        <dl class="figures">
          {LIMITS.map(([name, label, unit]) => (
            <Figure
              key={name}
              label={label}
              value={`${data.used[name].toLocaleString("en-US")}${unit}`}
              note={limitSentence(data, name, unit)}
            />
          ))}
        </dl>
      )}
      {open !== undefined && (
        <LimitsDialog
          app={app}
          quota={open}
          onClose={close}
          onDone={() => {
            close();
            reload();
          }}
        />
      )}
    </Section>
  );
}

function limitSentence({ limits, own }: Quota, name: Limit, unit: string): string {
  const whose = own.includes(name) ? "the app's own" : "the platform's";
  return limits[name] === 0 ? `no limit, ${whose}` : `of ${limits[name].toLocaleString("en-US")}${unit}, ${whose}`;
}

interface LimitsDialogProps {
  app: string;
  quota: Quota;
  onClose(): void;
  onDone(): void;
}

function LimitsDialog({ app, quota, onClose, onDone }: LimitsDialogProps) {
  const { api } = useServices();
  const save = async (form: FormData) => {
    const changes = limitChanges(quota, (name) => String(form.get(name)));
    if (Object.keys(changes).length > 0) await api.updateQuota(app, changes);
    onDone();
  };
  return (
    <FormDialog title={`Limits of ${app}`} action="Save" onClose={onClose} onSubmit={save}>
      <p class="muted">0: no limit. Empty: the platform's. What the app has already is not taken away.</p>
      {LIMITS.map(([name, label, unit]) => (
        <Field
          key={name}
          label={unit === "" ? label : `${label}, in${unit}`}
          name={name}
          type="number"
          min="0"
          defaultValue={limitText(quota, name)}
          placeholder={quota.own.includes(name) ? "" : `the platform's: ${quota.limits[name]}`}
        />
      ))}
    </FormDialog>
  );
}
