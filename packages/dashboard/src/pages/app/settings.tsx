/** The settings that decide when machines sleep, each explained in a sentence. */
import type { Machine } from "@hibernaut/client/browser";
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
  type Common,
  changesOf,
  commonSettings,
  SETTINGS,
  type Setting,
  type Settings,
  typedNumbers,
  type Value,
  withSettings,
} from "./setting-values.ts";

/** Shows and changes the settings of an app's machines, of one process group at a time. */
export function SettingsSection({ app }: { app: string }) {
  const machines = useStore(TOPIC.machines, (store) => deployTargets(store.machinesOf(app)));
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
  const [chosen, setChosen] = useState<Settings>({});
  // As typed: a field that is empty or half written has to stay so when the form is rendered again.
  const [texts, setTexts] = useState<Readonly<Record<string, string>>>({});
  const changes = { ...chosen, ...typedNumbers(texts) };
  const draft = { ...settings, ...changes };
  const changed = changesOf(settings, draft);
  // What machines differ in is sent, too, when someone chose a value for it.
  const sent = { ...changed, ...pick(changes, differing) };
  const hasServices = machines.some(({ config }) => (config.services ?? []).length > 0);
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
  const notesOf = (name: string) => [
    ...(differing.includes(name) ? ["The machines differ in this; the first one's is shown."] : []),
    ...(ofFirstService.includes(name) ? ["Services that have another value than the first one keep it."] : []),
  ];
  return (
    <form class="settings" onSubmit={save}>
      {!hasServices && (
        <p class="muted">
          These machines have no service: no requests reach them, and only workers among them sleep by themselves.
        </p>
      )}
      {SETTINGS.filter(({ ofService }) => hasServices || !ofService).map((setting) => (
        <SettingField
          key={setting.name}
          setting={setting}
          value={draft[setting.name] ?? null}
          text={texts[setting.name] ?? String(settings[setting.name] ?? "")}
          notes={notesOf(setting.name)}
          locked={locked}
          onChoice={(value) => setChosen({ ...chosen, [setting.name]: value })}
          onText={(text) => setTexts({ ...texts, [setting.name]: text })}
        />
      ))}
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

interface SettingFieldProps {
  setting: Setting;
  value: Value;
  /** A number as it was typed. */
  text: string;
  notes: readonly string[];
  locked: boolean;
  onChoice(value: Value): void;
  onText(text: string): void;
}

function SettingField({ setting, value, text, notes, locked, onChoice, onText }: SettingFieldProps) {
  const { name, field, label, without } = setting;
  return (
    <label class="field setting">
      <span>{label}</span>
      {field.kind === "choice" || field.kind === "boolean" ? (
        <select
          name={name}
          value={String(value)}
          disabled={locked}
          onChange={({ currentTarget }) =>
            onChoice(field.kind === "boolean" ? currentTarget.value === "true" : currentTarget.value)
          }
        >
          {(field.kind === "boolean" ? ["true", "false"] : field.choices).map((choice) => (
            <option key={choice} value={choice}>
              {field.kind === "choice" ? choice : choice === "true" ? "on" : "off"}
            </option>
          ))}
        </select>
      ) : (
        <input
          name={name}
          type="number"
          inputMode="numeric"
          {...("minimum" in field && { min: field.minimum, max: field.maximum })}
          required={without !== null}
          disabled={locked}
          value={text}
          onInput={({ currentTarget }) => onText(currentTarget.value)}
        />
      )}
      <small class="muted">
        {field.description}
        {without === null && <> Empty: {field.default}.</>}
        {notes.map((note) => (
          <em key={note}> {note}</em>
        ))}
      </small>
    </label>
  );
}

function pick(changes: Settings, names: readonly string[]): Settings {
  return Object.fromEntries(Object.entries(changes).filter(([name]) => names.includes(name)));
}
