/** The hostnames of an app, and the certificates for them, with what is missing. */
import type { Certificate, CertificateFinding } from "@hibernaut/client/browser";
import { useState } from "preact/hooks";
import { useEvery, useLoaded, useServices } from "../../data/context.ts";
import { useFresh } from "../../data/fresh.ts";
import { lackOf } from "../../data/rights.ts";
import { TOPIC } from "../../data/store.ts";
import { moment } from "../../format.ts";
import { ActionButton, useAction } from "../../parts/action.tsx";
import { Command, Empty, ErrorNote, Loading, Section, Words } from "../../parts/basics.tsx";
import { Check, Field, FormDialog } from "../../parts/form-dialog.tsx";
import { Ago } from "../../parts/time.tsx";

/** An order takes seconds, in milliseconds. */
const ORDER_MS = 2_000;

type Open = { what: "add" } | { what: "remove" | "certificate" | "uncertify"; hostname: string };

/** Lists, adds and removes hostnames and their certificates. */
export function Hostnames({ app }: { app: string }) {
  const { api, session } = useServices();
  const [open, setOpen] = useState<Open>();
  const { data, error, reload } = useLoaded(
    async (signal) => {
      const [hostnames, certificates] = await Promise.all([
        api.listHostnames(app, { signal }),
        api.listCertificates(app, { signal }),
      ]);
      return rowsOf(hostnames, certificates);
    },
    [app],
  );
  useFresh(reload, TOPIC.world);
  const ordering = data?.some(({ certificate }) => certificate?.status === "ordering") === true;
  useEvery(ordering ? ORDER_MS : undefined, reload);
  const refusal = lackOf(session, "deploy");
  const close = () => setOpen(undefined);
  const done = () => {
    close();
    reload();
  };
  return (
    <Section
      title="Hostnames and certificates"
      aside={
        <ActionButton class="small" refusal={refusal} onClick={() => setOpen({ what: "add" })}>
          Add a hostname…
        </ActionButton>
      }
    >
      <ErrorNote error={error} onRetry={reload} />
      {data === undefined && error === undefined && <Loading what="hostnames" />}
      {data?.length === 0 && (
        <Empty
          title="This app has no hostnames of its own."
          command={`hibernaut hostnames add www.example.com --app ${app}`}
        >
          It answers below the platform's own suffix. A hostname whose DNS record leads here makes it answer there, too.
        </Empty>
      )}
      <ul class="lined">
        {data?.map((row) => (
          <HostnameRow key={row.hostname} app={app} row={row} refusal={refusal} onOpen={setOpen} />
        ))}
      </ul>
      {open !== undefined && <HostnameDialog app={app} open={open} onClose={close} onDone={done} />}
    </Section>
  );
}

interface HostnameState {
  hostname: string;
  /** Whether the app answers for it; false for a certificate for all hostnames below one. */
  answers: boolean;
  certificate: Certificate | undefined;
}

function rowsOf(hostnames: readonly string[], certificates: readonly Certificate[]): HostnameState[] {
  const names = [...new Set([...hostnames, ...certificates.map(({ hostname }) => hostname)])].sort();
  return names.map((hostname) => ({
    hostname,
    answers: hostnames.includes(hostname),
    certificate: certificates.find((one) => one.hostname === hostname),
  }));
}

interface RowProps {
  app: string;
  row: HostnameState;
  refusal: string | undefined;
  onOpen(open: Open): void;
}

function HostnameRow({ app, row: { hostname, answers, certificate }, refusal, onOpen }: RowProps) {
  const { api } = useServices();
  const [findings, setFindings] = useState<CertificateFinding[]>();
  const { busy, error, run } = useAction();
  const check = () => run(async () => setFindings(await api.checkCertificate(app, hostname)));
  return (
    <li class="stack" data-hostname={hostname}>
      <div class="section-head row-head">
        <strong>{hostname}</strong>
        <div class="buttons">
          <ActionButton class="small" busy={busy} label={`Check ${hostname}`} onClick={check}>
            {busy ? "Checking…" : "Check DNS"}
          </ActionButton>
          <ActionButton
            class="small"
            refusal={refusal}
            label={`${certificate === undefined ? "Get a" : "Order the"} certificate for ${hostname}`}
            onClick={() => onOpen({ what: "certificate", hostname })}
          >
            {certificate === undefined ? "Get a certificate…" : "Order again…"}
          </ActionButton>
          {certificate !== undefined && (
            <ActionButton
              class="small danger"
              refusal={refusal}
              label={`Remove the certificate for ${hostname}`}
              onClick={() => onOpen({ what: "uncertify", hostname })}
            >
              Remove certificate…
            </ActionButton>
          )}
          {answers && (
            <ActionButton
              class="small danger"
              refusal={refusal}
              label={`Remove ${hostname}`}
              onClick={() => onOpen({ what: "remove", hostname })}
            >
              Remove…
            </ActionButton>
          )}
        </div>
      </div>
      <CertificateState certificate={certificate} />
      <ErrorNote error={error} />
      {findings !== undefined && <Findings findings={findings} />}
    </li>
  );
}

