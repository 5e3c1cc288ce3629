/** All machines at a glance. */
import "./overview.css";
import type { App, Machine } from "@hibernaut/client/browser";
import { useState } from "preact/hooks";
import { useStore } from "../../data/context.ts";
import { TOPIC } from "../../data/store.ts";
import { type Tone, toneOf } from "../../data/tone.ts";
import { count } from "../../format.ts";
import { AppAddress, Empty, Loading, Page, Section } from "../../parts/basics.tsx";
import { StateShape } from "../../parts/state.tsx";
import { Link } from "../../router.tsx";
import { Problems } from "./problems.tsx";
import { Saved } from "./saved.tsx";
import { SleepChart } from "./sleep-chart.tsx";
import { Tile } from "./tile.tsx";
import { Wakes } from "./wakes.tsx";

/** The first page. */
export function Overview() {
  const [words, setWords] = useState("");
  const isRead = useStore(TOPIC.world, (store) => store.isRead);
  const groups = useStore(TOPIC.world, (store) => groupsOf(store.apps.values(), store.machines.values(), words));
  const hasApps = useStore(TOPIC.world, ({ apps }) => apps.size > 0);
  if (!isRead)
    return (
      <Page title="Overview">
        <Loading lines={6} what="machines" />
      </Page>
    );
  if (!hasApps)
    return (
      <Page title="Overview">
        <FirstApp />
      </Page>
    );
  const ids = groups.flatMap(({ machines }) => machines);
  return (
    <Page title="Overview" aside={<Filter words={words} onWords={setWords} />}>
      <Counts />
      <Problems />
      <Section title="Machines" plain>
        {groups.length === 0 && <Empty title="No machine has this in its name or its app's." />}
        {groups.map(({ app, machines }) => (
          <AppGroup key={app} app={app} machines={machines} />
        ))}
      </Section>
      <SleepChart ids={ids} />
      <Wakes />
      <Saved />
    </Page>
  );
}

interface Group {
  app: string;
  /** Ids. */
  machines: string[];
}

/** Machines by app, of those whose name or app contains the words. Pure. */
function groupsOf(apps: Iterable<App>, machines: Iterable<Machine>, words: string): Group[] {
  const wanted = words.trim().toLowerCase();
  const fits = (text: string) => text.toLowerCase().includes(wanted);
  const byApp = Map.groupBy(machines, ({ app_name: app }) => app);
  const names = new Set([...Array.from(apps, ({ name }) => name), ...byApp.keys()]);
  return [...names]
    .toSorted((a, b) => a.localeCompare(b))
    .map((app) => ({
      app,
      machines: (byApp.get(app) ?? [])
        .filter(({ name, machine_id: id }) => fits(app) || fits(name) || id.startsWith(wanted))
        .toSorted((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }))
        .map(({ machine_id: id }) => id),
    }))
    .filter(({ app, machines: found }) => found.length > 0 || fits(app));
}

function AppGroup({ app, machines }: Group) {
  const url = useStore(TOPIC.world, ({ apps }) => apps.get(app)?.urls[0]);
  return (
    <section class="app-group" aria-label={`App ${app}`}>
      <header class="app-head">
        <h3>
          <Link to={{ page: "app", app }}>{app}</Link>
        </h3>
        <span class="muted">{count(machines.length, "machine")}</span>
        {url !== undefined && <AppAddress url={url} />}
      </header>
      {machines.length === 0 ? (
        <Empty title="This app has no machines yet." command={`hibernaut deploy --app ${app}`} />
      ) : (
        <ul class="tiles">
          {machines.map((id) => (
            <Tile key={id} id={id} />
          ))}
        </ul>
      )}
    </section>
  );
}

const TONES: readonly [tone: Tone, label: string][] = [
  ["running", "running"],
  ["busy", "changing"],
  ["warm", "warm"],
  ["suspended", "suspended"],
  ["stopped", "stopped"],
  ["failed", "failed"],
];

/** How many machines are in each state. */
function Counts() {
  const counts = useStore(TOPIC.machines, ({ machines }) => {
    const found = new Map<Tone, number>();
    for (const machine of machines.values()) found.set(toneOf(machine), (found.get(toneOf(machine)) ?? 0) + 1);
    return found;
  });
  return (
    <dl class="counts">
      {TONES.map(([tone, label]) => (
        <div key={tone} class={(counts.get(tone) ?? 0) === 0 ? "count count-none" : "count"}>
          <dt>
            <StateShape tone={tone} />
            {label}
          </dt>
          <dd>{counts.get(tone) ?? 0}</dd>
        </div>
      ))}
    </dl>
  );
}

function Filter({ words, onWords }: { words: string; onWords(words: string): void }) {
  return (
    <label class="filter">
      <span class="hidden">Filter machines by name or app</span>
      <input
        type="search"
        placeholder="Filter by name or app"
        value={words}
        onInput={(event) => onWords(event.currentTarget.value)}
      />
    </label>
  );
}

/** What someone sees who has nothing yet. */
function FirstApp() {
  return (
    <Section title="Deploy your first app">
      <Empty title="There are no apps yet." command="hibernaut deploy">
        Run this in a directory with your program. It becomes an app with a machine, which sleeps when nobody uses it
        and wakes at the next request. It appears here by itself.
      </Empty>
    </Section>
  );
}
