/** A machine's snapshot, and what it is made of. */
import type { Machine } from "@hibernaut/client/browser";
import { bytes, moment } from "../../format.ts";
import { CopyButton, Empty, Figure, Section } from "../../parts/basics.tsx";
import { Ago } from "../../parts/time.tsx";
import { egressText, sandboxText } from "./limits-text.ts";
import { Origin } from "./origin.tsx";

/** The snapshot: how large, how old, and whether the next start uses it. */
export function Snapshot({ machine }: { machine: Machine }) {
  const { snapshot, state, app_name: app, machine_id: id } = machine;
  if (snapshot === null)
    return (
      <Section title="Snapshot">
        <Empty title="This machine has no snapshot." command={`hibernaut machine suspend ${id} --app ${app}`}>
          It gets one when it is suspended. Without one, its next start is cold.
        </Empty>
      </Section>
    );
  return (
    <Section title="Snapshot">
      <dl class="figures">
        <Figure label="Size on disk" value={bytes(snapshot.size_bytes)} />
        <Figure label="Taken" value={<Ago at={snapshot.created_at} />} note={moment(snapshot.created_at)} />
        <Figure
          label="Next start"
          value={state === "suspended" ? "resumes from it" : "not from it"}
          note={useNote(machine)}
        />
      </dl>
    </Section>
  );
}

function useNote({ state, snapshot }: Machine): string {
  if (state !== "suspended") return `The machine is ${state}.`;
  const until = snapshot?.warm_until ?? null;
  if (until !== null) return `In memory until ${moment(until)}: a start takes milliseconds.`;
  return "It is checked before it is used; if it does not fit any more, the start is cold and says why.";
}

/** What the machine runs. */
export function Facts({ machine }: { machine: Machine }) {
  const {
    config,
    image,
    version,
    region,
    private_address: address,
    guest_bundle: bundle,
    created_at: created,
    app_name: app,
    origin,
  } = machine;
  const rows: [string, preact.ComponentChildren][] = [
    ["Image", <Copied key="image" text={image.ref} what="image" />],
    ["Digest", <Copied key="digest" text={image.digest} what="digest" />],
    ["Size", `${config.guest?.cpus ?? 1} CPU, ${config.guest?.memory_mb ?? 256} MB`],
    ["Services", servicesText(machine)],
    ["Private address", address],
    ["Region", region],
    ["Version", version],
    ["Guest bundle", bundle.current ? `${bundle.version}, current` : `${bundle.version}, an older one`],
    ["Created", <Ago key="created" at={created} />],
  ];
  if (origin !== null) rows.push(["Origin", <Origin key="origin" app={app} origin={origin} />]);
  for (const [label, text] of [
    ["Sandbox", sandboxText(machine)],
    ["Connects to", egressText(machine)],
  ] as const)
    if (text !== undefined) rows.push([label, text]);
  return (
    <Section title="Configuration">
      <dl class="facts">
        {rows.map(([label, value]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </Section>
  );
}

function Copied({ text, what }: { text: string; what: string }) {
  return (
    <>
      <code>{text}</code> <CopyButton text={text} what={what} />
    </>
  );
}

function servicesText({ config: { services = [] } }: Machine): string {
  if (services.length === 0) return "none: no requests reach it, and it is not put to sleep by itself";
  return services
    .map(({ internal_port: port, autostop = "off", idle_timeout: idle = 300 }) =>
      autostop === "off"
        ? `port ${port}, runs on when idle`
        : `port ${port}, ${autostop} after ${idle} s without requests`,
    )
    .join("; ");
}
