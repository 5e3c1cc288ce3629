/** The settings that decide when machines sleep, each explained in a sentence. */
import type { Machine } from "@hibernaut/client/browser";
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { background } from "../../data/background.ts";
import { useServices, useStore } from "../../data/context.ts";
import { lackOf } from "../../data/rights.ts";
import { TOPIC } from "../../data/store.ts";
import { count } from "../../format.ts";
import { Section } from "../../parts/basics.tsx";
import { changeSettings, isBusy, useJob } from "./jobs.ts";
import { deployTargets, groupOf, inOrder } from "./rollout-plan.ts";
import {
  changesOf,
  type Common,
  commonSettings,
  MAY_BE_EMPTY,
  type NumberName,
  type SettingName,
  type Settings,
  typedNumbers,
  withSettings,
} from "./setting-values.ts";

/** A day: the longest idle timeout, in seconds. */
const DAY_S = 86_400;

/** Shows and changes the settings of an app's machines, of one process group at a time. */
export function SettingsSection({ app }: { app: string }) {
  const machines = useStore(TOPIC.machines, (store) =>
    deployTargets([...store.machines.values()].filter(({ app_name: name }) => name === app)),
  );
  const groups = [...new Set(machines.map(groupOf))].sort();
  const [chosen, setChosen] = useState<string>();
  const group = chosen !== undefined && groups.includes(chosen) ? chosen : groups[0];
  const own = machines.filter((machine) => groupOf(machine) === group);
  const common = commonSettings(own);
  if (common === undefined || group === undefined) return null;
  return (
    <Section
      title="Settings"
      aside={
        groups.length > 1 && (
          <select
            aria-label="Process group"
            class="fit"
            value={group}
            onChange={(event) => setChosen(event.currentTarget.value)}
          >
            {groups.map((name) => (
              <option key={name} value={name}>
                {name === "" ? "no process group" : name}
              </option>
            ))}
          </select>
        )
      }
    >
      <SettingsForm key={group} app={app} machines={own} common={common} />
    </Section>
  );
}

interface FormProps {
  app: string;
  machines: readonly Machine[];
  common: Common;
}