function CertificateState({ certificate }: { certificate: Certificate | undefined }) {
  if (certificate === undefined) return <p class="muted">No certificate is managed here.</p>;
  const { status, not_after: until, renew_at: renewal, issuer, failure } = certificate;
  return (
    <>
      <p class="muted">
        Certificate: <span class={`certificate-${status}`}>{status}</span>
        {issuer !== null && `, from ${issuer}`}
        {until !== null && `, valid until ${moment(until)}`}
        {renewal !== null && status === "valid" && (
          <>
            , renewed <Ago at={renewal} />
          </>
        )}
      </p>
      {failure !== null && (
        <p class="bad">
          <Words text={failure.reason} /> Failed {failure.attempts === 1 ? "once" : `${failure.attempts} times`}; the
          next attempt is due <Ago at={failure.next_at} />.
        </p>
      )}
    </>
  );
}

const STATUS: Readonly<Record<CertificateFinding["status"], string>> = {
  ok: "OK",
  missing: "Missing",
  unknown: "Unknown",
};

/** What a certificate needs, with the DNS records to add. */
function Findings({ findings }: { findings: readonly CertificateFinding[] }) {
  return (
    <ul class="found stack" role="status">
      {findings.map(({ what, status, found, records }) => (
        <li key={`${what} ${found}`}>
          <span class={`found-${status}`}>{STATUS[status]}</span> <strong>{what.replaceAll("_", " ")}</strong>{" "}
          <Words text={found} />
          {records.map((record) => (
            <Command key={record} text={record} />
          ))}
        </li>
      ))}
    </ul>
  );
}

interface DialogProps {
  app: string;
  open: Open;
  onClose(): void;
  onDone(): void;
}

function HostnameDialog({ app, open, onClose, onDone }: DialogProps) {
  const { api } = useServices();
  switch (open.what) {
    case "add":
      return (
        <FormDialog
          title="Add a hostname"
          action="Add"
          onClose={onClose}
          onSubmit={(form) => api.addHostname(app, String(form.get("hostname")).trim()).then(onDone)}
        >
          <Field label="Hostname" name="hostname" required placeholder="www.example.com" />
          <p class="muted">The app answers for it at once. Check DNS then says which records lead it here.</p>
        </FormDialog>
      );
    case "certificate": {
      const { hostname } = open;
      return (
        <FormDialog
          title={`Get a certificate for ${hostname}`}
          action="Order"
          onClose={onClose}
          onSubmit={(form) =>
            api.addCertificate(app, { hostname, agree_to_terms: form.get("agree") !== null }).then(onDone)
          }
        >
          <p>
            The authority checks that the hostname leads to this platform. The certificate is renewed by itself from
            then on.
          </p>
          <Check name="agree">I agree to the authority's terms of service. Needed once for the platform.</Check>
        </FormDialog>
      );
    }
    case "remove":
      return (
        <FormDialog
          title={`Remove ${open.hostname}?`}
          action="Remove"
          danger
          onClose={onClose}
          onSubmit={() => api.removeHostname(app, open.hostname).then(onDone)}
        >
          <p>The app no longer answers for it.</p>
        </FormDialog>
      );
    case "uncertify":
      return (
        <FormDialog
          title={`Remove the certificate for ${open.hostname}?`}
          action="Remove"
          danger
          onClose={onClose}
          onSubmit={() => api.removeCertificate(app, open.hostname).then(onDone)}
        >
          <p>
            It is deleted with its key, and no longer renewed. The hostname stays, and browsers are refused over HTTPS.
          </p>
        </FormDialog>
      );
  }
}
