/** Who changed what. */
import type { AuditEntry } from "@hibernaut/client/browser";
import { useLoaded, useServices } from "../../data/context.ts";
import { moment } from "../../format.ts";
import { Empty, ErrorNote, Loading, Page, Section } from "../../parts/basics.tsx";
import { Table } from "../../parts/table.tsx";

const COLUMNS = ["When", "What", "Token", "From", "Request"] as const;

/** Lines that are read at a time. */
const LINES = 200;

/** The page of the audit log, newest first. */
export default function AuditPage() {
  const { api } = useServices();
  const { data, error, reload, loading } = useLoaded(async (signal) => {
    const entries: AuditEntry[] = [];
    for await (const entry of api.readAudit({ limit: LINES, signal })) entries.push(entry);
    return entries.reverse();
  }, []);
  return (
    <Page
      title="Audit log"
      aside={
        <button type="button" class="button small" onClick={reload} aria-disabled={loading}>
          Read again
        </button>
      }
    >
      <ErrorNote error={error} onRetry={reload} />
      <Section title={`The last ${LINES} lines`}>
        {data === undefined && error === undefined && <Loading lines={6} what="the audit log" />}
        {data?.length === 0 && <Empty title="Nothing was changed yet." />}
        {data !== undefined && data.length > 0 && <Lines entries={data} />}
      </Section>
    </Page>
  );
}

function Lines({ entries }: { entries: readonly AuditEntry[] }) {
  return (
    <Table label="Audit log" columns={COLUMNS}>
      {entries.map((entry) => (
        <tr key={`${entry.request_id} ${entry.phase}`}>
          <td class="nowrap">{moment(entry.at)}</td>
          <td class="nowrap">{outcome(entry)}</td>
          <td>{entry.token.name}</td>
          <td>{entry.from}</td>
          <td>
            <code>
              {entry.method} {entry.route}
            </code>
            {Object.entries(entry.target).map(([name, value]) => (
              <div key={name} class="muted">
                {name}: {typeof value === "string" ? value : JSON.stringify(value)}
              </div>
            ))}
          </td>
        </tr>
      ))}
    </Table>
  );
}

function outcome({ phase, status }: AuditEntry): string {
  return phase === "begin" ? "begin" : `${phase} ${status ?? ""}`;
}