function SettingsForm({ app, machines, common }: FormProps) {
  const { settings, differing, ofFirstService } = common;
  const { api, session } = useServices();
  const job = useJob(app);
  const [chosen, setChosen] = useState<Partial<Settings>>({});
  // As typed: a field that is empty or half written has to stay so when the form is rendered again.
  const [texts, setTexts] = useState<Partial<Record<NumberName, string>>>({});
  const changes = { ...chosen, ...typedNumbers(texts) };
  const draft = { ...settings, ...changes };
  const changed = changesOf(settings, draft);
  // What machines differ in is sent, too, when someone chose a value for it.
  const sent = { ...changed, ...pick(changes, differing) };
  const hasServices = machines.some(({ config }) => (config.services ?? []).length > 0);
  const set = (parts: Partial<Settings>) => setChosen({ ...chosen, ...parts });
  const discard = () => {
    setChosen({});
    setTexts({});
  };
  const refusal =
    lackOf(session, "deploy") ?? (isBusy(job) ? "The app is being changed. Wait until that is done." : undefined);
  const locked = refusal !== undefined;
  const save = (event: SubmitEvent) => {
    event.preventDefault();
    if (locked || Object.keys(sent).length === 0) return;
    background(
      changeSettings(api, app, inOrder(machines), (config) => withSettings(config, sent)),
      "changing settings",
    );
    discard();
  };
  const notesOf = (name: SettingName) => [
    ...(differing.includes(name) ? ["The machines differ in this; the first one's is shown."] : []),
    ...(ofFirstService.includes(name) ? ["Services that have another value than the first one keep it."] : []),
  ];
  const number = (name: NumberName, label: string, what: ComponentChildren, limits: { min: number; max?: number }) => (
    <NumberField
      name={name}
      label={label}
      what={what}
      limits={limits}
      value={texts[name] ?? String(settings[name] ?? "")}
      notes={notesOf(name)}
      locked={locked}
      onValue={(text) => setTexts({ ...texts, [name]: text })}
    />
  );
  return (
    <form class="settings" onSubmit={save}>
      {!hasServices && (
        <p class="muted">
          These machines have no service: no requests reach them, and only machines with a service are put to sleep by
          themselves.
        </p>
      )}
      {hasServices && (
        <>
          <Field
            label="When idle"
            what="What happens to a machine that nobody uses. A suspended one keeps its memory, a stopped one does not."
            notes={notesOf("autostop")}
          >
            <select
              name="autostop"
              value={draft.autostop}
              disabled={locked}
              onChange={(event) => set({ autostop: event.currentTarget.value as Settings["autostop"] })}
            >
              <option value="suspend">suspend it</option>
              <option value="stop">stop it</option>
              <option value="off">let it run</option>
            </select>
          </Field>
          {number("idle_timeout", "Idle timeout, in seconds", "A machine is idle after this time without a request.", {
            min: 1,
            max: DAY_S,
          })}
          {number(
            "keep_warm",
            "Keep warm, in seconds",
            "For this time after a suspend, the paused virtual machine stays in memory, and a wake takes milliseconds. 0: not at all. Empty: the platform's setting.",
            { min: 0, max: DAY_S },
          )}
          {number(
            "min_machines_running",
            "Machines that keep running",
            "This many of the app's running machines do not sleep when they are idle. It starts none.",
            { min: 0 },
          )}
          {number("soft_limit", "Soft limit", "At this many open requests, another machine of the app is started.", {
            min: 1,
          })}
          {number(
            "hard_limit",
            "Hard limit",
            "At this many open requests, the machine takes no more. Empty: no limit.",
            { min: 1 },
          )}
          <Field
            label="Wake by request"
            what="Whether a request starts a machine that sleeps."
            notes={notesOf("autostart")}
          >
            <select
              name="autostart"
              value={draft.autostart ? "on" : "off"}
              disabled={locked}
              onChange={(event) => set({ autostart: event.currentTarget.value === "on" })}
            >
              <option value="on">on</option>
              <option value="off">off</option>
            </select>
          </Field>
        </>
      )}
      {number("memory_mb", "Memory, in MB", "Of each machine. A suspend writes what is used of it to disk.", {
        min: 1,
      })}
      {number("cpus", "CPUs", "Of each machine.", { min: 1 })}
      <div class="settings-foot">
        <p class="muted">
          {refusal ??
            `Saving updates ${count(machines.length, "machine")}${machines.length > 1 ? ", one after the other" : ""}: one that runs starts cold, one that sleeps loses its snapshot. The next deploy from an app file sets these again.`}
        </p>
        <div class="buttons">
          <button
            type="button"
            class="button"
            aria-disabled={Object.keys(chosen).length + Object.keys(texts).length === 0}
            onClick={discard}
          >
            Discard
          </button>
          <button type="submit" class="button primary" aria-disabled={locked || Object.keys(sent).length === 0}>
            Save
          </button>
        </div>
      </div>
    </form>
  );
}

interface NumberFieldProps {
  name: NumberName;
  label: string;
  what: ComponentChildren;
  limits: { min: number; max?: number };
  /** As it was typed. */
  value: string;
  notes: readonly string[];
  locked: boolean;
  onValue(value: string): void;
}

function NumberField({ name, label, what, limits, value, notes, locked, onValue }: NumberFieldProps) {
  return (
    <Field label={label} what={what} notes={notes}>
      <input
        name={name}
        type="number"
        inputMode="numeric"
        {...limits}
        required={!MAY_BE_EMPTY.has(name)}
        disabled={locked}
        value={value}
        onInput={(event) => onValue(event.currentTarget.value)}
      />
    </Field>
  );
}

function Field({
  label,
  what,
  notes,
  children,
}: {
  label: string;
  what: ComponentChildren;
  notes: readonly string[];
  children: ComponentChildren;
}) {
  return (
    <label class="field setting">
      <span>{label}</span>
      {children}
      <small class="muted">
        {what}
        {notes.map((note) => (
          <em key={note}> {note}</em>
        ))}
      </small>
    </label>
  );
}

function pick(changes: Partial<Settings>, names: readonly SettingName[]): Partial<Settings> {
  return Object.fromEntries(Object.entries(changes).filter(([name]) => names.includes(name as SettingName)));
}
