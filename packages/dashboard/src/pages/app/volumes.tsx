/** The volumes of an app. */
import { useLoaded, useServices } from "../../data/context.ts";
import { useFresh } from "../../data/fresh.ts";
import { TOPIC } from "../../data/store.ts";
import { bytes, moment } from "../../format.ts";
import { Empty, ErrorNote, Loading, Section } from "../../parts/basics.tsx";
import { Table } from "../../parts/table.tsx";
import { Link } from "../../router.tsx";

/** Lists volumes, with who uses them. */
export function Volumes({ app }: { app: string }) {
  const { api, store } = useServices();
  const { data, error, reload } = useLoaded((signal) => api.listVolumes(app, { signal }), [app]);
  useFresh(reload, TOPIC.world);
  return (
    <Section title="Volumes">
      <ErrorNote error={error} onRetry={reload} />
      {data === undefined && error === undefined && <Loading what="volumes" />}
      {data?.length === 0 && (
        <Empty title="This app has no volumes." command={`hibernaut volumes create data --size 1 --app ${app}`}>
          A volume is a disk that outlives machines.
        </Empty>
      )}
      {data !== undefined && data.length > 0 && (
        <Table label="Volumes" columns={["Name", "Size", "On the host's disk", "Machine", "Snapshots"]}>
          {data.map((volume) => (
            <tr key={volume.id} data-volume={volume.id}>
              <th scope="row">
                {volume.name}
                <div class="muted">
                  <code>{volume.id}</code> {volume.state !== "created" && volume.state}
                </div>
              </th>
              <td class="nowrap">{volume.size_gb} GB</td>
              <td class="nowrap">{bytes(volume.used_bytes)}</td>
              <td>
                {volume.attached_machine_id === null ? (
                  <span class="muted">none</span>
                ) : (
                  <Link to={{ page: "machine", app, machine: volume.attached_machine_id }}>
                    {store.machines.get(volume.attached_machine_id)?.name ?? volume.attached_machine_id}
                  </Link>
                )}
              </td>
              <td>
                {volume.auto_backup_enabled ? `daily, kept ${volume.snapshot_retention} days` : "not by themselves"}
                {volume.last_scheduled_snapshot_at !== null && (
                  <div class="muted">last {moment(volume.last_scheduled_snapshot_at)}</div>
                )}
                {volume.scheduled_snapshot_error !== null && <div class="bad">{volume.scheduled_snapshot_error}</div>}
              </td>
            </tr>
          ))}
        </Table>
      )}
    </Section>
  );
}
