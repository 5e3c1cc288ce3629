/** The API's tokens: list, create, rotate, revoke. */
import type { NewToken, Token } from "@hibernaut/client/browser";
import { useState } from "preact/hooks";
import { useLoaded, useServices } from "../../data/context.ts";
import { duration, moment } from "../../format.ts";
import { ErrorNote, Loading, Page, Section } from "../../parts/basics.tsx";
import { Table } from "../../parts/table.tsx";
import { Ago } from "../../parts/time.tsx";
import { CreateToken, RevokeToken, RotateToken } from "./token-dialogs.tsx";

const COLUMNS = ["Name", "May", "Apps", "State", "Last used", "Created", { title: "Actions", look: "hidden" }] as const;

type Open = { dialog: "create" } | { dialog: "rotate" | "revoke"; token: Token };

/** The page of the tokens. */
export default function TokensPage() {
  const { api, showToken } = useServices();
  const { data, error, reload } = useLoaded((signal) => api.listTokens({ signal }), []);
  const [open, setOpen] = useState<Open>();
  const close = () => setOpen(undefined);
  const made = (token: NewToken) => {
    close();
    showToken(token);
    reload();
  };
  const revoked = () => {
    close();
    reload();
  };
  return (
    <Page
      title="Tokens"
      aside={
        <button type="button" class="button primary" onClick={() => setOpen({ dialog: "create" })}>
          Create a token
        </button>
      }
    >
      <ErrorNote error={error} onRetry={reload} />
      <Section title="Clients of the API">
        {data === undefined && error === undefined && <Loading lines={4} what="tokens" />}
        {data !== undefined && (
          <Table label="Tokens" columns={COLUMNS}>
            {data.map((token) => (
              <TokenRow key={token.id} token={token} onOpen={setOpen} />
            ))}
          </Table>
        )}
      </Section>
      {open?.dialog === "create" && <CreateToken onClose={close} onMade={made} />}
      {open?.dialog === "rotate" && <RotateToken token={open.token} onClose={close} onMade={made} />}
      {open?.dialog === "revoke" && <RevokeToken token={open.token} onClose={close} onRevoked={revoked} />}
    </Page>
  );
}

function TokenRow({ token, onOpen }: { token: Token; onOpen(open: Open): void }) {
  const { session, store } = useServices();
  const { name, id, scopes, apps, created_at: created, last_used_at: used } = token;
  const state = tokenState(token, store.now());
  const own = id === session.token.id;
  return (
    <tr data-token={id}>
      <th scope="row">
        {name} {own && <span class="muted">(you)</span>}
        <div class="muted">
          <code>{id}</code>
        </div>
      </th>
      <td>{scopes.join(", ")}</td>
      <td>{apps === null ? "all" : apps.join(", ")}</td>
      <td class="nowrap">{state.words}</td>
      <td class="nowrap">{used === null ? "never" : <Ago at={used} />}</td>
      <td class="nowrap" title={moment(created)}>
        <Ago at={created} />
      </td>
      <td class="nowrap actions">
        {state.valid && (
          <>
            <button
              type="button"
              class="button small"
              aria-label={`Rotate ${name}`}
              onClick={() => onOpen({ dialog: "rotate", token })}
            >
              Rotate
            </button>
            <button
              type="button"
              class="button small danger"
              aria-label={`Revoke ${name}`}
              onClick={() => onOpen({ dialog: "revoke", token })}
            >
              Revoke
            </button>
          </>
        )}
      </td>
    </tr>
  );
}

/** Returns whether a token is valid at a time, in milliseconds since 1970, and says so. */
function tokenState(
  { revoked_at: revoked, expires_at: expires, replaced_by: next }: Token,
  now: number,
): { valid: boolean; words: string } {
  if (revoked !== null) return { valid: false, words: "revoked" };
  if (expires === null) return { valid: true, words: "valid" };
  const left = Date.parse(expires) - now;
  if (left <= 0) return { valid: false, words: next === null ? "expired" : "replaced" };
  const words = `${duration(left)} left`;
  return { valid: true, words: next === null ? words : `replaced, ${words}` };
}
