/** What sleeping saves, in memory and money. */
import type { UsageReport } from "@hibernaut/client/browser";
import { useLoaded, useServices, useStore } from "../../data/context.ts";
import { useFresh } from "../../data/fresh.ts";
import { TOPIC } from "../../data/store.ts";
import { sleepingMemory } from "../../data/tone.ts";
import { bytes, duration, money, share } from "../../format.ts";
import { ErrorNote, Figure, Loading, NoPrices, Section } from "../../parts/basics.tsx";

/** Shows memory that is free because machines sleep, and the usage of the last 30 days. */
export function Saved() {
  const { api } = useServices();
  const memory = useStore(TOPIC.machines, ({ machines }) => sleepingMemory(machines.values()));
  const { data, error, reload } = useLoaded((signal) => api.getUsage({ signal }), []);
  useFresh(reload);
  return (
    <Section title="Saved by sleeping">
      <dl class="figures">
        <Figure
          label="Memory not in use now"
          value={bytes(memory.asleep)}
          note={
            memory.all === 0
              ? "There are no machines yet."
              : `${share(memory.asleep, memory.all)} of ${bytes(memory.all)} that all machines have`
          }
        />
        {data !== undefined && <UsageFigures report={data} />}
      </dl>
      {data === undefined && error === undefined && <Loading lines={1} what="the usage" />}
      <ErrorNote error={error} onRetry={reload} />
    </Section>
  );
}

function UsageFigures({ report: { total, currency } }: { report: UsageReport }) {
  const asleep = total.suspended_seconds + total.stopped_seconds;
  const whole = asleep + total.running_seconds;
  return (
    <>
      <Figure
        label="Asleep, last 30 days"
        value={whole === 0 ? "–" : share(asleep, whole)}
        note={`${duration(asleep * 1000)} of ${duration(whole * 1000)} of machine time`}
      />
      {total.cost !== null && currency !== null ? (
        <Figure
          label="Money saved, last 30 days"
          value={money(total.cost.saved_by_sleeping, currency)}
          note={`${money(total.cost.total, currency)} instead of ${money(total.cost.if_always_running, currency)}`}
        />
      ) : (
        <NoPrices label="Money saved, last 30 days" />
      )}
    </>
  );
}
