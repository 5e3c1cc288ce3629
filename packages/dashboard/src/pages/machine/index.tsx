/** A machine: what it does and why, and everything that can be done with it. */
import "./machine.css";
import type { Machine } from "@hibernaut/client/browser";
import { useState } from "preact/hooks";
import { useStore } from "../../data/context.ts";
import { TOPIC } from "../../data/store.ts";
import { inStateSince } from "../../data/track.ts";
import { Empty, ErrorNote, Loading, Page, Section, Words } from "../../parts/basics.tsx";
import { Logs } from "../../parts/logs.tsx";
import { StateBadge } from "../../parts/state.tsx";
import { Ago, Since } from "../../parts/time.tsx";
import { Link } from "../../router.tsx";
import { Checks } from "./checks.tsx";
import { Console } from "./console.tsx";
import { Events } from "./events.tsx";
import { Facts, Snapshot } from "./facts.tsx";
import { leaseText } from "./limits-text.ts";
import { LoadSection } from "./load.tsx";
import { startSentence, stateSentence } from "./sentences.ts";
import { Toolbar } from "./toolbar.tsx";
import { useActivity, type Watched } from "./use-activity.ts";

/** The page of one machine. */
export default function MachinePage({ app, machine: id }: { app: string; machine: string }) {
  const machine = useStore(TOPIC.machine(id), ({ machines }) => machines.get(id));
  const isRead = useStore(TOPIC.world, (store) => store.isRead);
  const [wasThere, setWasThere] = useState<Machine>();
  if (machine !== undefined && wasThere !== machine) setWasThere(machine);
  const watched = useActivity(app, id, machine?.state);
  return (
    <Page
      title={machine?.name ?? wasThere?.name ?? id}
      above={
        <p class="crumbs">
          <Link to={{ page: "app", app }}>{app}</Link> <span class="muted">/ machine {id}</span>
        </p>
      }
      aside={machine && <Now machine={machine} />}
    >
      {machine === undefined && !isRead && <Loading lines={6} what="the machine" />}
      {machine === undefined && isRead && <Missing app={app} wasThere={wasThere !== undefined} />}
      {machine !== undefined && (
        <>
          <Toolbar machine={machine} />
          <Why machine={machine} watched={watched} />
          <Checks machine={machine} />
          <LoadSection loads={watched.loads} />
          <Section title="Logs">
            <Logs app={app} machine={id} />
          </Section>
          <Console machine={machine} />
          <Snapshot machine={machine} />
          <Facts machine={machine} />
          <Events machine={machine} />
        </>
      )}
    </Page>
  );
}

/** The state, read aloud when it changes. */
function Now({ machine }: { machine: Machine }) {
  const track = useStore(TOPIC.track(machine.machine_id), (store) => store.track(machine.machine_id));
  const since = inStateSince(track, machine);
  return (
    <span class="machine-now" data-state={machine.state}>
      <span role="status">
        <StateBadge machine={machine} />
      </span>
      {since !== undefined && (
        <span class="muted">
          <Since at={since} />
        </span>
      )}
    </span>
  );
}

function Missing({ app, wasThere }: { app: string; wasThere: boolean }) {
  if (wasThere)
    return (
      <Empty title="This machine was destroyed.">
        Its history is kept until the app is destroyed: <code>hibernaut machine events</code> shows it.
      </Empty>
    );
  return (
    <Empty title={`The app ${app} has no machine with this id.`} command={`hibernaut machine list --app ${app}`} />
  );
}

function Why({ machine, watched: { activity, error } }: { machine: Machine; watched: Watched }) {
  const { last_boot: boot, unreachable, prewarm } = machine;
  const leased = leaseText(machine, Date.now());
  const awake = activity?.state === machine.state ? activity.awake : undefined;
  return (
    <Section title="Why">
      <div class="why stack">
        <p data-why={awake?.reason ?? machine.state}>
          <Words text={stateSentence(machine, awake)} />
        </p>
        {unreachable !== null && (
          <p class="bad">
            Requests do not reach the app: <Words text={unreachable} />
          </p>
        )}
        {leased !== undefined && (
          <p>
            <Words text={leased} />
          </p>
        )}
        {awake && awake.open_requests + awake.running_commands > 0 && (
          <p class="muted">
            Open requests: {awake.open_requests}. Commands: {awake.running_commands}.
          </p>
        )}
        {prewarm?.status === "failed" && <p class="bad">The last update did not work: {prewarm.reason}</p>}
        {boot !== null && (
          <p>
            Its last start, <Ago at={boot.at} />, {startSentence(boot)}
          </p>
        )}
        {machine.next_run !== null && (
          <p>
            Its schedule starts it <Ago at={machine.next_run} />.
          </p>
        )}
      </div>
      <ErrorNote error={error} />
    </Section>
  );
}
