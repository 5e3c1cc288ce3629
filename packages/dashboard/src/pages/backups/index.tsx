/** Where backups are kept, how old they are, and whether they could be restored. */
import "./backups.css";
import { useEvery } from "../../data/context.ts";
import { useTargets } from "../../data/targets.ts";
import { Empty, ErrorNote, Loading, Page, Section } from "../../parts/basics.tsx";
import { Target } from "./target.tsx";

/** No event says how far a backup has come, so the page looks, in milliseconds. */
const RUNNING_MS = 2_000;

/** The page of all targets. */
export default function BackupsPage() {
  const { data, error, reload } = useTargets();
  const isBusy = data?.some(({ running }) => running !== null) === true;
  useEvery(isBusy ? RUNNING_MS : undefined, reload);
  return (
    <Page title="Backups">
      <ErrorNote error={error} onRetry={reload} />
      {data === undefined && error === undefined && <Loading lines={6} what="the targets of backups" />}
      {data?.length === 0 && <NoTargets />}
      {data?.map((target) => (
        <Target key={target.name} target={target} all={data} onChanged={reload} />
      ))}
    </Page>
  );
}

function NoTargets() {
  return (
    <Section title="Keep backups elsewhere">
      <Empty
        title="No backups are made: there is no target for them."
        command="hibernaut backup targets add usb /mnt/usb/hibernaut --schedule '0 3 * * *' --keep 7d,4w,6m > key.txt"
      >
        A target is a directory on another disk, a server that you reach with SSH, or a bucket. What is stored there is
        encrypted. Keep key.txt where this host's disk is not: without it, nobody can read the backups.
      </Empty>
    </Section>
  );
}
