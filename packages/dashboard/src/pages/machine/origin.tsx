/** Whose memory a machine began with. */
import { ApiError, type Machine } from "@hibernaut/client/browser";
import { useChanges, useLoaded, useServices } from "../../data/context.ts";
import { TOPIC } from "../../data/store.ts";
import { MachineLink } from "../../parts/machine-link.tsx";
import { Link } from "../../router.tsx";

interface OriginProps {
  app: string;
  origin: NonNullable<Machine["origin"]>;
}

/** Names the machine, and the template if there was one. */
export function Origin({ app, origin: { kind, machine_id: machine, template } }: OriginProps) {
  return (
    <span data-origin={kind}>
      {template === null ? "Fork of " : <TemplateLink app={app} id={template} />}
      <MachineLink app={app} id={machine} />
    </span>
  );
}

/** A template's name is not in the store. It may be deleted, which takes nothing from the machine. */
function TemplateLink({ app, id }: { app: string; id: string }) {
  const { api } = useServices();
  const changes = useChanges(TOPIC.templates(app));
  const { data, error } = useLoaded((signal) => api.getTemplate(app, id, { signal }), [app, id, changes]);
  const isDeleted = error instanceof ApiError && error.code === "not_found";
  return (
    <>
      Template{" "}
      {isDeleted ? (
        <>
          <code>{id}</code> <span class="muted">(deleted)</span>
        </>
      ) : (
        <Link to={{ page: "app", app }}>{data?.name ?? id}</Link>
      )}
      {", made of "}
    </>
  );
}
