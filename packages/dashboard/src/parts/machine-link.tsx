/** A link to a machine, as long as there is one. */
import { useStore } from "../data/context.ts";
import { TOPIC } from "../data/store.ts";
import { Link } from "../router.tsx";

interface MachineLinkProps {
  app: string;
  id: string;
  /** Its name, if it was made a moment ago: the store may not have it yet. */
  name?: string;
}

/** The machine's name. Of one that is gone, only the id is known. */
export function MachineLink({ app, id, name }: MachineLinkProps) {
  const shown = useStore(TOPIC.machine(id), ({ machines }) => machines.get(id)?.name) ?? name;
  if (shown === undefined)
    return (
      <>
        <code>{id}</code> <span class="muted">(gone)</span>
      </>
    );
  return <Link to={{ page: "machine", app, machine: id }}>{shown}</Link>;
}
