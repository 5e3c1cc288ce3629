/** What happened to a machine, newest first. */
import type { Machine, MachineEvent } from "@hibernaut/client/browser";
import { useState } from "preact/hooks";
import { useLoaded, useServices } from "../../data/context.ts";
import { moment } from "../../format.ts";
import { Empty, ErrorNote, Loading, Section } from "../../parts/basics.tsx";

/** Read at first, and with each "Show more". The platform sends at most 1000. */
const STEP = 50;
const MOST = 1_000;

/** The history, which is read again whenever the machine changes. */
export function Events({ machine }: { machine: Machine }) {
  const { api } = useServices();
  const { app_name: app, machine_id: id, updated_at: updated, state, snapshot } = machine;
  const [limit, setLimit] = useState(STEP);
  const { data, error, reload } = useLoaded(
    (signal) => api.listMachineEvents(app, id, { limit, signal }),
    [app, id, limit, updated, state, snapshot?.warm_until],
  );
  return (
    <Section title="Events">
      <ErrorNote error={error} onRetry={reload} />
      {data === undefined && error === undefined && <Loading lines={5} what="events" />}
      {data?.length === 0 && <Empty title="Nothing has happened yet." />}
      {data !== undefined && data.length > 0 && (
        <ol class="lined" aria-label="Events, newest first">
          {data.map((event, index) => (
            <Event key={data.length - index} event={event} />
          ))}
        </ol>
      )}
      {data !== undefined && data.length === limit && limit < MOST && (
        <button type="button" class="button small" onClick={() => setLimit(Math.min(MOST, limit + STEP))}>
          Show more
        </button>
      )}
    </Section>
  );
}

function Event({ event: { at, type, from, to, details } }: { event: MachineEvent }) {
  const entries = Object.entries(details).filter(([, value]) => value !== null);
  return (
    <li class="event" data-event={type}>
      <time class="muted" dateTime={at}>
        {moment(at)}
      </time>
      <div>
        <strong>{type.replaceAll("_", " ")}</strong>{" "}
        {from !== to && (
          <span class="muted">
            {from !== null && `${from} → `}
            {to}
          </span>
        )}
        {entries.length > 0 && (
          <div class="event-details line muted">
            {entries.map(([name, value]) => (
              <span key={name}>
                {name.replaceAll("_", " ")}: {typeof value === "string" ? value : JSON.stringify(value)}
              </span>
            ))}
          </div>
        )}
      </div>
    </li>
  );
}
