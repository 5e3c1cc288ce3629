/** Networks of apps, such as those of compose files: who is awake in them, and who wakes whom. */
import "./networks.css";
import { Fragment } from "preact";
import { useLoaded, useServices, useStore } from "../../data/context.ts";
import { useFresh } from "../../data/fresh.ts";
import { TOPIC } from "../../data/store.ts";
import { count } from "../../format.ts";
import { Empty, ErrorNote, Loading, Page, Section } from "../../parts/basics.tsx";
import { StateShape } from "../../parts/state.tsx";
import { Table } from "../../parts/table.tsx";
import { Link } from "../../router.tsx";
import { type Member, type Network, networksOf, withPlaces } from "./facts.ts";
import { Graph } from "./graph.tsx";

const COLUMNS = ["App", "State", "Also called", "Wakes", "Woken by"] as const;

/** The page of all networks. */
export default function NetworksPage() {
  const { api } = useServices();
  // No event says that aliases have changed, or what an app wakes.
  const { data, error, reload } = useLoaded((signal) => api.listApps({ signal }), []);
  useFresh(reload, TOPIC.world);
  const isRead = useStore(TOPIC.world, (store) => store.isRead);
  const apps = useStore(TOPIC.world, (store) => withPlaces(store.apps.values(), data));
  const networks = useStore(TOPIC.machines, ({ machines }) => networksOf(apps, machines.values()));
  return (
    <Page title="Networks">
      <ErrorNote error={error} onRetry={reload} />
      {!isRead && <Loading lines={6} what="networks" />}
      {isRead && networks.length === 0 && <NoNetworks />}
      {networks.map((network) => (
        <NetworkSection key={network.name} network={network} />
      ))}
    </Page>
  );
}

function NoNetworks() {
  return (
    <Section title="Bring a project up">
      <Empty title="No app shares a network with others." command="hibernaut compose up">
        Run this in a directory with a compose file. Each of its services becomes an app, and they find each other by
        name in a network of their own. What wakes what is shown here.
      </Empty>
    </Section>
  );
}

function NetworkSection({ network }: { network: Network }) {
  const { name, members } = network;
  return (
    <Section title={name} aside={<span class="muted">{count(members.length, "app")}</span>}>
      <Graph network={network} />
      <Table label={`Apps of ${name}`} columns={COLUMNS}>
        {members.map((member) => (
          <MemberRow key={member.app} member={member} seen={members} />
        ))}
      </Table>
    </Section>
  );
}

function MemberRow({ member, seen }: { member: Member; seen: readonly Member[] }) {
  const { app, aliases, wakes, wokenBy, condition } = member;
  return (
    <tr data-app={app}>
      <th scope="row" class="names">
        <Link to={{ page: "app", app }}>{app}</Link>
      </th>
      <td class="nowrap">
        <span class="badge">
          <StateShape tone={condition.tone} />
          {condition.words}
        </span>
      </td>
      <td class="names">{aliases.length === 0 ? <span class="muted">–</span> : aliases.join(", ")}</td>
      <td class="names">
        <Apps names={wakes} seen={seen} />
      </td>
      <td class="names">
        <Apps names={wokenBy} seen={seen} />
      </td>
    </tr>
  );
}

/** Links to apps. One that the token does not allow, or that is gone, is only named. */
function Apps({ names, seen }: { names: readonly string[]; seen: readonly Member[] }) {
  if (names.length === 0) return <span class="muted">–</span>;
  return (
    <>
      {names.map((app, index) => (
        <Fragment key={app}>
          {index > 0 && ", "}
          {seen.some((one) => one.app === app) ? <Link to={{ page: "app", app }}>{app}</Link> : app}
        </Fragment>
      ))}
    </>
  );
}
