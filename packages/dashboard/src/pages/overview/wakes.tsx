/** Wakes per hour, and how long they took. */
import type { Wakes as WakesReport } from "@hibernaut/client/browser";
import { useLoaded, useServices } from "../../data/context.ts";
import { useFresh } from "../../data/fresh.ts";
import { TOPIC } from "../../data/store.ts";
import { WAKE_KINDS } from "../../data/track.ts";
import { duration, hourOf } from "../../format.ts";
import { Empty, ErrorNote, Loading, Section } from "../../parts/basics.tsx";
import { lazyPart } from "../../parts/lazy.tsx";
import { Table } from "../../parts/table.tsx";

const COLUMNS = [
  "Hour",
  "Kind",
  { title: "Wakes", look: "number" },
  { title: "p50", look: "number" },
  { title: "p99", look: "number" },
] as const;

const HOURS = 24;

const Plots = lazyPart("the plots", async () => (await import("./plots.tsx")).Plots);

/** Shows the wakes of the last 24 hours, as plots and as a table. */
export function Wakes() {
  const { api } = useServices();
  const { data, error, reload } = useLoaded((signal) => api.getWakes({ hours: HOURS, signal }), []);
  useFresh(reload, TOPIC.wakes);
  const any = data?.hours.some(({ kinds }) => WAKE_KINDS.some((kind) => kinds[kind] !== undefined)) ?? false;
  return (
    <Section title="Wakes">
      <ErrorNote error={error} onRetry={reload} />
      {data === undefined && error === undefined && <Loading what="wakes" />}
      {data !== undefined && !any && (
        <Empty title="No machine woke in the last 24 hours.">
          A request to a sleeping machine wakes it. How often, and how fast, is shown here.
        </Empty>
      )}
      {data !== undefined && any && (
        <>
          <Plots report={data} />
          <details class="more">
            <summary>Show as a table</summary>
            <WakeTable report={data} />
          </details>
        </>
      )}
    </Section>
  );
}

function WakeTable({ report }: { report: WakesReport }) {
  const hours = report.hours.filter(({ kinds }) => WAKE_KINDS.some((kind) => kinds[kind] !== undefined)).toReversed();
  return (
    <Table label="Wakes by hour" columns={COLUMNS}>
      {hours.flatMap(({ from, kinds }) =>
        WAKE_KINDS.flatMap((kind) => {
          const figures = kinds[kind];
          if (figures === undefined) return [];
          return [
            <tr key={`${from} ${kind}`}>
              <th scope="row">{hourOf(from)}</th>
              <td>{kind}</td>
              <td class="number">{figures.count}</td>
              <td class="number">{duration(figures.p50_ms)}</td>
              <td class="number">{duration(figures.p99_ms)}</td>
            </tr>,
          ];
        }),
      )}
    </Table>
  );
}
