/** An app: its machines, its releases, and everything that belongs to it. */
import "./app.css";
import { useStore } from "../../data/context.ts";
import { TOPIC } from "../../data/store.ts";
import { AppAddress, Empty, Loading, Page, Section } from "../../parts/basics.tsx";
import { Logs } from "../../parts/logs.tsx";
import { Tile } from "../overview/tile.tsx";
import { Progress } from "./deploy.tsx";
import { Hostnames } from "./hostnames.tsx";
import { Releases } from "./releases.tsx";
import { Secrets } from "./secrets.tsx";
import { SettingsSection } from "./settings.tsx";
import { Templates } from "./templates.tsx";
import { Limits, UsageSection } from "./usage.tsx";
import { Volumes } from "./volumes.tsx";

/** The page of one app. */
export default function AppPage({ app }: { app: string }) {
  const known = useStore(TOPIC.world, (store) => (store.isRead ? store.apps.has(app) : undefined));
  const urls = useStore(TOPIC.world, ({ apps }) => apps.get(app)?.urls ?? []);
  return (
    <Page
      title={app}
      aside={
        <span class="line">
          {urls.map((url) => (
            <AppAddress key={url} url={url} />
          ))}
        </span>
      }
    >
      {known === undefined && <Loading lines={6} what="the app" />}
      {known === false && <Empty title="There is no app with this name." command={`hibernaut apps create ${app}`} />}
      {known === true && (
        <>
          <Machines app={app} />
          <Templates app={app} />
          <Progress app={app} />
          <Releases app={app} />
          <Section title="Logs">
            <Logs app={app} />
          </Section>
          <SettingsSection app={app} />
          <Hostnames app={app} />
          <Secrets app={app} />
          <Volumes app={app} />
          <UsageSection app={app} />
          <Limits app={app} />
        </>
      )}
    </Page>
  );
}

function Machines({ app }: { app: string }) {
  const ids = useStore(TOPIC.world, (store) =>
    store
      .machinesOf(app)
      .toSorted((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }))
      .map(({ machine_id: id }) => id),
  );
  return (
    <Section title="Machines" plain>
      {ids.length === 0 ? (
        <Empty title="This app has no machines yet." command={`hibernaut deploy --app ${app}`}>
          Run this in a directory with your program. It creates the first machine; from then on, you can deploy other
          images here, too.
        </Empty>
      ) : (
        <ul class="tiles">
          {ids.map((id) => (
            <Tile key={id} id={id} />
          ))}
        </ul>
      )}
    </Section>
  );
}
