/** Plots of CPU and memory. Loaded late, because most of the code is uPlot's. */
import { bytes, timeOfDay } from "../../format.ts";
import { color, PlotFigure, type PlotOptions } from "../../parts/plot.tsx";
import type { Load } from "./samples.ts";

const HEIGHT = 150;
const SECOND_MS = 1000;
/** So that a machine that does nothing has a flat line, in percent and in bytes. */
const LEAST_CPU = 10;
const LEAST_MEMORY = 64 * 1024 ** 2;
const ROOM = 1.15;
/** Steps of an axis, so that its labels are round: 1, 2, 5, 10 ... percent, and powers of two from 1 MB to 1 TB. */
const PERCENTS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
const BYTES = Array.from({ length: 21 }, (_one, power) => 2 ** (20 + power));
/** A time of day takes this much room, in pixels. */
const TIME_PX = 84;
/** Room for the times, in pixels. */
const X_AXIS = 30;

/** Both quantities over time. A gap is a time without a process. */
export function LoadPlots({ loads }: { loads: readonly Load[] }) {
  const times = loads.map(({ at }) => at / SECOND_MS);
  return (
    <div class="plots">
      <PlotFigure
        caption="CPU"
        label="CPU over time. The present value is above."
        height={HEIGHT}
        make={() => options("suspended", { least: LEAST_CPU, steps: PERCENTS, words: (value) => `${value}%` })}
        data={[times, loads.map(({ cpuPercent }) => cpuPercent)]}
      />
      <PlotFigure
        caption="Memory"
        label="Memory over time. The present value is above."
        height={HEIGHT}
        make={() => options("warm", { least: LEAST_MEMORY, steps: BYTES, words: bytes })}
        data={[times, loads.map(({ memoryBytes }) => memoryBytes)]}
      />
    </div>
  );
}

interface Quantity {
  least: number;
  steps: number[];
  words(value: number): string;
}

function options(hue: string, { least, steps, words }: Quantity): PlotOptions {
  const shared = { stroke: color("muted"), grid: { stroke: color("line"), width: 1 }, ticks: { show: false } };
  const stroke = color(hue);
  return {
    legend: { show: false },
    cursor: { show: false },
    scales: { y: { range: (_plot, _least, most) => [0, Math.max(least, (most || 0) * ROOM)] } },
    axes: [
      {
        ...shared,
        grid: { show: false },
        space: TIME_PX,
        size: X_AXIS,
        values: (_plot, splits) => splits.map((at) => timeOfDay(at * SECOND_MS)),
      },
      { ...shared, size: 64, incrs: steps, values: (_plot, splits) => splits.map(words) },
    ],
    series: [{}, { stroke, width: 2, points: { show: false } }],
  };
}
