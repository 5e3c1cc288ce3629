/** A machine's health checks, with what they last said. */
import type { CheckResult, Machine } from "@hibernaut/client/browser";
import { Empty, Section } from "../../parts/basics.tsx";
import { Ago } from "../../parts/time.tsx";

const WORDS: Readonly<Record<CheckResult["status"], string>> = {
  passing: "passing",
  warning: "warning",
  critical: "failing",
};

/** Lists all checks of the configuration, also those that have no result yet. */
export function Checks({ machine }: { machine: Machine }) {
  const { checks, config, state, health, app_name: app, machine_id: id } = machine;
  const names = [...new Set([...Object.keys(config.checks ?? {}), ...checks.map(({ name }) => name)])];
  return (
    <Section
      title="Checks"
      aside={state === "running" && <span class={`health health-${health.status}`}>{health.status}</span>}
    >
      {state === "running" && <p class="muted">{health.reason}</p>}
      {names.length === 0 && (
        <Empty
          title="This machine has no checks."
          command={`hibernaut machine update ${id} --check /health --app ${app}`}
        >
          With a check, requests are sent to the machine only while it passes.
        </Empty>
      )}
      {names.length > 0 && (
        <ul class="lined">
          {names.map((name) => (
            <Check
              key={name}
              name={name}
              result={checks.find((one) => one.name === name)}
              running={state === "running"}
            />
          ))}
        </ul>
      )}
    </Section>
  );
}

function Check({ name, result, running }: { name: string; result: CheckResult | undefined; running: boolean }) {
  const why = running ? "not checked yet" : "checked only while the machine is running";
  return (
    <li class="stack" data-check={name} data-status={result?.status ?? "none"}>
      <div class="line">
        <strong>{name}</strong>
        {result === undefined ? (
          <span class="muted">{why}</span>
        ) : (
          <>
            <span class={`health health-${result.status}`}>{WORDS[result.status]}</span>
            <span class="muted">
              <Ago at={result.updated_at} />
            </span>
          </>
        )}
      </div>
      {result !== undefined && result.output !== "" && <pre class="check-output">{result.output}</pre>}
    </li>
  );
}
