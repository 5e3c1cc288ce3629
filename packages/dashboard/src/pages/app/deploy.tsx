/** Deploys an image by its reference, and shows how far that is. */
import type { Release } from "@hibernaut/client/browser";
import { useState } from "preact/hooks";
import { background } from "../../data/background.ts";
import { useServices } from "../../data/context.ts";
import { lackOf } from "../../data/rights.ts";
import { bytes, count } from "../../format.ts";
import { ErrorNote, Section } from "../../parts/basics.tsx";
import { Check, Field, FormDialog } from "../../parts/form-dialog.tsx";
import { deploy, dismiss, isBusy, type Job, useJob } from "./jobs.ts";
import { deployTargets } from "./rollout-plan.ts";

interface DeployDialogProps {
  app: string;
  /** The release to go back to. */
  back: Release | undefined;
  onClose(): void;
}

/** Asks which image, or shows which one a roll back deploys, and begins. */
export function DeployDialog({ app, back, onClose }: DeployDialogProps) {
  const { api, store } = useServices();
  const [named, setNamed] = useState(back?.pinned_image ?? "");
  const targets = deployTargets(store.machinesOf(app));
  const begin = (form: FormData) => {
    const reference = named.trim();
    background(
      deploy(api, {
        app,
        image: reference,
        description: back === undefined ? "" : `Back to release ${back.version}`,
        prewarm: form.get("prewarm") !== null,
        targets: async () => deployTargets(await api.listMachines(app)),
      }),
      "the deploy",
    );
    onClose();
    return Promise.resolve();
  };
  return (
    <FormDialog
      title={back === undefined ? `Deploy to ${app}` : `Go back to release ${back.version}?`}
      action={back === undefined ? "Deploy" : "Roll back"}
      refusal={named.trim() === "" ? "Name an image first." : undefined}
      onClose={onClose}
      onSubmit={begin}
    >
      <Field
        label="Image"
        name="image"
        required
        placeholder="registry.example.com/shop:v42"
        value={named}
        onInput={(event) => setNamed(event.currentTarget.value)}
      />
      <p>
        {count(targets.length, "machine")} of {app}, one after the other: one that runs starts cold with the new
        version, and must work before the next one is changed. Everything else of their configuration stays.
      </p>
      <Check name="prewarm">Start machines that sleep, too: check them, and let them sleep again with a snapshot</Check>
      <p class="muted">
        A release command and other changes in an app file need <code>hibernaut deploy</code>. Keep this window open
        until the deploy is done.
      </p>
    </FormDialog>
  );
}

/** Says why nothing can be deployed; undefined if it can. */
export function useDeployRefusal(app: string, machines: number): string | undefined {
  const { session } = useServices();
  const job = useJob(app);
  if (isBusy(job)) return "The app is being changed. Wait until that is done.";
  if (machines === 0) return "The app has no machines. The first deploy is by the CLI.";
  return lackOf(session, "deploy");
}

const TITLES: Readonly<Record<Job["kind"], Readonly<Record<Job["phase"], string>>>> = {
  deploy: { image: "Deploying", machines: "Deploying", complete: "Deployed", failed: "The deploy failed" },
  settings: {
    image: "",
    machines: "Changing settings",
    complete: "Settings changed",
    failed: "Settings not changed everywhere",
  },
};

/** What this page is doing to the app, or did last. */
export function Progress({ app }: { app: string }) {
  const job = useJob(app);
  if (job === undefined) return null;
  const { kind, phase, what, release, steps, error, pull } = job;
  return (
    <Section
      title={TITLES[kind][phase]}
      aside={
        !isBusy(job) && (
          <button type="button" class="button small" onClick={() => dismiss(app)}>
            Dismiss
          </button>
        )
      }
    >
      <div class="stack" data-job={phase}>
        {kind === "deploy" && (
          <p>
            {release !== undefined && <>Release {release.version}: </>}
            <code>{what}</code>
          </p>
        )}
        {phase === "image" && <p role="status">{pull === undefined ? "Looking the image up…" : pullText(pull)}</p>}
        <ul class="steps stack">
          {steps.map(({ id, name, state, note }) => (
            <li key={id} data-step={state}>
              <strong>{name}</strong> {state === "failed" ? <span class="bad">{note}</span> : note}
            </li>
          ))}
        </ul>
        {phase === "complete" && <p role="status">Done: {count(steps.length, "machine")}.</p>}
        <ErrorNote error={error} />
      </div>
    </Section>
  );
}

const PULL_STEPS = {
  resolve: "Looking the image up…",
  copy: "Copying…",
  unpack: "Unpacking…",
  pack: "Packing…",
} as const;

function pullText(pull: NonNullable<Job["pull"]>): string {
  if (pull.step !== "download") return PULL_STEPS[pull.step];
  return `Downloading: ${bytes(pull.image_done_bytes)} of ${bytes(pull.image_total_bytes)}`;
}
