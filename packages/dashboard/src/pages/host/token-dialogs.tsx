/** Dialogs that create, rotate and revoke tokens. */
import type { NewToken, NewTokenOptions, Scope, Token } from "@hibernaut/client/browser";
import { useServices, useStore } from "../../data/context.ts";
import { TOPIC } from "../../data/store.ts";
import { Field, FormDialog } from "../../parts/form-dialog.tsx";

const DAY_S = 86_400;
const HOUR_S = 3_600;

const SCOPES: readonly [scope: Scope, what: string][] = [
  ["read", "show everything except the values of secrets"],
  ["exec", "read, and run commands in machines"],
  ["deploy", "read, and deploy, start, stop and destroy machines"],
  ["admin", "everything"],
];

const LIFETIMES: readonly [seconds: number, words: string][] = [
  [0, "never"],
  [7 * DAY_S, "after 7 days"],
  [30 * DAY_S, "after 30 days"],
  [90 * DAY_S, "after 90 days"],
  [365 * DAY_S, "after a year"],
];

const OVERLAPS: readonly [seconds: number, words: string][] = [
  [0, "not at all"],
  [HOUR_S, "for an hour"],
  [DAY_S, "for a day"],
  [7 * DAY_S, "for 7 days"],
];
/** The session ends with its token, so the page would end before the new one is copied. */
const OWN_OVERLAPS = OVERLAPS.filter(([seconds]) => seconds > 0);

/** Asks what a new token may do, and creates it. */
export function CreateToken({ onClose, onMade }: { onClose(): void; onMade(token: NewToken): void }) {
  const { api } = useServices();
  const apps = useStore(TOPIC.world, (store) => [...store.apps.keys()].sort());
  const create = async (form: FormData) => {
    const expires = Number(form.get("expires"));
    const chosen = form.getAll("apps").map(String);
    const options: NewTokenOptions = {
      scopes: [String(form.get("scope")) as Scope],
      ...(chosen.length > 0 && { apps: chosen }),
      ...(expires > 0 && { expires_in: expires }),
    };
    onMade(await api.createToken(String(form.get("name")).trim(), options));
  };
  return (
    <FormDialog title="Create a token" action="Create" onClose={onClose} onSubmit={create}>
      <Field label="Name" name="name" required placeholder="ci" />
      <fieldset class="choices">
        <legend>What it may do</legend>
        {SCOPES.map(([scope, what]) => (
          <label key={scope}>
            <input type="radio" name="scope" value={scope} defaultChecked={scope === "read"} />
            <span>
              <strong>{scope}</strong> <span class="muted">{what}</span>
            </span>
          </label>
        ))}
      </fieldset>
      {apps.length > 0 && (
        <fieldset class="choices choices-apps">
          <legend>
            Only for these apps <span class="muted">(none chosen: all, and the platform itself)</span>
          </legend>
          {apps.map((app) => (
            <label key={app}>
              <input type="checkbox" name="apps" value={app} />
              <span>{app}</span>
            </label>
          ))}
        </fieldset>
      )}
      <Choices label="Expires" name="expires" choices={LIFETIMES} chosen={90 * DAY_S} />
    </FormDialog>
  );
}

interface RotateTokenProps {
  token: Token;
  onClose(): void;
  onMade(token: NewToken): void;
}

/** Asks how long the old token stays valid, and makes a new one. */
export function RotateToken({ token, onClose, onMade }: RotateTokenProps) {
  const { api, session } = useServices();
  const isOwn = token.id === session.token.id;
  const rotate = async (form: FormData) =>
    onMade((await api.rotateToken(token.id, { overlap: Number(form.get("overlap")) })).token);
  return (
    <FormDialog title={`Rotate ${token.name}`} action="Rotate" onClose={onClose} onSubmit={rotate}>
      <p>A new token with the same name and rights takes its place.</p>
      <Choices
        label="The old one stays valid"
        name="overlap"
        choices={isOwn ? OWN_OVERLAPS : OVERLAPS}
        chosen={DAY_S}
      />
      {isOwn && (
        <p class="note">
          You are signed in with this token: your session ends with the old one. Sign in with the new one before that.
        </p>
      )}
    </FormDialog>
  );
}

/** Asks whether a token is to end. */
export function RevokeToken({ token, onClose, onRevoked }: { token: Token; onClose(): void; onRevoked(): void }) {
  const { api, session } = useServices();
  const revoke = () => api.revokeToken(token.id).then(onRevoked);
  return (
    <FormDialog title={`Revoke ${token.name}?`} action="Revoke" danger onClose={onClose} onSubmit={revoke}>
      <p>Its clients are refused from now on. This cannot be undone.</p>
      {token.id === session.token.id && <p class="note">You are signed in with this token: your session ends, too.</p>}
    </FormDialog>
  );
}

interface ChoicesProps {
  label: string;
  name: string;
  choices: readonly [seconds: number, words: string][];
  chosen: number;
}

function Choices({ label, name, choices, chosen }: ChoicesProps) {
  return (
    <label class="field">
      <span>{label}</span>
      <select name={name}>
        {choices.map(([seconds, words]) => (
          <option key={seconds} value={seconds} selected={seconds === chosen}>
            {words}
          </option>
        ))}
      </select>
    </label>
  );
}
