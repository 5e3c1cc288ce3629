/** CPU and memory of a machine since its page was opened. The plots are loaded late. */
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { bytes } from "../../format.ts";
import { ErrorNote, Figure, Loading, Section } from "../../parts/basics.tsx";
import type { LoadPlotsProps } from "./load-plots.tsx";
import type { Load } from "./samples.ts";

/** Shows what the machine's virtual machine takes of the host. */
export function LoadSection({ loads }: { loads: readonly Load[] }) {
  const [Plots, setPlots] = useState<ComponentType<LoadPlotsProps>>();
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    import("./load-plots.tsx").then(({ LoadPlots }) => setPlots(() => LoadPlots), setError);
  }, []);
  const last = loads.at(-1);
  const cpu = last?.cpuPercent ?? null;
  const memory = last?.memoryBytes ?? null;
  return (
    <Section title="CPU and memory">
      <dl class="figures">
        <Figure label="CPU" value={cpu === null ? "none" : `${Math.round(cpu)}%`} note="of one CPU of the host" />
        <Figure
          label="Memory"
          value={memory === null ? "none" : bytes(memory)}
          note={memory === null ? "no process: it sleeps, or is stopped" : "of the host's memory"}
        />
      </dl>
      <ErrorNote error={error} />
      {Plots === undefined ? error === undefined && <Loading what="the plots" /> : <Plots loads={loads} />}
      <p class="muted">Since you opened this page. The guest and QEMU together.</p>
    </Section>
  );
}
