/** Which machines a list shows: those of which all that the query says holds. Pure. */
import { HibernautError } from "@hibernaut/domain/errors";
import { type MachineState, STATES } from "@hibernaut/domain/machine";
import { nearest } from "@hibernaut/lib/nearest";
import { Type } from "typebox";
import type { MachineWire } from "./routes/machines.schemas.ts";
import { wordsIn, wordsOf } from "./schemas.ts";

/** What comes before the key in the name of a parameter. */
const METADATA = "metadata.";

/** `?state=suspended&region=local&metadata.team=search` */
export const MachinesQuery = Type.Object(
  {
    state: wordsOf(`Only machines in one of these states: ${STATES.join(", ")}, or \`started\` for \`running\`.`),
    region: Type.Optional(Type.String({ description: "Only machines of this region." })),
  },
  {
    additionalProperties: false,
    patternProperties: { "^metadata\\..+$": Type.Union([Type.String(), Type.Array(Type.String())]) },
  },
);

/** What is said of the parameters that have no name of their own. */
export const FILTER_DESCRIPTION =
  "`?metadata.<key>=<value>`: only machines whose metadata have this value. Of several, all must hold.";

/** What a query asks for. */
interface MachineFilter {
  /** Empty for any state. */
  states: readonly MachineState[];
  region?: string | undefined;
  metadata: readonly (readonly [key: string, value: string])[];
}

/** Returns what the query asks for. Throws `invalid_argument` for a state that does not exist. */
export function filterOf({ state, region, ...others }: Readonly<Record<string, unknown>>): MachineFilter {
  const metadata = Object.entries(others).flatMap(([name, values]) =>
    [values].flat().map((value) => [name.slice(METADATA.length), String(value)] as const),
  );
  const states = wordsIn(state as string | string[] | undefined).map(stateOf);
  return { states, metadata, ...(typeof region === "string" && { region }) };
}

/** Whether a list with this filter shows the machine. */
export function isWanted(
  { state, region, config }: Pick<MachineWire, "state" | "region" | "config">,
  filter: MachineFilter,
): boolean {
  const { metadata = {} } = config;
  return (
    (filter.states.length === 0 || filter.states.includes(state)) &&
    (filter.region === undefined || filter.region === region) &&
    filter.metadata.every(([key, value]) => Object.hasOwn(metadata, key) && metadata[key] === value)
  );
}

/** `started` is Fly's word for running. */
function stateOf(word: string): MachineState {
  const found = STATES.find((state) => state === (word === "started" ? "running" : word));
  if (found !== undefined) return found;
  const near = nearest(word, STATES);
  const advice = near === undefined ? `Use one of ${STATES.join(", ")}.` : `Did you mean \`${near}\`?`;
  throw new HibernautError("invalid_argument", `\`${word.slice(0, 80)}\` is not a valid \`state\`. ${advice}`, {
    in: "querystring",
    field: "state",
  });
}
