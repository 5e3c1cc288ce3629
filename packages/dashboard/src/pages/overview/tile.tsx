/** A machine as a live tile. */
import type { Machine } from "@hibernaut/client/browser";
import { useStore } from "../../data/context.ts";
import { TOPIC } from "../../data/store.ts";
import { toneOf } from "../../data/tone.ts";
import { inStateSince } from "../../data/track.ts";
import { duration } from "../../format.ts";
import { StateBadge } from "../../parts/state.tsx";
import { Since } from "../../parts/time.tsx";
import { Link } from "../../router.tsx";

const VERBS = { warm: "woke warm", resume: "resumed", cold: "cold started" } as const;

/** Shows what the machine does now, and how it last started. Renders alone when its machine changes. */
export function Tile({ id }: { id: string }) {
  const machine = useStore(TOPIC.machine(id), ({ machines }) => machines.get(id));
  const track = useStore(TOPIC.track(id), (store) => store.track(id));
  if (machine === undefined) return null;
  const since = inStateSince(track, machine);
  const { app_name: app, name, config, host } = machine;
  return (
    <li
      class="tile"
      style={{ borderLeftColor: `var(--${toneOf(machine)})` }}
      data-machine={id}
      data-state={machine.state}
    >
      <div class="tile-head">
        <Link class="tile-link" to={{ page: "machine", app, machine: id }}>
          {name}
        </Link>
        <span class="muted nowrap">
          {host !== undefined && `${host}, `}
          {config.guest?.memory_mb ?? 256} MB
        </span>
      </div>
      <div class="tile-state">
        <StateBadge machine={machine} />
        {since !== undefined && (
          <span class="muted">
            <Since at={since} />
          </span>
        )}
      </div>
      <div class="tile-foot muted">{lastStart(machine)}</div>
    </li>
  );
}

function lastStart({ host_state: host, state, state_reason: reason, last_boot: boot }: Machine): string {
  if (host === "unreachable") return "";
  if (state === "failed" && reason !== null) return reason;
  if (boot === null) return "never started";
  return `${VERBS[boot.kind]} in ${duration(boot.duration_ms)}`;
}
