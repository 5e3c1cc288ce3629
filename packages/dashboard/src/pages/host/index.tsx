/** The host: what it has, what of it is taken, and what the doctor finds. */
import "./host.css";
import type { Finding, Host } from "@hibernaut/client/browser";
import { useEvery, useLoaded, useServices } from "../../data/context.ts";
import { bytes, count, duration, share } from "../../format.ts";
import { Command, ErrorNote, Figure, Loading, Page, Section } from "../../parts/basics.tsx";

/** Memory changes with every wake, in milliseconds. */
const READ_EVERY_MS = 10_000;
const SECOND_MS = 1000;

/** The page of the host. */
export default function HostPage() {
  return (
    <Page title="Host">
      <Resources />
      <Doctor />
    </Page>
  );
}

function Resources() {
  const { api } = useServices();
  const { data, error, reload } = useLoaded((signal) => api.getHost({ signal }), []);
  useEvery(READ_EVERY_MS, reload);
  return (
    <>
      <ErrorNote error={error} onRetry={reload} />
      <Section title="Resources">
        {data === undefined ? error === undefined && <Loading lines={4} what="the host" /> : <Meters host={data} />}
      </Section>
      <Section title="Versions">
        {data === undefined ? error === undefined && <Loading what="versions" /> : <Versions host={data} />}
      </Section>
    </>
  );
}

function Meters({ host: { memory, disk, warm, cpus } }: { host: Host }) {
  const { total_bytes: total, available_bytes: available } = memory;
  return (
    <div class="meters">
      {available === null ? (
        <Meter label="Memory" value={`${bytes(total)} in all`} note="The kernel does not say how much is free." />
      ) : (
        <Meter
          label="Memory"
          used={total - available}
          total={total}
          value={`${bytes(available)} available`}
          note={`${bytes(total - available)} of ${bytes(total)} in use`}
        />
      )}
      <Meter
        label="Disk of the data directory"
        used={disk.total_bytes - disk.free_bytes}
        total={disk.total_bytes}
        value={`${bytes(disk.free_bytes)} free`}
        note={`${bytes(disk.total_bytes - disk.free_bytes)} of ${bytes(disk.total_bytes)} in use`}
      />
      <Meter
        label="Budget for warm machines"
        used={warm.used_bytes}
        total={warm.budget_bytes}
        value={warm.budget_bytes === 0 ? "off" : `${bytes(warm.used_bytes)} of ${bytes(warm.budget_bytes)}`}
        note={
          warm.budget_bytes === 0
            ? "Sleeping machines are not kept in memory."
            : `${count(warm.machines, "machine")} kept in memory`
        }
      />
      <Meter
        label="CPUs"
        value={count(cpus.count, "CPU")}
        note={`Load ${cpus.load.map((load) => load.toFixed(2)).join(", ")} over 1, 5 and 15 minutes`}
      />
    </div>
  );
}

interface MeterProps {
  label: string;
  value: string;
  note: string;
  used?: number;
  total?: number;
}

/** Above this, something will soon not fit. */
const NEARLY_FULL = 0.9;

function Meter({ label, value, note, used, total }: MeterProps) {
  const part =
    used !== undefined && total !== undefined && total > 0 ? Math.min(1, Math.max(0, used / total)) : undefined;
  return (
    <div class="meter">
      <div class="muted">{label}</div>
      <div class="figure-value">{value}</div>
      {part !== undefined && (
        <div
          class={part > NEARLY_FULL ? "meter-bar nearly-full" : "meter-bar"}
          role="meter"
          aria-label={label}
          aria-valuemin={0}
          aria-valuemax={100}
          aria-valuenow={Math.round(part * 100)}
          aria-valuetext={`${share(part, 1)} in use`}
        >
          <span style={{ width: `${part * 100}%` }} />
        </div>
      )}
      <div class="figure-note">{note}</div>
    </div>
  );
}

const ACCELERATORS: Readonly<Record<string, string>> = { kvm: "KVM", tcg: "Software emulation (TCG)" };

function Versions({ host }: { host: Host }) {
  const { versions, accelerator, uptime_seconds: up, host_uptime_seconds: hostUp } = host;
  return (
    <dl class="figures figures-words">
      <Figure label="Hibernaut" value={versions.platform} note={`running for ${duration(up * SECOND_MS)}`} />
      <Figure
        label="Accelerator"
        value={ACCELERATORS[accelerator.name] ?? accelerator.name}
        note={accelerator.reason}
      />
      <Figure label="QEMU" value={versions.qemu} />
      <Figure label="Guest bundle" value={versions.guest_bundle} note="what new machines boot from" />
      <Figure label="Kernel" value={versions.kernel} note={`up for ${duration(hostUp * SECOND_MS)}`} />
      <Figure label="Node" value={versions.node} />
    </dl>
  );
}

const ORDER: readonly Finding["level"][] = ["error", "warning", "ok"];
const LEVELS: Readonly<Record<Finding["level"], string>> = { error: "Error", warning: "Warning", ok: "OK" };

function Doctor() {
  const { api } = useServices();
  const { data, error, loading, reload } = useLoaded((signal) => api.listFindings({ signal }), []);
  const sorted = data?.toSorted((a, b) => ORDER.indexOf(a.level) - ORDER.indexOf(b.level));
  return (
    <Section
      title="Doctor"
      aside={
        <button type="button" class="button small" onClick={reload} aria-disabled={loading}>
          {loading ? "Checking…" : "Check again"}
        </button>
      }
    >
      <ErrorNote error={error} onRetry={reload} />
      {sorted === undefined && error === undefined && <Loading lines={4} what="what the doctor finds" />}
      {sorted !== undefined && <Findings findings={sorted.filter(({ level }) => level !== "ok")} />}
      {sorted !== undefined && <Passed findings={sorted.filter(({ level }) => level === "ok")} />}
    </Section>
  );
}

/** What is right is only counted, until someone wants to know. */
function Passed({ findings }: { findings: readonly Finding[] }) {
  if (findings.length === 0) return null;
  return (
    <details class="more">
      <summary>{count(findings.length, "check")} passed</summary>
      <Findings findings={findings} />
    </details>
  );
}

function Findings({ findings }: { findings: readonly Finding[] }) {
  return (
    <ul class="lined">
      {findings.map(({ level, name, message, advice }) => (
        <li key={`${name} ${message}`} class="finding">
          <span class={`level level-${level}`}>{LEVELS[level]}</span>
          <div>
            <strong>{name}</strong> <span class="finding-message">{message}</span>
            {advice !== null && <Command text={advice} />}
          </div>
        </li>
      ))}
    </ul>
  );
}
