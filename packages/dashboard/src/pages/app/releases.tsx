/** Releases, newest first, with a way back to each. */
import type { Release } from "@hibernaut/client/browser";
import { useState } from "preact/hooks";
import { useEvery, useLoaded, useServices, useStore } from "../../data/context.ts";
import { TOPIC } from "../../data/store.ts";
import { ActionButton } from "../../parts/action.tsx";
import { Empty, ErrorNote, Loading, Section } from "../../parts/basics.tsx";
import { Table } from "../../parts/table.tsx";
import { Ago } from "../../parts/time.tsx";
import { DeployDialog, useDeployRefusal } from "./deploy.tsx";
import { useJob } from "./jobs.ts";
import { deployTargets } from "./rollout-plan.ts";

const SHOWN = 25;
/** Others deploy, too, in milliseconds. */
const READ_EVERY_MS = 15_000;

/** Lists releases, and deploys. */
export function Releases({ app }: { app: string }) {
  const { api } = useServices();
  const job = useJob(app);
  const digests = useStore(TOPIC.machines, (store) =>
    deployTargets(store.machinesOf(app)).map(({ image }) => image.digest),
  );
  const refusal = useDeployRefusal(app, digests.length);
  /** What is to be deployed: an image to be named, or that of a release. */
  const [open, setOpen] = useState<Release | "any">();
  const { data, error, reload } = useLoaded(
    (signal) => api.listReleases(app, { limit: SHOWN, signal }),
    [app, job?.phase, digests.join(" ")],
  );
  useEvery(READ_EVERY_MS, reload);
  const isNow = ({ image }: Release) => digests.length > 0 && digests.every((digest) => digest === image.digest);
  return (
    <Section
      title="Releases"
      aside={
        <ActionButton class="primary" refusal={refusal} onClick={() => setOpen("any")}>
          Deploy an image…
        </ActionButton>
      }
    >
      <ErrorNote error={error} onRetry={reload} />
      {data === undefined && error === undefined && <Loading what="releases" />}
      {data?.length === 0 && (
        <Empty title="There are no releases yet." command={`hibernaut deploy --app ${app}`}>
          Each deploy is a release. Run this in a directory with your program.
        </Empty>
      )}
      {data !== undefined && data.length > 0 && (
        <Table
          label="Releases"
          columns={["Version", "Status", "Image", "When", { title: "Roll back", look: "hidden" }]}
        >
          {data.map((release) => (
            <Row
              key={release.version}
              release={release}
              isNow={isNow(release)}
              isNewest={release === data.find(isNow)}
              refusal={refusal}
              onBack={() => setOpen(release)}
            />
          ))}
        </Table>
      )}
      {open !== undefined && (
        <DeployDialog app={app} back={open === "any" ? undefined : open} onClose={() => setOpen(undefined)} />
      )}
    </Section>
  );
}

interface RowProps {
  release: Release;
  /** Whether the machines have this image. */
  isNow: boolean;
  /** Whether it is the newest with its image. */
  isNewest: boolean;
  refusal: string | undefined;
  onBack(): void;
}

function Row({ release, isNow, isNewest, refusal, onBack }: RowProps) {
  const { version, status, image, description, created_at: created } = release;
  return (
    <tr data-release={version} data-status={status}>
      <th scope="row">v{version}</th>
      <td>
        <span class={`release-${status}`}>{status}</span>
        {description !== "" && <div class="muted">{description}</div>}
      </td>
      <td class="release-image">
        <code>{image.ref}</code>
        {isNow && isNewest && <div class="muted">what the machines have now</div>}
      </td>
      <td class="nowrap">
        <Ago at={created} />
      </td>
      <td class="nowrap actions">
        <ActionButton
          class="small"
          label={`Roll back to release ${version}`}
          refusal={isNow ? "The machines have this image now." : refusal}
          onClick={onBack}
        >
          Roll back…
        </ActionButton>
      </td>
    </tr>
  );
}
