/** One plot of uPlot. Import it late: uPlot is most of its code. */
import "uplot/dist/uPlot.min.css";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { onColors } from "../theme.ts";

/** Everything about a plot except for its size. */
export type PlotOptions = Omit<uPlot.Options, "width" | "height">;

interface PlotProps {
  /** What it shows, for people who do not see it. */
  label: string;
  /** In pixels. */
  height: number;
  /** Is called again when the page's colors change. */
  make(): PlotOptions;
  data: uPlot.AlignedData;
}

/** Draws, and draws again when its width or the page's colors change. */
function Plot({ label, height, make, data }: PlotProps) {
  const element = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const latest = useRef(data);
  latest.current = data;
  useEffect(() => {
    const { current } = element;
    if (current === null) return undefined;
    const draw = () => {
      plot.current?.destroy();
      plot.current = new uPlot({ ...make(), width: current.clientWidth, height }, latest.current, current);
    };
    draw();
    const observer = new ResizeObserver(() => plot.current?.setSize({ width: current.clientWidth, height }));
    observer.observe(current);
    const offColors = onColors(draw);
    return () => {
      observer.disconnect();
      offColors();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, []);
  useEffect(() => plot.current?.setData(data), [data]);
  return <div ref={element} class="plot-canvas" role="img" aria-label={label} />;
}

interface PlotFigureProps extends PlotProps {
  caption: ComponentChildren;
}

/** A plot with its caption. */
export function PlotFigure({ caption, ...plot }: PlotFigureProps) {
  return (
    <figure class="plot">
      <figcaption>{caption}</figcaption>
      <Plot {...plot} />
    </figure>
  );
}

/** A color of the page's present theme, by the name of its variable. */
export function color(name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}
