/** A machine. */
import { useStore } from "../../data/context.ts";
import { TOPIC } from "../../data/store.ts";
import { Empty, Loading, Page } from "../../parts/basics.tsx";
import { StateBadge } from "../../parts/state.tsx";

/** The page of one machine. */
export default function MachinePage({ app, machine: id }: { app: string; machine: string }) {
  const machine = useStore(TOPIC.machine(id), ({ machines }) => machines.get(id));
  const isRead = useStore(TOPIC.world, (store) => store.isRead);
  return (
    <Page title={machine?.name ?? id} aside={machine && <StateBadge machine={machine} />}>
      {machine === undefined && !isRead && <Loading what="the machine" />}
      {machine === undefined && isRead && <Empty title={`The app ${app} has no machine with this id.`} />}
    </Page>
  );
}
