/** CPU and memory of a machine since its page was opened. The plots are loaded late. */
import { bytes } from "../../format.ts";
import { Figure, Section } from "../../parts/basics.tsx";
import { lazyPart } from "../../parts/lazy.tsx";
import type { Load } from "./samples.ts";

const Plots = lazyPart("the plots", async () => (await import("./load-plots.tsx")).LoadPlots);

/** Shows what the machine's virtual machine takes of the host. */
export function LoadSection({ loads }: { loads: readonly Load[] }) {
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
      <Plots loads={loads} />
      <p class="muted">Since you opened this page. The guest and QEMU together.</p>
    </Section>
  );
}
