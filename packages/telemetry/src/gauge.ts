/** A figure that is looked up when someone asks for the metrics. */
import { Gauge, type Registry } from "prom-client";

/** What a gauge is called, and what reads it: undefined while nobody knows the value. */
interface ReadGauge {
  name: string;
  help: string;
  read(): number | undefined;
}

/** Registers a gauge without labels. It is absent from the metrics while its value is not known. */
export function readGauge(registry: Registry, { name, help, read }: ReadGauge): void {
  new Gauge({
    ...{ name, help, registers: [registry] },
    collect() {
      const value = read();
      if (value === undefined) this.remove();
      else this.set(value);
    },
  });
}
