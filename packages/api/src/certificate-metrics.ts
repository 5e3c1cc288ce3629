/** What the metrics say about managed certificates. */
import { CERTIFICATE_STATUSES, type CertificateService } from "@hibernaut/certs";
import { Counter, Gauge, type Registry } from "prom-client";

/** Registers them. */
export function certificateMetrics(registry: Registry, certificates: Pick<CertificateService, "all" | "orders">): void {
  const registers = [registry];
  new Gauge({
    name: "hibernaut_certificates",
    help: "Managed certificates, by status.",
    labelNames: ["status"],
    registers,
    collect() {
      const all = certificates.all();
      for (const status of CERTIFICATE_STATUSES)
        this.set({ status }, all.filter((each) => each.status === status).length);
    },
  });
  new Gauge({
    name: "hibernaut_certificate_expiry_seconds",
    help: "When a managed certificate expires, in seconds since 1970.",
    labelNames: ["app", "hostname"],
    registers,
    collect() {
      this.reset();
      for (const { app, hostname, notAfter } of certificates.all())
        if (notAfter !== null) this.set({ app, hostname }, Date.parse(notAfter) / 1000);
    },
  });
  new Gauge({
    name: "hibernaut_certificate_failed_attempts",
    help: "How many orders for a certificate have failed in a row.",
    labelNames: ["app", "hostname"],
    registers,
    collect() {
      this.reset();
      for (const { app, hostname, failure } of certificates.all()) this.set({ app, hostname }, failure?.attempts ?? 0);
    },
  });
  new Counter({
    name: "hibernaut_certificate_orders_total",
    help: "Orders for certificates that ended, by outcome.",
    labelNames: ["outcome"],
    registers,
    collect() {
      this.reset();
      for (const [outcome, count] of Object.entries(certificates.orders)) this.inc({ outcome }, count);
    },
  });
}
