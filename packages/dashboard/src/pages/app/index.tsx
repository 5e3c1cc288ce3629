/** An app and its machines. */
import { useStore } from "../../data/context.ts";
import { TOPIC } from "../../data/store.ts";
import { Empty, Loading, Page } from "../../parts/basics.tsx";
import { Tile } from "../overview/tile.tsx";

/** The page of one app. */
export default function AppPage({ app }: { app: string }) {
  const ids = useStore(TOPIC.world, ({ machines }) =>
    [...machines.values()].filter(({ app_name: name }) => name === app).map(({ machine_id: id }) => id),
  );
  const known = useStore(TOPIC.world, (store) => (store.isRead ? store.apps.has(app) : undefined));
  return (
    <Page title={app}>
      {known === undefined && <Loading what="the app" />}
      {known === false && <Empty title="There is no app with this name." command={`hibernaut apps create ${app}`} />}
      {known && (
        <ul class="tiles">
          {ids.map((id) => (
            <Tile key={id} id={id} />
          ))}
        </ul>
      )}
    </Page>
  );
}
